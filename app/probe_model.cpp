// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/probe_model.h"

#include <algorithm>
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

int n_chosen(const PositionFilter& at, const std::vector<RunInput>& runs) {
  int n = 0;
  for (const RunInput& run : runs)
    for (int t = 0; t < run.seq_len(); ++t)
      n += at.matches(t, run.token_ids[static_cast<std::size_t>(t)]) ? 1 : 0;
  return n;
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

void plan_probes(const ArchSpec& spec, const std::vector<RunInput>& runs, ProbePlan plan,
                 ProbeTable& table) {
  table.model = spec.name;
  for (const RunInput& run : runs) table.n_tokens += run.seq_len();
  if (table.n_tokens == static_cast<std::int64_t>(runs.size()))
    throw Error(ErrorKind::invalid_argument,
                "expected a prompt of at least two tokens, found one: a probe's cost is the loss "
                "of the next token");
  std::vector<ProbeReader> readers = probe_readers(spec.n_layers, plan.each);
  std::erase_if(readers, [&](const ProbeReader& reader) {
    if (reader.norms.empty()) return false;
    const std::string& name = reader.norms.front();
    return (!spec.has_ln1 && name.ends_with("ln1")) || (!spec.has_ln2 && name.ends_with("ln2"));
  });
  if (spec.norm_kind == NormKind::layer_norm) std::erase(plan.modes, ProbeMode::denominator);
  if (plan.modes.empty())
    throw Error(ErrorKind::unsupported,
                "--modes: \"denominator\" is defined for RMS norms, this model has LayerNorm");
  for (const PositionFilter& at : plan.positions)
    if (n_chosen(at, runs) == 1) table.single.push_back(at);
  table.rows = planned_probes(readers, plan.positions, plan.modes);
  std::erase_if(table.rows, [&](const ProbeRow& row) {
    return !row.is_control && takes_mean(row.mode) && table.is_single(row.at);
  });
  if (std::all_of(table.rows.begin(), table.rows.end(),
                  [](const ProbeRow& row) { return row.is_control; }))
    throw Error(ErrorKind::invalid_argument,
                "--modes: expected one that does not set a mean, or more positions: a mean over a "
                "single position is its value");
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
