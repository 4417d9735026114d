// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/recording_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/recording_request.h"
#include "tests/support/sample_capture.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (int v : values) out.push_back(static_cast<std::byte>(v));
  return out;
}

// Streams of 3 and 11 bytes: no whole words.
void save(const std::string& path, int layers, int first_run) {
  const auto a = bytes({1, 2, layers}), b = bytes({9, 8, 7, 6, 5, 4, 3, 2, 1, 0, layers});
  save_state(path, R"({"threads":2})", layers, first_run, {a, b});
}

TEST(RecordingState, TheLastTwoAreThereAndComeBackAsTheyWere) {
  const std::string path = test::scratch_folder() + "/run.h5.part";
  EXPECT_THAT(load_states(path), SizeIs(0));
  for (int layer : {1, 2, 3}) save(path, layer, 4);
  const auto states = load_states(path);
  ASSERT_THAT(states, SizeIs(2));
  EXPECT_EQ(states[0].layers_done, 3);
  EXPECT_EQ(states[1].layers_done, 2);
  EXPECT_EQ(states[0].first_run, 4);
  EXPECT_EQ(states[0].request, R"({"threads":2})");
  EXPECT_THAT(states[0].streams,
              ElementsAre(bytes({1, 2, 3}), bytes({9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 3})));
  remove_states(path);
  EXPECT_TRUE(fs::is_empty(fs::path(path).parent_path()));
}

TEST(RecordingState, ATornOrChangedFileIsNoState) {
  const std::string path = test::scratch_folder() + "/run.h5.part", file = path + ".state";
  save(path, 1, 0);
  const auto size = fs::file_size(file);
  for (std::uintmax_t at = 0; at < size; ++at) {
    save(path, 1, 0);
    fs::remove(file + ".before");
    std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
    f.seekg(static_cast<std::streamoff>(at));
    const auto old = static_cast<char>(f.get());
    f.seekp(static_cast<std::streamoff>(at));
    f.put(static_cast<char>(old ^ 0x40));
    f.close();
    EXPECT_THAT(load_states(path), SizeIs(0)) << "byte " << at;
    save(path, 1, 0);
    fs::remove(file + ".before");
    fs::resize_file(file, at);
    EXPECT_THAT(load_states(path), SizeIs(0)) << "cut at " << at;
  }
}

TEST(RecordingState, AnotherRequestIsRefusedByItsField) {
  CaptureLayout layout = test::sample_layout();
  const std::string begun = recording_request(layout);
  EXPECT_NO_THROW(require_same_request("run.h5.part", begun, recording_request(layout)));
  const auto refusal = [&](const CaptureLayout& now) -> std::string {
    try {
      require_same_request("run.h5.part", begun, recording_request(now));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
      return error.what();
    }
    return "";
  };
  CaptureLayout threads = layout, tokens = layout, model = layout, maps = layout;
  CaptureLayout command = layout, names = layout;
  command.provenance.command += " --window 8";
  names.runs.back().name += "other";
  threads.provenance.threads += 3;
  tokens.runs[0].token_ids[1] += 1;
  model.model.fingerprint = "other";
  maps.pattern.heads = {1};
  EXPECT_THAT(refusal(command), HasSubstr("command was"));
  EXPECT_THAT(refusal(names), HasSubstr("names was"));
  EXPECT_THAT(refusal(threads), HasSubstr("threads was"));
  EXPECT_THAT(refusal(tokens), HasSubstr("tokens was"));
  EXPECT_THAT(refusal(model), HasSubstr("model was"));
  EXPECT_THAT(refusal(maps), HasSubstr("maps was"));
}

}  // namespace
}  // namespace sinkscope
