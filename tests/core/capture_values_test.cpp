// SPDX-License-Identifier: GPL-3.0-or-later
// What a stranger's capture may say, value by value.
#include "core/capture_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/capture_reader.h"
#include "core/error.h"
#include "core/h5/dataset.h"
#include "core/h5/file.h"
#include "core/h5/object.h"
#include "core/run_done.h"
#include "tests/support/sample_capture.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt) << error.what();
    return error.what();
  }
  return "";
}

// 3 layers, 4 heads, a vocabulary of 11; run0 has 7 tokens.
class StrangersFile : public ::testing::Test {
 protected:
  std::string path = test::scratch_folder() + "/sample.h5";
  void SetUp() override { test::write_sample_capture(path); }

  void put(const std::string& dataset, const std::vector<int>& values) const {
    const h5::File file = h5::File::open_for_writing(path);
    auto data = h5::Dataset::open_for_writing(file.root(), dataset, dataset);
    data.write(h5::Dims(data.dims().size(), 0), data.dims(), ElementType::i32, values.data());
  }
  void put_attribute(const std::string& object, const std::string& name, int value) const {
    const h5::File file = h5::File::open_for_writing(path);
    if (object.empty())
      h5::set_attribute(file.root(), name, value);
    else
      h5::set_attribute(h5::open_object(file.root(), object, object), name, value);
  }
  std::string reading(const std::string& dataset) const {
    return refusal([&] { CaptureReader::open(path)->read_i32("run0", dataset); });
  }
};

TEST_F(StrangersFile, ListsHoldIndicesThatExist) {
  EXPECT_EQ(reading("attention/layers"), "");
  struct Case {
    const char* dataset;
    std::vector<int> values;
    const char* said;
  };
  for (const Case& c : {
           Case{"attention/layers", {0, 99}, "expected values from 0 to 2, found 99"},
           Case{"attention/layers", {-7, 1}, "found -7"},
           Case{"attention/layers", {1, 1}, "expected every value once, found 1 twice"},
           Case{"attention/pattern_layers", {50}, "from 0 to 2, found 50"},
           Case{"attention/pattern_heads", {0, 4, 1}, "from 0 to 3, found 4"},
           Case{"attention/pattern_rows", {0, 1, 2, 3, 4, 5, 7}, "from 0 to 6, found 7"},
           Case{"attention/pattern_rows", {0, 1, 2, 3, 4, 5, -1}, "found -1"},
           Case{"input/token_ids", {1, 4, 10, 0, 7, 7, 11}, "from 0 to 10, found 11"},
           Case{"input/token_ids", {1, 4, 10, 0, 7, 7, -3}, "found -3"},
           Case{"norm/ln1/layers", {2, 2, 2}, "found 2 twice"},
           Case{"stats/hook_resid_post/layers", {0, 1, 3}, "from -1 to 2, found 3"},
           Case{"taps/attn.hook_v/layers", {-2, 1}, "found -2"},
           Case{"attention/visible", std::vector<int>(14, -2147483647), "expected counts, found"},
       }) {
    const std::string dataset = std::string("run0/") + c.dataset;
    const std::vector<int> before = CaptureReader::open(path)->read_i32("run0", c.dataset);
    ASSERT_EQ(before.size(), c.values.size()) << c.dataset;
    put(dataset, c.values);
    EXPECT_THAT(reading(c.dataset), AllOf(HasSubstr(dataset), HasSubstr(c.said)));
    put(dataset, before);
  }
}

TEST_F(StrangersFile, TheNumberOfLayersFitsWhatIsThere) {
  for (const int n : {0, 1025, 2147483647}) {
    put_attribute("run0/model", "n_layers", n);
    EXPECT_THAT(refusal([&] { CaptureReader::open(path)->model("run0"); }),
                HasSubstr("n_layers: expected 1 to 1024, found " + std::to_string(n)));
  }
  for (const int n : {1, 2, 4, 6, 1000}) {
    put_attribute("run0/model", "n_layers", n);
    EXPECT_THAT(reading("attention/layers"),
                HasSubstr("its model has " + std::to_string(n) + " layers, which does not fit"));
  }
}

TEST_F(StrangersFile, ProgressEndsWhereTheModelAndTheRunsEnd) {
  put_attribute("", "complete", 0);
  put_attribute("", "runs_done", 0);
  put_attribute("", "layers_done", 2);
  put_attribute("", "runs_begun", 1);
  EXPECT_EQ(CaptureReader::open(path)->whole_layers("run0"), 2);
  put_attribute("", "layers_done", 9);
  EXPECT_THAT(refusal([&] { CaptureReader::open(path)->whole_layers("run0"); }),
              HasSubstr("layers_done: expected at most 3, found 9"));
  put_attribute("", "runs_begun", 3);
  EXPECT_THAT(refusal([&] { CaptureReader::open(path); }), HasSubstr("at most the 2 runs"));
  put_attribute("", "runs_begun", 0);
  put_attribute("", "runs_done", 1);
  EXPECT_THAT(refusal([&] { CaptureReader::open(path); }), HasSubstr("found 1 and 0"));
}

// All blocks are there before the final norm and the logits are.
TEST_F(StrangersFile, ARunIsDoneWhenMoreThanItsBlocksIsThere) {
  EXPECT_TRUE(is_run_done(*CaptureReader::open(path), "run1"));
  put_attribute("", "complete", 0);
  put_attribute("", "layers_done", 3);
  put_attribute("", "runs_done", 1);
  put_attribute("", "runs_begun", 2);
  const auto reader = CaptureReader::open(path);
  EXPECT_TRUE(is_run_done(*reader, "run0"));
  EXPECT_EQ(reader->whole_layers("run1"), 3);
  EXPECT_FALSE(is_run_done(*reader, "run1"));
}

TEST(CaptureValues, MinusOneStandsForAReducedAxisAloneAndForTheEndOfTheModel) {
  const RunSizes sizes{3, 4, 11, 7};
  EXPECT_NO_THROW(check_list("attention/pattern_heads", {-1}, sizes, "w"));
  EXPECT_THROW(check_list("attention/pattern_heads", {-1, 0}, sizes, "w"), Error);
  EXPECT_THROW(check_list("attention/layers", {-1}, sizes, "w"), Error);
  EXPECT_NO_THROW(check_list("norm/ln_final/layers", {-1}, sizes, "w"));
  EXPECT_NO_THROW(check_list("logits/top_ids", {-5, 99}, sizes, "w"));
  EXPECT_NO_THROW(check_list("input/token_ids", {900}, {3, 4, 0, 7}, "no vocabulary is said"));
}

TEST(CaptureValues, CountsAreNotNegativeAndSitesHaveNamesOfTheirOwn) {
  const std::string path = "stats/hook_mlp_out/dim_rest/count";
  EXPECT_THAT(refusal([&] {
                check_counts(path, {4, 0, -2}, "w");
              }),
              HasSubstr("w: expected counts, found -2"));
  EXPECT_EQ(refusal([&] { check_counts(path, {4, -1, 0}, "w"); }), "");
  EXPECT_EQ(refusal([&] { check_counts("residual/abs_mean", {-4}, "w"); }), "");
  const RunSizes sizes{3, 4, 11, 7};
  EXPECT_NO_THROW(check_list("attention/visible", {7, -1}, sizes, "w"));
  EXPECT_THROW(check_list("attention/visible", {7, -2}, sizes, "w"), Error);
  EXPECT_THAT(refusal([&] { check_names({"a", "b", "a"}, "w"); }), HasSubstr("'a' twice"));
}

}  // namespace
}  // namespace sinkscope
