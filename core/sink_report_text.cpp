// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/mechanism_report.h"
#include "core/number_text.h"
#include "core/sink_conventions.h"
#include "core/sink_report.h"
#include "core/state_rows.h"

namespace sinkscope {
namespace {

constexpr std::size_t kShown = 8;  // rows of a list before "… N more"

std::string more(std::size_t n) {
  return n > kShown ? fmt::format("  … {} more\n", n - kShown) : "";
}

// ▁ to █ for 0 to 1, · below 1/16; a space where there is no head.
std::string bar(double share) {
  static const char* const kBars[] = {"·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (std::isnan(share)) return " ";
  const int level = static_cast<int>(std::lround(8 * std::clamp(share, 0.0, 1.0)));
  return kBars[level];
}

std::string header(const SinkReport& report) {
  const ModelFacts& m = report.model;
  std::string out = fmt::format("Sinks of {}", m.name.empty() ? report.path : m.name);
  out += fmt::format(" · {} · {} layers, {} heads, {} dimensions\n", m.architecture, m.n_layers,
                     m.n_heads, m.d_model);
  if (const std::string note = streams_note(m); !note.empty()) out += note + ".\n";
  if (!report.complete) {
    out += fmt::format("The capture is not complete: {} of {} layers are there.\n",
                       report.layers_done, m.n_layers);
  }
  if (!report.left_out.empty()) {
    out += fmt::format("{} runs have fewer and are left out.\n", report.left_out.size());
  }
  if (report.options.at.kind != PositionFilter::Kind::all) {
    out += fmt::format("Residual numbers are over {}.\n", describe_positions(report.options.at));
  }
  const std::string non_finite = non_finite_warning(non_finite_values(report));
  if (!non_finite.empty()) out += fmt::format("Not all is finite: {}.\n", non_finite);
  return out;
}

std::string layer_table(const AttentionSinks& a, const SinkOptions& options, int n_layers) {
  const int width = std::max(6, static_cast<int>(a.gu.score.cols()));
  std::string out = fmt::format("  {}  {}   mean    max  head  > {:g}\n",
                                pad_right("key " + std::to_string(a.gu.key), 22),
                                pad_right("heads", width), options.epsilon);
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    std::string heads;
    for (Eigen::Index h = 0; h < a.gu.score.cols(); ++h) {
      heads += bar(a.gu.score(static_cast<Eigen::Index>(i), h));
    }
    const HeadSummary& s = a.gu.layers[i];
    out += fmt::format("  {}  {}  {:5.3f}  {:5.3f}  {:4}  {:3.0f} %\n",
                       pad_right(layer_label(a.layers[i], n_layers), 22), pad_right(heads, width),
                       s.mean, s.max, s.max_head, 100 * s.share_above);
  }
  return out;
}

std::string attention_section(const SinkReport& report, const RunReport& run) {
  const AttentionSinks& a = run.attention;
  std::string out = fmt::format("\nAttention sinks  [{}]\n", sink_token_criterion(report.options));
  if (a.layers.empty())
    return out + (!report.complete && report.layers_done == 0 ? "  no whole layer yet\n"
                                                              : "  no softmax attention here\n");
  for (std::size_t i = 0; i < std::min(kShown, a.sink_tokens.size()); ++i) {
    const SinkToken& t = a.sink_tokens[i];
    out += fmt::format(
        "  token {:<5} {} {:4} of {} heads   max {:.3f} in {}, head {}   mean {:.3f}{}\n", t.token,
        pad_right(quoted(t.text, 16), 18), t.heads, a.gu.sink_ratio.cells, t.max_score,
        layer_label(t.layer, report.model.n_layers), t.head, t.mean_score,
        t.special ? "   special" : "");
  }
  if (!a.can_be_judged())
    out += fmt::format("  cannot be looked for: {}\n", why_not_judged(a, report.options));
  else if (a.sink_tokens.empty())
    out += "  none\n";
  out += more(a.sink_tokens.size());
  out += fmt::format("  first-token score of the mean map: {:.3f} with row 0, {:.3f} without\n",
                     a.mean_map.with_row0, a.mean_map.without_row0);
  out += fmt::format("  sink ratio of key {}: {:.3f} ({} of {} heads)\n", a.gu.key,
                     a.gu.sink_ratio.ratio, a.gu.sink_ratio.above, a.gu.sink_ratio.cells);
  return out + layer_table(a, report.options, report.model.n_layers);
}

std::string massive_section(const SinkReport& report, const RunReport& run) {
  const ResidualReport& r = run.residual;
  std::string out = fmt::format("\nMassive activations  [{}]\n",
                                massive_criterion(report.options, r.massive_mode));
  if (r.massive_groups.empty()) {
    const auto top =
        std::max_element(r.max_abs.begin(), r.max_abs.end(),
                         [](const Peak& a, const Peak& b) { return a.value < b.value; });
    if (top == r.max_abs.end()) return out + "  none\n";
    const auto s = static_cast<std::size_t>(top - r.max_abs.begin());
    return out +
           fmt::format("  none; the largest |h| is {} at {}, token {} {} dim {}\n",
                       readable(top->value), r.sites[s], top->token,
                       top->token < 0
                           ? ""
                           : quoted(run.input.token_text[static_cast<std::size_t>(top->token)], 16),
                       top->dim);
  }
  for (std::size_t i = 0; i < std::min(kShown, r.massive_groups.size()); ++i) {
    const MassiveGroup& g = r.massive_groups[i];
    const std::string& text = run.input.token_text[static_cast<std::size_t>(g.token)];
    out += fmt::format(
        "  {}  {}  token {} {}  dim {:<5} {} x median, {} of {} sites from {} to {}\n",
        pad_right(g.peak.site, 26), pad_left(readable(g.peak.value), 10), g.token, quoted(text, 16),
        g.dim, readable(g.peak.ratio), g.n_sites, r.sites.size(), g.first_site, g.last_site);
  }
  return out + more(r.massive_groups.size());
}

// For one run, and for all of them pooled.
std::string residual_section(const SinkReport& report, const ResidualReport& r) {
  std::string out =
      fmt::format("\nResidual sinks  [{}]\n", residual_sink_criterion(report.options));
  for (std::size_t i = 0; i < std::min(kShown, r.sinks.size()); ++i) {
    const ResidualSink& s = r.sinks[i];
    out += fmt::format(
        "  dim {:<5}  {} of {} sites   {} x median at {}   argmax-hit {:.2f}   mean {} "
        "± {}\n",
        s.dim, s.n_sites, r.sites.size(), readable(s.ratio), s.site, s.argmax_hit, readable(s.mean),
        readable(s.sd));
  }
  out += more(r.sinks.size());
  const auto top = std::max_element(r.m2.begin(), r.m2.end(), [](double a, double b) {
    return std::isnan(a) ? !std::isnan(b) : a < b;
  });
  if (top == r.m2.end() || std::isnan(*top)) {
    out += "  cannot be looked for: no finite value at these positions\n";
  } else if (r.sinks.empty()) {
    const auto s = static_cast<std::size_t>(top - r.m2.begin());
    out += fmt::format("  none; M2 is {} at most, at {} in dimension {}\n", readable(*top),
                       r.sites[s], r.m2_dim[s]);
  }
  out += "\nSorted dimensions  [mean |h| over the block states]\n";
  const auto order = [&](const char* which, const std::vector<int>& dims) {
    const auto n = std::min<std::ptrdiff_t>(16, std::ssize(dims));
    if (n > 0)
      out += fmt::format("  {}{}\n", which, fmt::join(dims.begin(), dims.begin() + n, " "));
  };
  order("with token 0:     ", r.sorted_dims);
  order("without token 0:  ", r.sorted_dims_without_first);
  if (r.sorted_dims.empty() && r.sorted_dims_without_first.empty())
    out += "  no order: no dimension has finite values in every state\n";
  const int d_model = report.model.state_width();
  if (std::isnan(r.first_permille_ratio)) return out;
  return out + fmt::format("  first 1‰ ({} of {} dimensions): {:.1f} ‰ of all activation\n",
                           first_permille_count(d_model, report.options.permille), d_model,
                           r.first_permille_ratio);
}

std::string kurtosis_section(const RunReport& run) {
  const ResidualReport& r = run.residual;
  std::string out = "\nKurtosis  [named by flavor and flattening; compare only within one]\n";
  out += fmt::format("  {}{}{}  largest at\n", pad_right("", 24), pad_left("first site", 14),
                     pad_left("last site", 14));
  for (const auto& [flavor, values] : r.kurtosis) {
    if (values.empty()) continue;
    std::size_t top = 0;
    for (std::size_t s = 1; s < values.size(); ++s) {
      if (values[s] > values[top] || std::isnan(values[top])) top = s;
    }
    out += fmt::format("  {}{}{}  {} at {}\n", pad_right(flavor, 24),
                       pad_left(readable(values.front()), 14),
                       pad_left(readable(values.back()), 14), readable(values[top]), r.sites[top]);
  }
  const OutlierTensors& t = r.outlier_tensors;
  if (!t.names.empty()) {
    out +=
        fmt::format("  {} tensors of 2605.17887: average kurtosis {}, largest infinity norm {}\n",
                    t.names.size(), readable(t.avg_kurtosis), readable(t.max_inf_norm));
  }
  if (r.has_outlier_features) {
    const auto n = r.outlier_features.size();
    out += fmt::format("  LLM.int8 outlier features: {} dimensions{}{}\n", n, n > 0 ? ": " : "",
                       readable_list(r.outlier_features, 12));
  }
  return out;
}

std::string one_run(const SinkReport& report, const RunReport& run) {
  const std::vector<int>& bos = run.input.bos_positions;
  std::string out =
      fmt::format("{}{} · {} tokens · {}\n", run.name,
                  run.input.name.empty() ? "" : ' ' + quoted(run.input.name, 40),
                  run.input.seq_len(), bos.empty() ? "no BOS" : "BOS at " + readable_list(bos, 8));
  out += attention_section(report, run);
  out += mechanisms_text(run.mechanisms, report.model.n_layers);
  out += massive_section(report, run);
  out += residual_section(report, run.residual);
  return out + kurtosis_section(run);
}

const SpreadTable* find_spread(const AllRuns& all, const std::string& name) {
  const auto found = std::find_if(all.spreads.begin(), all.spreads.end(),
                                  [&](const SpreadTable& t) { return t.shape.name == name; });
  return found == all.spreads.end() ? nullptr : &*found;
}

std::string many_runs(const SinkReport& report) {
  const AllRuns& all = report.all;
  std::string out = fmt::format("{} runs\n\n  {}{}{}{}{}\n", all.n_runs,
                                pad_right("over the runs", 40), pad_left("mean", 11),
                                pad_left("sd", 11), pad_left("min", 11), pad_left("max", 11));
  for (const SpreadTable& t : all.spreads) {
    if (t.shape.axis != Quantity::Axis::none) continue;
    const Spread& s = t.cells.front();
    std::string name = t.shape.name;
    for (const char* prefix : {"attention.", "residual."}) {
      if (name.starts_with(prefix)) name.erase(0, std::string(prefix).size());
    }
    out += fmt::format("  {}{}{}{}{}\n", pad_right(name, 40), pad_left(readable(s.mean), 11),
                       pad_left(readable(s.sd), 11), pad_left(readable(s.min), 11),
                       pad_left(readable(s.max), 11));
  }
  if (const SpreadTable* score = find_spread(all, "attention.first_token_score.without_row0")) {
    out += "\n  first-token score without row 0, mean over the runs, layer by head\n";
    // Runs without attention have no part in the table.
    const auto run = std::find_if(report.runs.begin(), report.runs.end(), [&](const RunReport& r) {
      return std::ssize(r.attention.layers) == score->shape.rows;
    });
    for (int a = 0; a < score->shape.rows; ++a) {
      const int layer =
          run == report.runs.end() ? a : run->attention.layers[static_cast<std::size_t>(a)];
      out += "  " + pad_right(layer_label(layer, report.model.n_layers), 22);
      for (int h = 0; h < score->shape.cols; ++h) {
        out += fmt::format(" {:.2f}",
                           score->cells[static_cast<std::size_t>(a * score->shape.cols + h)].mean);
      }
      out += '\n';
    }
  }
  const auto counts = [&](const char* what, const std::vector<std::pair<int, int>>& list) {
    for (std::size_t i = 0; i < std::min(kShown, list.size()); ++i) {
      out +=
          fmt::format("  {} {}: {} of {} runs\n", what, list[i].first, list[i].second, all.n_runs);
    }
    out += more(list.size());
  };
  out += '\n';
  counts("attention sink on token", all.runs_with_sink_token);
  for (std::size_t i = 0; i < std::min(kShown, all.runs_with_sink_text.size()); ++i) {
    const auto& [text, n_runs] = all.runs_with_sink_text[i];
    out += fmt::format("  attention sink on a token {}: {} of {} runs\n", quoted(text), n_runs,
                       all.n_runs);
  }
  out += more(all.runs_with_sink_text.size());
  counts("massive dimension", all.runs_with_massive_dim);
  counts("residual sink dimension", all.runs_with_sink_dim);
  return out + residual_section(report, all.residual);
}

}  // namespace

std::string sink_report_text(const SinkReport& report) {
  std::string out = header(report);
  out += report.runs.size() == 1 ? one_run(report, report.runs.front()) : many_runs(report);
  out += "\nFindings\n";
  for (const std::string& sentence : sink_findings(report)) out += "  " + sentence + '\n';
  return out;
}

}  // namespace sinkscope
