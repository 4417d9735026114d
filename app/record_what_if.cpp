// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/record_what_if.h"

#include <algorithm>
#include <filesystem>

#include "app/record_capture.h"
#include "core/capture_copy.h"
#include "core/capture_reader.h"

namespace sinkscope {
namespace {

// Whether this program, asked now, would record what the capture holds.
bool is_made_alike(const CaptureReader& reader, const std::string& run, const ModelFiles& model,
                   const WhatIfPlan& plan) {
  if (!reader.complete() || reader.input(run).token_ids != plan.request.runs.front().token_ids)
    return false;
  if (reader.model(run).fingerprint != fingerprint(model.checkpoint())) return false;
  const Engine& engine = load_engine();
  const std::pair<const char*, std::string> texts[] = {
      {"device", engine.resolve_device(plan.request.device)},
      {"dtype", plan.layout.provenance.dtype},
      {"torch", engine.torch_version()},
      {"kernel", engine.kernel(plan.request)}};
  for (const auto& [name, expected] : texts)
    if (reader.read_text(run, std::string("provenance/") + name) != expected) return false;
  const std::vector<int> threads = reader.read_i32(run, "provenance/threads");
  if (threads != std::vector{plan.layout.provenance.threads}) return false;
  return holds_run(reader, run, plan.layout, 0);
}

// The capture with the baseline, if it will do; null = the model has to run it.
std::unique_ptr<CaptureReader> open_known(const KnownBaseline& known, const ModelFiles& model,
                                          const WhatIfPlan& plan) {
  std::error_code ignored;
  if (!std::filesystem::exists(known.path, ignored)) return nullptr;
  auto reader = CaptureReader::open(known.path);
  if (!is_made_alike(*reader, known.run, model, plan)) return nullptr;
  return reader;
}

}  // namespace

std::optional<KnownBaseline> record_what_if(const ModelFiles& model, const WhatIfPlan& plan,
                                            const std::string& path, const KnownBaseline& known,
                                            JobContext job) {
  const auto recorded = open_known(known, model, plan);
  KnownBaseline made{path, "run0", {}, {}};
  CaptureRequest request = plan.request;
  FillRuns fill;
  if (recorded != nullptr) {
    made.final_norm = known.final_norm;
    made.report = known.report;
    request.n_recorded = 1;
    request.baseline_final_norms.resize(request.runs.size());
    request.baseline_final_norms.back() = recorded->has(known.run, "residual/final_norm")
                                              ? recorded->read_f32(known.run, "residual/final_norm")
                                              : known.final_norm;
    fill = [&](CaptureWriter& writer) {
      return copy_run(*recorded, known.run, writer, 0, job.stop);
    };
  }
  const auto summary = record_capture(model, request, plan.layout, path,
                                      CaptureWriter::Existing::overwrite, job, fill);
  if (!summary) return std::nullopt;
  if (!summary->baseline_final_norms.back().empty())
    made.final_norm = summary->baseline_final_norms.back();
  return made;
}

}  // namespace sinkscope
