// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/snapshot/what_if_snapshot.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/number_text.h"

namespace sinkscope {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::string moved(const char* what, const std::string& before, const std::string& after) {
  return before == after ? fmt::format("{}: {}, as before", what, after)
                         : fmt::format("{}: {}; now {}", what, before, after);
}

}  // namespace

WhatIfResult read_what_if_result(const CaptureReader& reader, const SinkReport* baseline) {
  WhatIfResult result;
  result.path = reader.path();
  const std::string run = reader.runs().front();
  const std::vector<std::string> twins = reader.edits(run);
  if (twins.empty())
    throw Error(ErrorKind::not_found, fmt::format("{}: {} has no twin", reader.path(), run));
  result.before = read_run_facts(reader, run);
  result.after = read_run_facts(reader, twins.front());
  result.outcome = what_if_outcome(reader, 0, SinkOptions{}, baseline);
  if (reader.has(twins.front(), "compare/kl")) {
    result.kl = reader.read_f64(twins.front(), "compare/kl");
    if (!result.kl.empty()) result.kl.pop_back();  // the last position has no next token
  }
  const Compared<Outliers>& at = result.outcome.outliers;
  result.outlier_text =
      moved("largest |x|", largest_text(at.baseline, false), largest_text(at.edited, false)) +
      '\n' + moved("attention sinks", sink_text(at.baseline, false), sink_text(at.edited, false));
  return result;
}

std::vector<OutcomeLine> outcome_lines(const WhatIfOutcome& outcome) {
  std::vector<OutcomeLine> lines = {
      {"loss, nats a token", outcome.loss.baseline, outcome.loss.edited},
      {"perplexity", std::exp(outcome.loss.baseline), std::exp(outcome.loss.edited)},
      {"KL(before ‖ after), mean", kNaN, outcome.kl_mean},
      {fmt::format("KL(before ‖ after), largest: token {}", outcome.kl_max_token), kNaN,
       outcome.kl_max}};
  for (const auto& [name, values] : outcome.metrics)
    lines.push_back({name, values.baseline, values.edited});
  return lines;
}

CompareSnapshot read_before_after(const CaptureReader& reader, const WhatIfResult& result,
                                  const BeforeAfterRequest& request, const std::stop_token& stop) {
  std::vector<CompareSide> sides;
  for (const RunFacts* facts : {&result.before, &result.after}) {
    const std::string title = facts == &result.before ? "before" : "after";
    if (request.kind == MapKind::attention) {
      AttentionRequest map;
      map.run = facts->run;
      map.layers = {request.layer};
      map.heads = {request.head};
      sides.push_back(compare_side(read_attention(reader, map, stop), title));
    } else {
      ResidualRequest map;
      map.run = facts->run;
      map.site = fmt::format("blocks.{}.hook_resid_post", request.layer);
      map.order = DimOrder::natural;
      sides.push_back(compare_side(read_residual(reader, map), title));
    }
  }
  return compare(std::move(sides));
}

}  // namespace sinkscope
