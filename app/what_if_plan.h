// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture/engine.h"

namespace sinkscope {

// Puts the edited twin of every run behind them.
void add_twins(std::vector<RunInput>& runs, const WhatIf& what_if);

// The rerun of a recorded prompt under edits, recording what that recording holds.
struct WhatIfPlan {
  CaptureRequest request;  // the run and its twin
  CaptureLayout layout;
  std::int64_t file_bytes = 0;
};

// `recorded`: provenance/command of the recording. Throws Error: invalid_argument, corrupt,
// unsupported for a model that cannot be run.
WhatIfPlan plan_what_if(const ModelFiles& model, const RunInput& input, const std::string& recorded,
                        const WhatIf& what_if);

// Throws Error (corrupt, invalid_argument) where `recorded` is no command that can be done again.
void check_recorded(const std::string& recorded);

// What a command names a model by.
struct ModelWords {
  std::string path;
  std::string arch_file = {};  // "" = none
};

// "MODEL", or "MODEL --arch F.json", quoted for a shell.
std::string words_of(const ModelWords& model);

// The line for a shell that does the same: "sinkscope whatif MODEL --edit '…' --tokens … -o F.h5",
// every word quoted where it has to be. Throws what check_recorded throws.
std::string what_if_command(const ModelWords& model, const RunInput& input,
                            const std::string& recorded, const WhatIf& what_if,
                            const std::string& output);

// "sinkscope probe MODEL --dims DIMS [--each] --tokens … -o F.json", for the tokens of a recorded
// run, run as it was. Throws what check_recorded throws.
std::string probe_command(const ModelWords& model, const RunInput& input,
                          const std::string& recorded, const std::string& dims, bool each,
                          const std::string& output);

}  // namespace sinkscope
