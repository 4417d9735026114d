// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "capture/checkpoint/absorb.h"
#include "capture/engine.h"

namespace sinkscope {

// What `sinkscope absorb` and the window's button do: a model's outlier dimensions moved into a
// gain in front of each norm, written as a folder, and checked on prompts before it gets its name.
struct AbsorbRequest {
  CaptureRequest run;             // how the models run, and the prompts of the self-check
  std::vector<int> dims;          // empty = the massive ones and the residual sinks of the prompts
  std::optional<double> factor;   // of every dimension; nullopt = its size over the typical one
  double tolerance = 1e-4;        // largest logit difference over the largest logit, float32
  std::string output;             // the folder to make
  bool describes_itself = false;  // whatever the family: the model's own files do not say it all
};

struct AbsorbOutcome {
  Absorption absorption;
  bool is_kept = false;  // the self-check was passed and the folder is there
  double logit_difference = 0, largest_logit = 0;
  double max_abs_before = 0, max_abs_after = 0;    // largest |x| over the sites of the first run
  double kurtosis_before = 0, kurtosis_after = 0;  // Pearson, per tensor, largest over the same
  double relative() const { return logit_difference / largest_logit; }
};

// Throws Error{invalid_argument} when the folder, or an unfinished OUTPUT.part, is there already.
void require_new_folder(const std::string& output);

// On the caller's thread, twice a recording of the prompts. Canceled: nullopt, nothing is left.
// Throws Error: invalid_argument for no dimension to absorb or one that is not there, and those of
// record_capture and write_absorbed.
std::optional<AbsorbOutcome> absorb_model(const ModelFiles& model, const AbsorbRequest& request,
                                          JobContext job);

// Two lines in words: dimensions and factors; the check; max |x| and kurtosis before and after.
std::string absorb_text(const AbsorbOutcome& outcome);

}  // namespace sinkscope
