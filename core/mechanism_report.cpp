// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mechanism_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/number_text.h"
#include "core/site_name.h"

namespace sinkscope {
namespace {

using Json = nlohmann::ordered_json;

// Over the dimensions of a gated norm; NaN is left out.
struct GateSummary {
  double mean = 0, corr = 0, min = 0, max = 0;
  int min_dim = -1, max_dim = -1;
};

double finite_mean(const std::vector<double>& values) {
  double sum = 0, n = 0;
  for (const double value : values)
    if (std::isfinite(value)) sum += value, ++n;
  return n > 0 ? sum / n : std::numeric_limits<double>::quiet_NaN();
}

GateSummary summary_of(const NormGate& gate) {
  GateSummary s;
  s.mean = finite_mean(gate.mean);
  s.corr = finite_mean(gate.corr);
  s.min = s.max = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t d = 0; d < gate.mean.size(); ++d) {
    const double value = gate.mean[d];
    if (!std::isfinite(value)) continue;
    if (s.min_dim < 0 || value < s.min) s.min = value, s.min_dim = static_cast<int>(d);
    if (s.max_dim < 0 || value > s.max) s.max = value, s.max_dim = static_cast<int>(d);
  }
  return s;
}

// Lines of a [layer][head] table.
std::string head_lines(const std::vector<int>& layers, const MatrixD& values, int n_layers) {
  std::string out;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    out += "  " + pad_right(layer_label(layers[i], n_layers), 22);
    for (Eigen::Index h = 0; h < values.cols(); ++h)
      out += pad_left(readable(values(static_cast<Eigen::Index>(i), h)), 9);
    out += '\n';
  }
  return out;
}

std::string gates_text(const std::vector<NormGate>& gates, int n_layers) {
  if (gates.empty()) return "";
  std::string out =
      "\nNorm gates  [mean over tokens; corr: of |y| with the gate over tokens, mean over "
      "dimensions]\n"
      "                                  mean    lowest dim          highest dim         corr\n";
  for (const NormGate& gate : gates) {
    const GateSummary s = summary_of(gate);
    out += fmt::format(
        "  {}{} {}  {} {}  {} {}  {}\n", pad_right(layer_label(gate.layer, n_layers), 22),
        pad_right(gate.role, 5), pad_left(readable(s.mean), 8), pad_left(readable(s.min), 8),
        pad_right("dim " + std::to_string(s.min_dim), 10), pad_left(readable(s.max), 8),
        pad_right("dim " + std::to_string(s.max_dim), 10), pad_left(readable(s.corr), 7));
  }
  return out;
}

std::string depth_text(const Mechanisms& m) {
  if (m.depth.empty()) return "";
  std::string out =
      "\nAttention over depth  [weights of what is read, mean over tokens; the stream is a sum "
      "that "
      "restarts]\n";
  std::string restarts;
  for (const int layer : m.block_layers)
    restarts += fmt::format("{}blocks.{}", restarts.empty() ? "" : ", ", layer);
  out += fmt::format("  restarts at {}\n  {}embedding", restarts, pad_right("", 30));
  for (std::size_t b = 1; b < m.block_layers.size(); ++b)
    out += pad_left(fmt::format("sum {}", b), 8);
  out += "  (last: the newest sum)   branches\n";
  for (const DepthMixUse& mix : m.depth) {
    out += "  " + pad_right(mix.target, 30);
    for (const double mean : mix.use.mean) out += fmt::format(" {:7.3f}", mean);
    out += std::string(
        static_cast<std::size_t>(
            8 * std::max(0, m.n_sources() - static_cast<int>(std::ssize(mix.use.mean)))),
        ' ');
    out += fmt::format("   {:8.2f}\n", mix.use.effective_branches);
  }
  return out;
}

}  // namespace

Json mechanisms_json(const Mechanisms& m, JsonNumbers& numbers) {
  Json out = Json::object();
  for (const NormGate& gate : m.norm_gates) {
    const GateSummary s = summary_of(gate);
    out["norm_gates"].push_back({{"role", gate.role},
                                 {"layer", gate.layer},
                                 {"mean", numbers.number(s.mean)},
                                 {"min", numbers.number(s.min)},
                                 {"min_dim", s.min_dim},
                                 {"max", numbers.number(s.max)},
                                 {"max_dim", s.max_dim},
                                 {"corr", numbers.number(s.corr)}});
  }
  if (!m.gate_layers.empty())
    out["attention_gate"] = {{"layers", m.gate_layers}, {"mean", numbers.matrix(m.attn_gate)}};
  if (!m.sink_layers.empty())
    out["sink_share"] = {{"layers", m.sink_layers}, {"mean", numbers.matrix(m.sink_share)}};
  if (!m.depth.empty()) {
    Json mixes = Json::array();
    for (const DepthMixUse& mix : m.depth)
      mixes.push_back({{"target", mix.target},
                       {"layer", mix.layer},
                       {"mean", numbers.list(mix.use.mean)},
                       {"top1", numbers.number(mix.use.top1)},
                       {"effective_branches", numbers.number(mix.use.effective_branches)},
                       {"embedding", numbers.number(mix.use.embedding)},
                       {"newest", numbers.number(mix.use.newest)},
                       {"concentrated", numbers.number(mix.use.concentrated)}});
    out["depth"] = {{"block_layers", m.block_layers}, {"mixes", std::move(mixes)}};
  }
  if (!m.linear_layers.empty())
    out["linear_attention"] = {{"layers", m.linear_layers},
                               {"state_norm", numbers.matrix(m.state_norm)},
                               {"last_state_norm", numbers.matrix(m.last_state_norm)}};
  return out;
}

std::string mechanisms_text(const Mechanisms& m, int n_layers) {
  std::string out = gates_text(m.norm_gates, n_layers);
  if (!m.gate_layers.empty())
    out += "\nGate of the attention output, by head  [mean over tokens and channels]\n" +
           head_lines(m.gate_layers, m.attn_gate, n_layers);
  if (!m.sink_layers.empty())
    out += "\nSink share, by head  [mean over tokens of the attention that goes to no key]\n" +
           head_lines(m.sink_layers, m.sink_share, n_layers);
  out += depth_text(m);
  if (!m.linear_layers.empty())
    out +=
        "\nStates of linear attention, by head  [root of the sum of squares, mean over tokens; no "
        "softmax attention in these layers]\n" +
        head_lines(m.linear_layers, m.state_norm, n_layers);
  return out;
}

std::vector<MechanismRow> mechanism_rows(const Mechanisms& m) {
  std::vector<MechanismRow> rows;
  for (const NormGate& gate : m.norm_gates) {
    const GateSummary s = summary_of(gate);
    const std::string site = fmt::format("blocks.{}.{}.hook_gate", gate.layer, gate.role);
    rows.push_back({"norm_gate.mean", gate.layer, -1, site, -1, s.mean});
    rows.push_back({"norm_gate.min", gate.layer, -1, site, s.min_dim, s.min});
    rows.push_back({"norm_gate.max", gate.layer, -1, site, s.max_dim, s.max});
    rows.push_back({"norm_gate.corr", gate.layer, -1, site, -1, s.corr});
  }
  const auto heads = [&](const char* quantity, const std::vector<int>& layers, const MatrixD& of) {
    for (std::size_t i = 0; i < layers.size(); ++i)
      for (Eigen::Index h = 0; h < of.cols(); ++h)
        rows.push_back({quantity, layers[i], static_cast<int>(h), "", -1,
                        of(static_cast<Eigen::Index>(i), h)});
  };
  heads("attention_gate.mean", m.gate_layers, m.attn_gate);
  heads("sink_share.mean", m.sink_layers, m.sink_share);
  for (const DepthMixUse& mix : m.depth) {
    for (std::size_t s = 0; s < mix.use.mean.size(); ++s)
      rows.push_back(
          {"depth.mean", mix.layer, -1, mix.target, static_cast<int>(s), mix.use.mean[s]});
    for (const auto& [name, value] :
         {std::pair{"depth.top1", mix.use.top1},
          std::pair{"depth.effective_branches", mix.use.effective_branches},
          std::pair{"depth.concentrated", mix.use.concentrated}})
      rows.push_back({name, mix.layer, -1, mix.target, -1, value});
  }
  heads("linear_attention.state_norm", m.linear_layers, m.state_norm);
  heads("linear_attention.last_state_norm", m.linear_layers, m.last_state_norm);
  return rows;
}

std::vector<std::pair<std::string, std::string>> mechanism_conventions(const Mechanisms& m) {
  std::vector<std::pair<std::string, std::string>> out;
  if (!m.norm_gates.empty()) {
    out.emplace_back(
        "mechanisms.norm_gates",
        "gate of a gated norm after the sigmoid, mean over tokens; over dimensions its "
        "mean and its extremes");
    out.emplace_back("mechanisms.norm_gates.corr",
                     "Pearson correlation over tokens of |y| in front of the gate with the gate, "
                     "mean over dimensions");
  }
  if (!m.gate_layers.empty())
    out.emplace_back("mechanisms.attention_gate",
                     "gate of the attention output after the sigmoid, mean over tokens and the "
                     "head's channels; [layer of layers][head]");
  if (!m.sink_layers.empty())
    out.emplace_back("mechanisms.sink_share",
                     "share of a query's attention that goes to no key (learned or "
                     "input-dependent sink logits), mean over all queries; [layer][head]");
  if (!m.depth.empty())
    out.emplace_back(
        "mechanisms.depth",
        "weights of the normed sums that a half of a block reads, mean over tokens: the "
        "embedding first, the newest sum last; effective_branches = mean of exp(H), "
        "top1 = mean of the largest, concentrated = share of tokens with one above "
        "0.9; dim in the CSV is the source");
  if (!m.linear_layers.empty())
    out.emplace_back("mechanisms.linear_attention",
                     "root of the sum of squares of a head's state behind each token, mean over "
                     "tokens, and of the last token; these layers have no softmax attention");
  return out;
}

}  // namespace sinkscope
