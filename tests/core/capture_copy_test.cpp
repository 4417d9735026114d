// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/capture_copy.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/sample_capture.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

// The sample's second run, of 5 tokens, as the only one of another capture.
CaptureLayout layout_of_second() {
  CaptureLayout layout = test::sample_layout();
  layout.runs = {layout.runs.at(1)};
  return layout;
}

TEST(CaptureCopy, TakesEveryNumberOfARunOver) {
  const std::string folder = test::scratch_folder(), path = folder + "/copy.h5";
  test::write_sample_capture(folder + "/sample.h5");
  const auto from = CaptureReader::open(folder + "/sample.h5");
  const CaptureLayout layout = layout_of_second();
  ASSERT_TRUE(holds_run(*from, "run1", layout, 0));
  auto writer = CaptureWriter::create(path, layout, CaptureWriter::Existing::refuse);
  ASSERT_TRUE(copy_run(*from, "run1", *writer, 0));
  writer->finish();
  const auto copy = CaptureReader::open(path);
  int n_compared = 0;
  for (const DatasetSpec& spec : datasets_of(layout, 0)) {
    if (spec.type == ElementType::text || spec.path.starts_with("provenance/")) continue;
    const auto found = copy->read_f64("run0", spec.path),
               expected = from->read_f64("run1", spec.path);
    EXPECT_EQ(found, expected) << spec.path;
    n_compared += test::is_streamed(spec) ? 1 : 0;
  }
  EXPECT_GT(n_compared, 40);
}

TEST(CaptureCopy, AnotherLengthOrAnArrayMoreIsNotTheSameRun) {
  const std::string folder = test::scratch_folder();
  test::write_sample_capture(folder + "/sample.h5");
  const auto from = CaptureReader::open(folder + "/sample.h5");
  const CaptureLayout layout = layout_of_second();
  EXPECT_FALSE(holds_run(*from, "run0", layout, 0)) << "7 tokens";
  CaptureLayout more = layout;
  more.taps.push_back({"attn.hook_more", {1}, {kSeqLen, 3}});
  EXPECT_FALSE(holds_run(*from, "run1", more, 0));
  CaptureLayout less = layout;
  less.taps.clear();
  EXPECT_TRUE(holds_run(*from, "run1", less, 0));
}

TEST(CaptureCopy, StopsBetweenTwoArrays) {
  const std::string folder = test::scratch_folder();
  test::write_sample_capture(folder + "/sample.h5");
  auto writer = CaptureWriter::create(folder + "/copy.h5", layout_of_second(),
                                      CaptureWriter::Existing::refuse);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(
      copy_run(*CaptureReader::open(folder + "/sample.h5"), "run1", *writer, 0, stop.get_token()));
}

}  // namespace
}  // namespace sinkscope
