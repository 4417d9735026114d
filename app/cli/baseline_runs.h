// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/capture_flags.h"
#include "capture/checkpoint/model_files.h"
#include "core/capture_reader.h"
#include "core/sink_report.h"

namespace sinkscope {

// An earlier capture as the baseline of a what-if: whatif --baseline RUN.h5[::run3].
class Baseline {
 public:
  // Its options go where the flags have none of their own. Throws Error: those of
  // CaptureReader::open, invalid_argument for one that is unfinished or edited itself.
  Baseline(const std::string& path, RunFlags& run, RecordFlags& record, PromptFlags& prompt);

  // Reads the sink report of its runs on another thread, while LibTorch is still being loaded.
  std::future<SinkReport> report() const;

  // The twins to run: of all its runs, or of those that `prompts` name by holding the same tokens,
  // with what is known of their final norms. `output` is the capture to make. Throws
  // Error{invalid_argument} where model, tokens or arithmetic are not the same, naming both.
  void add_twins(const ModelFiles& model, const std::vector<RunInput>& prompts,
                 const std::string& what_if, const std::string& output,
                 CaptureRequest& request) const;

 private:
  std::unique_ptr<CaptureReader> reader_;
  std::vector<std::string> runs_;
};

}  // namespace sinkscope
