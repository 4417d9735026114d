// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/probe_model.h"

#include <cmath>

#include "app/cli/temporary_folder.h"
#include "app/record_capture.h"
#include "core/capture_reader.h"
#include "core/error.h"
#include "core/sink_report.h"

namespace sinkscope {
namespace {

double mean_of(const std::vector<std::vector<float>>& runs, bool drop_last) {
  double sum = 0, n = 0;
  for (const auto& run : runs)
    for (std::size_t t = 0; t + (drop_last ? 1 : 0) < run.size(); ++t) sum += run[t], ++n;
  return n > 0 ? sum / n : std::nan("");
}

}  // namespace

std::optional<std::vector<int>> find_outlier_dims(const ModelFiles& model, CaptureRequest request,
                                                  JobContext job) {
  request.record = {};
  request.record.stream = false;
  const TemporaryFolder folder;
  const std::string path = folder.file("run.h5");
  if (!record_capture(model, request, plan_capture(model, request), path,
                      CaptureWriter::Existing::refuse, job))
    return std::nullopt;
  const auto reader = CaptureReader::open(path);
  const SinkReport report = sink_report(*reader, reader->runs(), SinkOptions{});
  if (!report.all.residual.sinks.empty()) return std::vector{report.all.residual.sinks.front().dim};
  if (!report.all.runs_with_massive_dim.empty())
    return std::vector{report.all.runs_with_massive_dim.front().first};
  throw Error(ErrorKind::invalid_argument,
              "--dims auto: no residual sink and no massive dimension on these prompts; name one");
}

std::vector<ProbeMode> all_probe_modes() {
  std::vector<ProbeMode> modes;
  for (int i = 0; i <= static_cast<int>(ProbeMode::remove_const); ++i)
    modes.push_back(static_cast<ProbeMode>(i));
  return modes;
}

std::vector<ProbeRow> probes_of(const ArchSpec& spec, bool each,
                                const std::vector<PositionFilter>& positions,
                                std::vector<ProbeMode> modes) {
  std::vector<ProbeReader> readers = probe_readers(spec.n_layers, each);
  std::erase_if(readers, [&](const ProbeReader& reader) {
    if (reader.norms.empty()) return false;
    const std::string& name = reader.norms.front();
    return (!spec.has_ln1 && name.ends_with("ln1")) || (!spec.has_ln2 && name.ends_with("ln2"));
  });
  if (spec.norm_kind == NormKind::layer_norm) std::erase(modes, ProbeMode::denominator);
  return planned_probes(readers, positions, modes);
}

bool measure_probes(const ModelFiles& model, EvaluateRequest request, ProbeTable& table,
                    JobContext job) {
  for (const ProbeRow& row : table.rows)
    request.variants.push_back(probe_edits(row, table.dims, table.tau));
  const auto result = load_engine().evaluate(model, request, job);
  if (!result) return false;
  table.loss = mean_of(result->loss[0], false);
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    table.rows[i].delta_loss = mean_of(result->loss[i + 1], false) - table.loss;
    table.rows[i].kl = mean_of(result->kl[i], true);
  }
  return true;
}

EvaluateRequest evaluate_like(const CaptureRequest& request) {
  EvaluateRequest evaluate;
  evaluate.runs = request.runs;
  evaluate.device = request.device;
  evaluate.dtype = request.dtype;
  evaluate.threads = request.threads;
  evaluate.weight_budget = request.weight_budget;
  evaluate.activation_budget = request.activation_budget;
  return evaluate;
}

}  // namespace sinkscope
