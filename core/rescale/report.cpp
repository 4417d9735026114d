// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/rescale/report.h"

#include <fmt/format.h>

#include "core/capture_norms.h"
#include "core/error.h"
#include "core/rescale/head_evidence.h"
#include "core/rescale/norm_evidence.h"

namespace sinkscope {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorKind::invalid_argument, message);
}

void check(const CaptureReader& reader, const std::string& run, const ModelFacts& model,
           const RescaleReport& report) {
  const RescaleOptions& options = report.options;
  if (model.n_kv_heads < 1 || model.n_heads < 1 || model.n_heads % model.n_kv_heads != 0)
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: expected n_heads a multiple of n_kv_heads, found {} and {}",
                            reader.path(), model.n_heads, model.n_kv_heads));
  if (model.n_streams > 1)
    throw Error(ErrorKind::unsupported,
                fmt::format("{}: the rescaling of outliers is a statement about one residual "
                            "stream; this model has {}",
                            reader.path(), model.n_streams));
  for (int d : options.dims)
    if (d < 0 || d >= model.d_model)
      refuse(fmt::format("dims: {} does not exist, expected 0 to {}", d, model.d_model - 1));
  if (!options.dims.empty() && !reader.has(run, "residual/stream"))
    refuse(fmt::format("{}: chosen dimensions need the recorded stream (capture --record stream)",
                       reader.path()));
  if (!options.dims.empty() && !norms_read_stream(reader, run))
    refuse(
        fmt::format("{}: chosen dimensions: the norms of this model read mixes over depth, not "
                    "the recorded stream",
                    reader.path()));
  if (options.key < 0 || options.key >= report.n_tokens)
    refuse(
        fmt::format("key: {} does not exist, expected 0 to {}", options.key, report.n_tokens - 1));
  if (!(options.clip >= 0)) refuse(fmt::format("clip: expected above 0, found {}", options.clip));
}

}  // namespace

RescaleReport rescale_report(const CaptureReader& reader, const std::string& run,
                             const RescaleOptions& options, const WeightRows& weights) {
  const ModelFacts model = reader.model(run);
  const RunInput input = reader.input(run);
  RescaleReport report;
  report.path = reader.path();
  report.run = run;
  report.model = model.name;
  report.n_layers = model.n_layers;
  report.n_tokens = input.seq_len();
  report.options = options;
  report.token_text = input.token_text;
  check(reader, run, model, report);
  add_norm_evidence({reader, run, model, weights}, report);
  add_head_evidence({reader, run, model, weights}, report);
  return report;
}

}  // namespace sinkscope
