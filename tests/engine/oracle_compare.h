// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "capture/checkpoint/model_files.h"
#include "capture/engine.h"
#include "tests/support/h5_reference.h"

namespace sinkscope::test {

// A run of a capture, by paths from the run's group on.
class RecordedRun {
 public:
  RecordedRun(const std::string& path, int run) : file_(path), run_("/run" + std::to_string(run)) {}
  bool has(const std::string& object) const { return file_.has(run_ + object); }
  std::vector<std::int64_t> dims(const std::string& name) const { return file_.dims(run_ + name); }
  std::vector<float> floats(const std::string& name) const { return file_.floats(run_ + name); }
  std::vector<int> ints(const std::string& name) const { return file_.ints(run_ + name); }
  std::vector<std::int64_t> integers(const std::string& name) const {
    return file_.integers(run_ + name);
  }

 private:
  H5Reference file_;
  std::string run_;
};

struct Tolerance {
  double relative, absolute;
};
inline constexpr Tolerance kValues{1e-4, 1e-4}, kProbabilities{0, 1e-5};

void expect_close(const std::vector<float>& got, const std::vector<float>& want,
                  Tolerance tolerance, const std::string& what);

// The folder, or the GGUF file in it.
std::unique_ptr<ModelFiles> open_oracle(const std::string& folder);
// An encoder's oracle holds its last hidden state in place of logits.
bool has_logits(const H5Reference& expected);
// The oracle's prompt with maps, all taps and, where there are some, logits.
CaptureRequest everything(const H5Reference& expected);

// Everything that expected.h5 has, against one run of a capture of everything().
void compare_with_expected(const std::string& capture_path, const H5Reference& want,
                           const ModelFiles& model, int run = 0);

// Parts of it. One row [row, …] of a dataset; expected.h5's [T, heads, d] as the capture's
// [heads, T, d]; the row of a block in taps/<hook>/values, −1 = it is not recorded there.
std::vector<float> row_of(const std::vector<float>& all, std::size_t n_rows, int row);
std::vector<float> heads_first(const std::vector<float>& x, std::int64_t T, std::int64_t heads,
                               std::int64_t d);
int tap_row(const RecordedRun& got, const std::string& hook, int layer);
std::vector<float> tap_values(const RecordedRun& got, const std::string& hook, int layer);
void compare_tap(const RecordedRun& got, const std::string& hook, int layer,
                 const std::vector<float>& expected, Tolerance tolerance, const std::string& name);
// Every dataset of /norm, each by the site that records it.
void compare_norms(const RecordedRun& got, const H5Reference& want, const ModelFiles& model);

}  // namespace sinkscope::test
