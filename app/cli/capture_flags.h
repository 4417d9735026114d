// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli/command_line.h"
#include "app/cli/open_flags.h"
#include "app/cli/prompts.h"
#include "capture/engine.h"

namespace sinkscope {

// How the model is run.
struct RunFlags {
  std::optional<std::string> device, dtype, threads, weight_budget, activation_budget, kernel;
  std::optional<std::string> progress;
  OpenFlags opening;
};
void add_run_flags(CommandLine& command, RunFlags& flags);

// What is recorded.
struct RecordFlags {
  std::optional<std::string> record, layers, heads, rows, reduce, reduce_over, top_k;
};
void add_record_flags(CommandLine& command, RecordFlags& flags);

// A request as the flags say it, without its runs. Throws Error{invalid_argument} naming the flag.
// Hooks, layers, heads and rows are checked by plan_capture, which knows the model.
CaptureRequest capture_request(const RunFlags& run, const RecordFlags& record);

// --record as a request: the highest level named (stream, if none), plus logits, plus single hooks.
RecordRequest parse_record(const std::string& text);
// Whether --record names the stream itself; only then may it take more than 4 GiB.
bool names_stream(const RecordFlags& flags);

// The request as one line for the capture's provenance: no paths, no times, flags in a fixed order
// and only where they differ from what is the case without them. read_command takes it back.
std::string canonical_command(const RunFlags& run, const RecordFlags& record,
                              const PromptFlags& prompt);

// Flags of a canonical command, put where `run`, `record` and `prompt` have none of their own.
// Throws Error{corrupt} where it is not one.
void read_command(const std::string& command, RunFlags& run, RecordFlags& record,
                  PromptFlags& prompt);

}  // namespace sinkscope
