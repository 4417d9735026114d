// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/capture_plan.h"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>
#include <sstream>

#include "app/cli/capture_flags.h"
#include "app/cli/parse_text.h"
#include "app/cli/print_plan.h"
#include "app/cli/record_job.h"
#include "app/cli/size_table.h"

namespace sinkscope {

CapturePlan plan_recording(const ModelFiles& model, const CaptureChoice& choice) {
  require_runnable(model);
  RunFlags run;
  RecordFlags record;
  PromptFlags prompt;
  record.record = choice.record;
  if (choice.layers != "all" && !choice.layers.empty()) record.layers = choice.layers;
  if (choice.device != "auto") run.device = choice.device;
  prompt.text = choice.text;

  CapturePlan plan;
  plan.choice = choice;
  plan.request = capture_request(run, record);
  plan.request.command = canonical_command(run, record, prompt);
  std::istringstream nothing;
  std::ostringstream out, err;
  Console console{nothing, out, err};
  plan.request.runs = read_prompts(prompt, model, console);
  if (choice.text == built_in_text()) plan.request.runs.front().name = "built-in text";
  for (const std::string& line : split_at(err.str(), '\n'))
    if (!line.empty()) plan.warnings.push_back(line);
  plan.layout = plan_capture(model, plan.request);
  plan.file_bytes = total_bytes(size_table(plan.layout, model.spec()));
  plan.memory_bytes = predicted_memory(model, plan.request);
  plan.seconds = expected_seconds(model, plan.request);
  return plan;
}

std::string free_capture_path(const std::string& folder, const std::string& model_name) {
  std::string name = model_name.empty() ? "capture" : model_name;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_') c = '-';
  std::error_code ignored;
  for (int i = 1;; ++i) {
    std::string path = fmt::format("{}/{}-{}.h5", folder, name, i);
    if (!std::filesystem::exists(path, ignored) &&
        !std::filesystem::exists(path + ".part", ignored))
      return path;
  }
}

}  // namespace sinkscope
