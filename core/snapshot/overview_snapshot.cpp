// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/snapshot/overview_snapshot.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "core/site_name.h"

namespace sinkscope {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
// The one flavor that every capture allows for whole states without the stream.
const char* const kKurtosisColumn = "pearson_tensor";

Grid heads_down(const MatrixD& scores) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(scores.size()));
  for (Eigen::Index h = 0; h < scores.cols(); ++h)
    for (Eigen::Index a = 0; a < scores.rows(); ++a) values.push_back(scores(a, h));
  return Grid(static_cast<int>(scores.cols()), static_cast<int>(scores.rows()), std::move(values));
}

// Places of the block states among the sites, in order of depth.
std::vector<std::size_t> block_states(const std::vector<std::string>& sites) {
  std::vector<std::size_t> places;
  for (std::size_t s = 0; s < sites.size(); ++s) {
    const std::string hook = SiteName::parse(sites[s]).hook;
    if (hook == "hook_resid_post" || (hook == "hook_resid_pre" && s == 0)) places.push_back(s);
  }
  return places;
}

template <class Value>
DepthLine over_states(const std::vector<std::size_t>& states, std::string name,
                      std::string convention, Value value) {
  DepthLine line{std::move(name), std::move(convention), {}, {}};
  for (std::size_t i = 0; i < states.size(); ++i) {
    line.positions.push_back(static_cast<int>(i));
    line.values.push_back(value(states[i]));
  }
  return line;
}

void take_residual(const ResidualReport& report, OverviewSnapshot& out) {
  const std::vector<std::size_t> states = block_states(report.sites);
  out.max_abs = over_states(
      states, "max |x|", "largest |x| of the block state, all its tokens",
      [&](std::size_t s) { return report.max_abs[s].token < 0 ? kNaN : report.max_abs[s].value; });
  out.median_abs =
      over_states(states, "median |x|", "element (n−1)//2 of the sorted |x| of the block state",
                  [&](std::size_t s) { return report.median_abs[s]; });
  for (const auto& [flavor, column] : report.kurtosis)
    if (flavor == kKurtosisColumn)
      out.kurtosis = over_states(states, "kurtosis (Pearson, per tensor)",
                                 "m4 / m2² over all values of the block state, a Gaussian gives 3",
                                 [&values = column](std::size_t s) { return values[s]; });
}

void take_attention(const AttentionSinks& sinks, int n_heads, OverviewSnapshot& out) {
  out.layers = sinks.layers;
  out.n_heads = n_heads;
  if (sinks.layers.empty()) return;
  out.gu = heads_down(sinks.gu.score);
  out.with_row0 = heads_down(sinks.with_row0);
  out.without_row0 = heads_down(sinks.without_row0);
  out.sink_ratio = sinks.gu.sink_ratio;
  out.sink_tokens = sinks.sink_tokens;
  out.mean_score = {"sink score, mean over heads", describe(ScoreKind::gu, sinks.gu.key), {}, {}};
  out.max_score = {"sink score, largest head", describe(ScoreKind::gu, sinks.gu.key), {}, {}};
  for (std::size_t a = 0; a < sinks.layers.size(); ++a) {
    for (DepthLine* line : {&out.mean_score, &out.max_score})
      line->positions.push_back(sinks.layers[a]);
    out.mean_score.values.push_back(sinks.gu.layers[a].mean);
    out.max_score.values.push_back(sinks.gu.layers[a].max);
  }
}

void add_heads(const char* name, const char* convention, const std::vector<int>& layers,
               const MatrixD& values, bool is_share, OverviewSnapshot& out) {
  if (layers.empty() || values.size() == 0) return;
  MechanismMap map{name, convention, "head", "layer", heads_down(values), layers, {}, {}};
  map.is_share = is_share;
  out.mechanisms.push_back(std::move(map));
}

// "L2 attn k" of "blocks.2.depth_attn (keys)": what fits beside a column.
std::string short_name(const DepthMixUse& mix) {
  if (mix.layer < 0) return "final";
  const bool is_attention = mix.target.find("depth_attn") != std::string::npos;
  const std::size_t input = mix.target.find(" (");
  return fmt::format("L{} {}{}", mix.layer, is_attention ? "attn" : "mlp",
                     input == std::string::npos ? "" : ' ' + mix.target.substr(input + 2, 1));
}

// Sources downwards, who reads them to the right; the newest sum is in the last row for all.
void add_depth(const Mechanisms& mechanisms, OverviewSnapshot& out) {
  const int n_sources = mechanisms.n_sources();
  if (n_sources == 0) return;
  MechanismMap map{"Depth weights",
                   "attention over depth: mean weight of each sum in what a half of a block reads",
                   "sum",
                   "read by",
                   {},
                   {},
                   {},
                   {}};
  map.has_heads = false;
  const auto n_mixes = static_cast<int>(mechanisms.depth.size());
  std::vector<double> values(static_cast<std::size_t>(n_sources * n_mixes), kNaN);
  for (int column = 0; column < n_mixes; ++column) {
    const DepthMixUse& mix = mechanisms.depth[static_cast<std::size_t>(column)];
    map.layers.push_back(mix.layer);
    map.col_labels.push_back(short_name(mix));
    const auto n = static_cast<int>(mix.use.mean.size());
    for (int source = 0; source < n; ++source) {
      const int row = source + 1 == n ? n_sources - 1 : source;
      values[static_cast<std::size_t>(row * n_mixes + column)] =
          mix.use.mean[static_cast<std::size_t>(source)];
    }
  }
  for (int source = 0; source < n_sources; ++source)
    map.row_labels.push_back(source == 0               ? "embedding"
                             : source + 1 == n_sources ? "newest sum"
                                                       : fmt::format("sum {}", source));
  map.values = Grid(n_sources, n_mixes, std::move(values));
  out.mechanisms.push_back(std::move(map));
}

void take_mechanisms(const Mechanisms& m, OverviewSnapshot& out) {
  add_heads("Sink share", "share of attention that goes to no key, mean over the queries",
            m.sink_layers, m.sink_share, true, out);
  add_heads("Attention gate", "gate of the attention output, mean over tokens and channels",
            m.gate_layers, m.attn_gate, true, out);
  add_depth(m, out);
  add_heads("State of linear attention",
            "‖S‖ of each head's state, mean over tokens; these layers have no softmax attention",
            m.linear_layers, m.state_norm, false, out);
  if (!m.block_layers.empty())
    out.stream_text = fmt::format("running sum, restarts at {} blocks", m.block_layers.size());
}

// A finding reads "sentence [criterion]".
Finding split_finding(const std::string& text) {
  const std::size_t at = text.rfind(" [");
  if (at == std::string::npos || text.back() != ']') return {text, ""};
  return {text.substr(0, at), text.substr(at + 2, text.size() - at - 3)};
}

void take_findings(const SinkReport& report, OverviewSnapshot& out) {
  for (const std::string& text : sink_findings(report)) out.findings.push_back(split_finding(text));
  const RunReport& run = report.runs.front();
  if (out.findings.size() < 3) return;
  if (!run.attention.sink_tokens.empty()) {
    const SinkToken& sink = run.attention.sink_tokens.front();
    out.findings[0].layer = sink.layer;
    out.findings[0].head = sink.head;
    out.findings[0].key = sink.token;
  }
  if (!run.residual.massive_groups.empty()) {
    const MassiveGroup& group = run.residual.massive_groups.front();
    out.findings[1].layer = SiteName::parse(group.peak.site).layer;
    out.findings[1].token = group.token;
    out.findings[1].dim = group.dim;
  }
  if (!report.all.residual.sinks.empty()) {
    out.findings[2].layer = SiteName::parse(report.all.residual.sinks.front().site).layer;
    out.findings[2].dim = report.all.residual.sinks.front().dim;
  }
}

}  // namespace

SinkOptions OverviewRequest::without_stream() {
  SinkOptions options;
  options.use_stream = false;
  return options;
}

std::string describe(ScoreKind kind, int key) {
  switch (kind) {
    case ScoreKind::gu:
      return fmt::format(
          "Gu's sink score of key {}: mean attention from the queries that can see it (2410.10781)",
          key);
    case ScoreKind::with_row0:
      return "first-token score: mean attention to key 0 over all queries, query 0 included "
             "(2601.22966)";
    case ScoreKind::without_row0:
      return "first-token score: mean attention to key 0 over queries 1 and later";
  }
  return "";
}

const Grid& OverviewSnapshot::score(ScoreKind kind) const {
  return kind == ScoreKind::gu ? gu : kind == ScoreKind::with_row0 ? with_row0 : without_row0;
}

OverviewSnapshot read_overview(const CaptureReader& reader, const OverviewRequest& request) {
  OverviewSnapshot out;
  out.request = request;
  out.facts = read_run_facts(reader, request.run);
  const SinkReport report = sink_report(reader, {request.run}, request.options);
  const RunReport& run = report.runs.front();
  take_attention(run.attention, out.facts.model.n_heads, out);
  take_residual(run.residual, out);
  take_findings(report, out);
  take_mechanisms(run.mechanisms, out);
  return out;
}

}  // namespace sinkscope
