// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/record_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace sinkscope {

std::optional<CaptureSummary> record_capture(const ModelFiles& model, const CaptureRequest& request,
                                             const CaptureLayout& layout, const std::string& path,
                                             CaptureWriter::Existing existing, JobContext job) {
  const bool is_edited = std::any_of(request.runs.begin(), request.runs.end(),
                                     [](const RunInput& run) { return run.edit_of >= 0; });
  if (is_edited) load_engine().check_edits(model, request);
  // The file is made while LibTorch is still loading.
  const auto writer = CaptureWriter::create(path, layout, existing, [&](Provenance& provenance) {
    const Engine& engine = load_engine();
    provenance.device = engine.resolve_device(request.device);
    provenance.torch = engine.torch_version();
    provenance.kernel = engine.kernel(request);
  });
  const auto summary = load_engine().capture(model, request, *writer, job);
  if (summary) writer->finish();
  return summary;
}

Error with_kept_layers(const Error& error, const std::string& path) {
  const std::string part = path + ".part";
  std::error_code ignored;
  if (error.kind() == ErrorKind::invalid_argument || !std::filesystem::exists(part, ignored))
    return error;
  return Error(error.kind(), fmt::format("{}; whole layers are in {}", error.what(), part));
}

}  // namespace sinkscope
