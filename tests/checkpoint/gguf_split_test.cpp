// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/gguf_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>

#include "tests/checkpoint/gguf_test_files.h"

namespace sinkscope {
namespace {

using namespace test;  // NOLINT: the helpers of this folder
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

// Two parts of one model in a folder of their own; returns the path of the first.
std::string split_model(std::uint16_t second_no = 1, std::int32_t total = 3,
                        const std::string& second_tensor = "c") {
  const std::string folder = scratch_folder();
  GgufBytes first, second;
  first.key("general.architecture", "llama").key<std::uint16_t>("split.no", 0);
  first.key<std::uint16_t>("split.count", 2).key<std::int32_t>("split.tensors.count", total);
  first.floats("a", {2}, {1, 2}).floats("b", {1}, {3}).write(folder + "/m-00001-of-00002.gguf");
  second.key<std::uint16_t>("split.no", second_no).key<std::uint16_t>("split.count", 2);
  second.floats(second_tensor, {3}, {4, 5, 6}).write(folder + "/m-00002-of-00002.gguf");
  return folder + "/m-00001-of-00002.gguf";
}

TEST(FieldCases, FC19_TheFirstPartOfASplitGgufPullsInTheOthers) {
  const std::string first = split_model();
  const auto file = GgufFile::open(first);
  ASSERT_EQ(file->tensors().size(), 3u);
  EXPECT_EQ(file->text("general.architecture"), "llama");
  EXPECT_THAT(all_values(*file, "a"), ElementsAre(1, 2));
  EXPECT_THAT(all_values(*file, "b"), ElementsAre(3));
  EXPECT_THAT(all_values(*file, "c"), ElementsAre(4, 5, 6));
  std::string raw(4, '\0');
  file->read_raw(2, 4, 4, raw.data());
  EXPECT_EQ(raw, GgufBytes::raw(5.0f));

  std::string second = first;
  second.replace(second.find("00001"), 5, "00002");
  const auto [second_kind, second_message] = failure_to_open(second);
  EXPECT_EQ(second_kind, ErrorKind::invalid_argument);
  EXPECT_THAT(second_message, HasSubstr("open the first: m-00001-of-00002.gguf"));

  fs::remove(second);
  const auto [missing_kind, missing_message] = failure_to_open(first);
  EXPECT_EQ(missing_kind, ErrorKind::not_found);
  EXPECT_THAT(missing_message, HasSubstr("m-00002-of-00002.gguf"));
}

TEST(GgufSplit, PartsThatContradictEachOtherAreRejected) {
  EXPECT_THAT(failure_to_open(split_model(0)).second, HasSubstr("expected part 2 of 2"));
  EXPECT_THAT(failure_to_open(split_model(1, 4)).second, HasSubstr("promises 4 tensors"));
  EXPECT_THAT(failure_to_open(split_model(1, 3, "a")).second, HasSubstr("\"a\""));
  const std::string first = split_model();
  const std::string renamed = fs::path(first).parent_path() / "renamed.gguf";
  fs::copy_file(first, renamed);
  EXPECT_THAT(failure_to_open(renamed).second, HasSubstr("-00001-of-00002.gguf"));
}

}  // namespace
}  // namespace sinkscope
