// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/capture_flags.h"
#include "app/cli/progress.h"
#include "app/cli/size_table.h"
#include "app/cli/text_windows.h"

namespace sinkscope {

// One recording from its flags to its file: what `capture` does once and `batch` many times.
struct CaptureFlags {
  std::string model;
  PromptFlags prompt;
  RunFlags run;
  RecordFlags record;
  std::optional<std::string> output, like;
  bool force = false, resume = false;
};

// Prompt, --like, recording and running: all that says what is recorded.
void add_request_flags(CommandLine& command, CaptureFlags& flags);

// What --window made of the prompts; empty without it.
struct Windows {
  std::vector<TextWindow> windows;
  WindowPlan plan;
};

struct CaptureJob {
  std::shared_ptr<const ModelFiles> model;
  CaptureRequest request;
  Windows windows;
  CaptureLayout layout;
  std::vector<SizeRow> table;
};

// What is asked for, without its runs and without looking at the model. Options of the capture
// that --like names are put where the flags have none of their own; its tokens are the prompt where
// the flags have none. Throws Error: invalid_argument naming the flag; what CaptureReader throws.
CaptureRequest begin_request(CaptureFlags& flags);

// The request with its runs and the file it will make. Throws Error: what read_prompts and
// plan_capture throw.
CaptureJob plan_job(const CaptureFlags& flags, CaptureRequest request,
                    std::shared_ptr<const ModelFiles> model, Console& console);

// Throws Error{invalid_argument} when the output or its .part is there, and neither --force nor
// --resume says what to do with it; or when both do.
void require_free_name(const CaptureFlags& flags);

// There is a whole capture at the name of a recording that is to be resumed; what is left of its
// states is taken away. Whether it is the recording asked for, require_same_recording says.
bool is_whole_already(const CaptureFlags& flags);

// Records the job to the output. nullopt: canceled, whole layers are in its .part. Throws Error,
// saying where whole layers are: a stream beyond 4 GiB that was not named, too little disk space,
// what record_to_file throws.
std::optional<CaptureSummary> record_job(const CaptureFlags& flags, const CaptureJob& job,
                                         const JobPlace& place, Console& console);

}  // namespace sinkscope
