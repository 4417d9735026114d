// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture/engine.h"

namespace sinkscope {

// What the capture form says, as text; the command line reads the same words.
struct CaptureChoice {
  std::string text;             // the prompt
  std::string record = "maps";  // stats | stream | maps | all
  std::string layers = "all";   // "0-3,7"
  std::string device = "auto";
  bool operator==(const CaptureChoice&) const = default;
};

// The choice, understood for one model: what will be recorded, and how large it gets.
struct CapturePlan {
  CaptureChoice choice;
  CaptureRequest request;
  CaptureLayout layout;
  std::int64_t file_bytes = 0, memory_bytes = 0;
  double seconds = 0;  // about, on this machine's CPU
  std::vector<std::string> warnings;
};

// Throws Error: invalid_argument for words that mean nothing, unsupported for a model that cannot
// be run or read text.
CapturePlan plan_recording(const ModelFiles& model, const CaptureChoice& choice);

// "FOLDER/SmolLM2-135M-Instruct-1.h5": the first number for which neither the capture nor an
// unfinished one exists. The name is that of the model, with '/' and the like made '-'.
std::string free_capture_path(const std::string& folder, const std::string& model_name);

}  // namespace sinkscope
