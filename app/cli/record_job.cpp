// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/record_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "app/cli/engine_job.h"
#include "app/record_capture.h"
#include "core/error.h"
#include "core/output_path.h"

namespace sinkscope {

void require_runnable(const ModelFiles& model) {
  const std::vector<std::string>& obstacles = model.obstacles();
  if (obstacles.empty()) return;
  constexpr std::size_t kMost = 3;
  const std::size_t n = std::min(obstacles.size(), kMost);
  std::string text = fmt::format("{}", fmt::join(obstacles.begin(), obstacles.begin() + n, "; "));
  if (obstacles.size() > n)
    text += fmt::format(" (and {} more: sinkscope info says which)", obstacles.size() - n);
  throw Error(ErrorKind::unsupported, fmt::format("{}: cannot be run: {}", model.path(), text));
}

std::unique_ptr<ModelFiles> open_runnable(const std::string& path, const OpenFlags& flags,
                                          Console& console) {
  auto model = open_model(path, open_options(flags));
  for (const std::string& warning : model->warnings()) console.warn(warning);
  require_runnable(*model);
  return model;
}

void require_device(const CaptureRequest& request) {
  if (request.device != "auto" && request.device != "cpu")
    load_engine().resolve_device(request.device);
}

void require_new_capture(const std::string& path, bool force) {
  require_capture_path(path);
  require_folder_of(path);
  for (const std::string& name : {path, path + ".part"})
    if (!force && is_taken(name))
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("{}: exists already; --force replaces it", name));
}

std::optional<CaptureSummary> record_to_file(const ModelFiles& model, const CaptureRequest& request,
                                             const CaptureLayout& layout, const std::string& path,
                                             CaptureWriter::Existing existing, ProgressMode mode,
                                             Console& console, const JobPlace& place) {
  std::optional<CaptureSummary> summary;
  run_with_progress(
      [&](const JobContext& job) {
        summary = record_capture(model, request, layout, path, existing, job);
      },
      model.spec().n_layers, mode, console, place);
  return summary;
}

}  // namespace sinkscope
