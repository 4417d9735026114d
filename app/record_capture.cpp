// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/record_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <vector>

#include "core/capture_reader.h"
#include "core/recording_state.h"

namespace sinkscope {
namespace {

// What the engine cannot know of runs that were recorded before it went on.
void summarize_losses(const std::string& path, CaptureSummary& summary) {
  const auto reader = CaptureReader::open(path);
  std::vector<float> loss, edited;
  const auto append = [&](const std::string& run, const char* name, std::vector<float>& to) {
    if (!reader->has(run, name)) return;
    const std::vector<float> values = reader->read_f32(run, name);
    to.insert(to.end(), values.begin(), values.end());
  };
  summary.kl.clear();
  for (const std::string& run : reader->runs()) {
    append(run, "logits/loss", loss);
    for (const std::string& edit : reader->edits(run)) {
      append(edit, "logits/loss", edited);
      append(edit, "compare/kl", summary.kl);
      if (!summary.kl.empty()) summary.kl.pop_back();  // the last position has no next token
    }
  }
  const auto mean = [](const std::vector<float>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  summary.mean_loss = mean(loss);
  summary.edited_mean_loss = mean(edited);
}

}  // namespace

std::optional<CaptureSummary> record_capture(const ModelFiles& model, const CaptureRequest& request,
                                             const CaptureLayout& layout, const std::string& path,
                                             CaptureWriter::Existing existing, JobContext job,
                                             const FillRuns& fill) {
  const bool is_edited = std::any_of(request.runs.begin(), request.runs.end(),
                                     [](const RunInput& run) { return run.edit_of >= 0; });
  // The file is made while LibTorch is still loading; edits are checked before it gets its name.
  const auto writer = CaptureWriter::create(path, layout, existing, [&](Provenance& provenance) {
    Engine& engine = load_engine();
    if (is_edited) engine.check_edits(model, request);
    provenance.device = engine.resolve_device(request.device);
    provenance.torch = engine.torch_version();
    provenance.kernel = engine.kernel(request);
  });
  if (fill && !fill(*writer)) return std::nullopt;
  auto summary = load_engine().capture(model, request, *writer, job);
  if (!summary) return summary;
  const bool is_resumed = writer->resume_point() != nullptr;
  writer->finish();
  if (is_resumed) summarize_losses(path, *summary);
  return summary;
}

std::string kept_layers(const std::string& path) {
  const std::string part = path + ".part";
  std::error_code ignored;
  if (!std::filesystem::exists(part, ignored)) return "";
  const auto reader = CaptureReader::open(part);
  const auto& runs = reader->runs();
  const bool has_any = std::any_of(runs.begin(), runs.end(), [&](const std::string& run) {
    return reader->whole_layers(run) > 0;
  });
  return has_any ? fmt::format("whole layers are in {}", part)
                 : fmt::format("no layer in {} is whole yet", part);
}

Error with_kept_layers(const Error& error, const std::string& path) {
  if (error.kind() == ErrorKind::invalid_argument) return error;
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && !std::filesystem::exists(folder, ignored))
    return {error.kind(), fmt::format("{}: its folder {} is gone, and the recording with it ({})",
                                      path, folder.native(), error.what())};
  std::string kept;
  try {
    kept = kept_layers(path);
  } catch (const Error&) {  // the failure that brought us here is the one to tell
  }
  if (kept.empty()) return error;
  const bool can_go_on = !load_states(path + ".part").empty();
  return {error.kind(), fmt::format("{}; {}{}", error.what(), kept,
                                    can_go_on ? ", --resume goes on with it" : "")};
}

}  // namespace sinkscope
