// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>

#include "core/capture_reader.h"

namespace sinkscope {

// A twin may be compared with a run of another capture (whatif --baseline). The two must be of the
// same model and of the same tokens; these say so in one line or open what belongs together.

// "run3" of "run3_edit0".
std::string baseline_run(const std::string& twin);

// Throws Error{invalid_argument} unless `baseline` is a capture of the model with this fingerprint,
// naming both.
void check_same_model(const CaptureReader& baseline, const std::string& fingerprint);

// Throws Error{invalid_argument} unless the run holds these tokens, naming both hashes;
// Error{not_found} when there is no such run.
void check_same_tokens(const CaptureReader& baseline, const std::string& run,
                       const std::string& sha256);

// The capture that holds the baselines of this capture's runs, opened and checked against them;
// null where they are in the same file. Throws Error: not_found naming the file that is missing,
// invalid_argument when it has another model or other tokens by now.
std::unique_ptr<CaptureReader> open_baseline(const CaptureReader& edited);

}  // namespace sinkscope
