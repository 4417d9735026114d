// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/json_numbers.h"
#include "core/rescale/report.h"
#include "core/residual_metrics.h"
#include "core/site_name.h"

namespace sinkscope {
namespace {

int most_common(const std::vector<int>& values, std::size_t first) {
  std::map<int, int> count;
  for (std::size_t i = first; i < values.size(); ++i) ++count[values[i]];
  int best = -1, most = 0;
  for (const auto& [value, n] : count)
    if (n > most) best = value, most = n;
  return best;
}

std::string place(const RescaleReport& report, const NormEvidence& e) {
  return e.layer < 0 ? e.role : fmt::format("{}.{}", layer_label(e.layer, report.n_layers), e.role);
}

int n_above(const RescaleReport& report) {
  int n = 0;
  for (const NormEvidence& e : report.norms) n += e.n_above;
  return n;
}

int n_not_finite(const RescaleReport& report) {
  int n = 0;
  for (const NormEvidence& e : report.norms) n += e.n_not_finite;
  return n;
}

std::string or_dash(double value) { return std::isnan(value) ? "-" : fmt::format("{:.4f}", value); }

std::vector<double> ratios(const std::vector<double>& after, const std::vector<double>& before) {
  std::vector<double> out(after.size());
  std::transform(after.begin(), after.end(), before.begin(), out.begin(), std::divides<>());
  return out;
}

std::string short_or_dash(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.4g}", value);
}

std::string ratio_or_dash(double after, double before) {
  return std::isfinite(after / before) ? fmt::format("{:.3g}", after / before) : "-";
}

std::string bound_sentence(const RescaleReport& report) {
  const int unknown = n_not_finite(report), above = n_above(report);
  const int points = static_cast<int>(report.norms.size()) * report.n_tokens - unknown;
  if (report.norms.empty()) return "no RMS norm here that the bounds of 2601.22966, A.1 are about";
  const std::string rest =
      unknown == 0 ? "" : fmt::format("; {} more are not finite, neither above nor below", unknown);
  return (above == 0
              ? fmt::format("all {} norm outputs lie below bounds (1) and (5) of 2601.22966, A.1",
                            points)
              : fmt::format("{} of {} norm outputs lie ABOVE a bound of 2601.22966, A.1: something "
                            "in this capture or model is not an RMSNorm",
                            above, points)) +
         rest;
}

void add_norm_rows(std::string& text, const RescaleReport& report, bool first_token) {
  const bool clips = report.options.clip > 0;
  text += fmt::format(
      "\n{}, median over tokens\n  {:<26} {:>6} {:>8} {:>8} {:>9} {:>8} {:>8} {:>9} {:>9} {:>9} "
      "{:>9} {:>11}{}\n",
      first_token ? "first token" : "all tokens but the first", "norm", "dim", "before", "after",
      "after/bef.", "alpha", "elastic.", "|gain d|", "rms", "bound 1", "bound 5", "next linear",
      clips ? "    clipped" : "");
  for (const NormEvidence& e : report.norms) {
    const std::size_t begin = first_token ? 0 : 1;
    const auto cut = [&](std::vector<double> values) {
      if (values.size() <= begin) return std::nan("");
      if (first_token && values.size() > 1) values.resize(1);
      return finite_median(std::span(values).subspan(begin));
    };
    std::vector<int> dims = e.dim;
    if (first_token) dims.resize(1);
    const double before = cut(e.r2), after = cut(e.share_after);
    const double next = cut(e.next_linear);
    text += fmt::format(
        "  {:<26} {:>6} {:>8.4f} {:>8} {:>9} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9} {:>11}",
        place(report, e), most_common(dims, begin), before, or_dash(after),
        ratio_or_dash(after, before), or_dash(cut(e.alpha)), or_dash(cut(e.elasticity)),
        short_or_dash(cut(e.gain_dim)), short_or_dash(cut(e.output_rms)),
        short_or_dash(cut(e.bound_1)), short_or_dash(cut(e.bound_5)), or_dash(next));
    text += clips ? fmt::format(" {:>10}\n", or_dash(cut(e.clip_growth))) : "\n";
  }
}

void add_head_rows(std::string& text, const RescaleReport& report) {
  if (report.heads.empty()) return;
  text += fmt::format(
      "\nattention on key {} ({}), median over queries; of each layer the head with the most\n"
      "  {:<24} {:>5} {:>8} {:>8} {:>10} {:>9} {:>11}\n",
      report.options.key, report.queries, "layer", "head", "before", "after", "after/bef.", "1 - p",
      "through W_o");
  for (std::size_t i = 0; i < report.heads.size();) {
    std::size_t best = i, end = i;
    while (end < report.heads.size() && report.heads[end].layer == report.heads[i].layer) {
      if (finite_median(report.heads[end].p) > finite_median(report.heads[best].p)) best = end;
      ++end;
    }
    const HeadEvidence& e = report.heads[best];
    const double before = finite_median(e.p), after = finite_median(e.share_after);
    text += fmt::format(
        "  {:<24} {:>5} {:>8.4f} {:>8.4f} {:>10} {:>9.4f} {:>11}\n",
        layer_label(e.layer, report.n_layers), e.head, before, after, ratio_or_dash(after, before),
        1 - before, e.through_o.empty() ? "-" : fmt::format("{:.4f}", finite_median(e.through_o)));
    i = end;
  }
}

}  // namespace

std::string rescale_text(const RescaleReport& report) {
  std::string text =
      fmt::format("{}, {}, {} tokens; outlier: {}\n", report.model, report.run, report.n_tokens,
                  report.options.dims.empty()
                      ? std::string("each token's largest dimension")
                      : fmt::format("dimension {}", fmt::join(report.options.dims, ", ")));
  add_norm_rows(text, report, true);
  if (report.n_tokens > 1) add_norm_rows(text, report, false);
  text +=
      "  before r^2 = h_d^2/|h|^2, after y_d^2/|y|^2, alpha = the factor on every other "
      "dimension (with eps),\n  elastic. = what passes through of a change of the others; |gain d| "
      "= "
      "|lambda_d|; rms = sqrt(mean y^2), which bounds (1) and (5) of 2601.22966, A.1 limit\n";
  if (report.options.clip > 0)
    text += fmt::format("  clipped = the factor on every other dimension with |h_d| <= {:g}\n",
                        report.options.clip);
  add_head_rows(text, report);
  text += fmt::format("\n{}\n", bound_sentence(report));
  for (const auto& [what, needs] : report.not_computed)
    text += fmt::format("not computed: {} ({})\n", what, needs);
  return text;
}

nlohmann::ordered_json rescale_json(const RescaleReport& report) {
  JsonNumbers numbers;
  nlohmann::ordered_json json = {
      {"schema", "sinkscope.rescale/1"},
      {"conventions",
       {{"r2", "share before: h_d^2 / |h|^2 of the norm's input"},
        {"share_after",
         "y_d^2 / |y|^2 of the norm's output, behind the gate of a gated norm; null: not computed"},
        {"alpha",
         "sqrt((m^2/D + eps) / ((m^2 + h_d^2)/D + eps)), m^2 without dimension d, before a gate"},
        {"suppression", "share_after / r2 of a norm, share_after / p of a head"},
        {"elasticity",
         "d ln|y_-d| / d ln|h_-d| = (r2 m + eps) / (m + eps), m = |h|^2/D: what passes through of "
         "a change of the others"},
        {"clip_growth",
         "sqrt((m^2 + h_d^2 + D eps) / (m^2 + c^2 + D eps)): the factor on all others with "
         "|h_d| <= c"},
        {"bound_1", "|lambda|_inf sqrt((1 - r^2) + e^2 r^2), on the root mean square"},
        {"bound_5", "sqrt(max_others^2 (1 - r^2) + lambda_d^2 r^2), on the root mean square"},
        {"lower", "sqrt(lambda_d^2 r^2 + min_others^2 (1 - r^2)); without eps"},
        {"next_linear", "|y_d| |W[:,d]| / |W y| of the linear layers behind the norm"},
        {"head_factor", "1 - p: the factor on everything that does not come from the key"},
        {"head_share_after", "p |v_key| / sum p |v|"},
        {"through_o",
         "|p W_o (g v_key)| / |W_o z| with the head's columns of W_o, g the gate of z if any"}}},
      {"file", report.path},
      {"run", report.run},
      {"model", report.model},
      {"layers", report.n_layers},
      {"tokens", report.n_tokens},
      {"token_text", report.token_text},
      {"dims", report.options.dims},
      {"key", report.options.key},
      {"clip", report.options.clip > 0 ? nlohmann::ordered_json(report.options.clip)
                                       : nlohmann::ordered_json()},
      {"points_above_bound", n_above(report)},
      {"points_not_finite", n_not_finite(report)},
      {"norms", nlohmann::ordered_json::array()},
      {"heads", nlohmann::ordered_json::array()}};
  for (const NormEvidence& e : report.norms) {
    nlohmann::ordered_json norm = {{"role", e.role},
                                   {"layer", e.layer},
                                   {"eps", e.eps},
                                   {"dim", e.dim},
                                   {"r2", numbers.list(e.r2)},
                                   {"share_after", numbers.list(e.share_after)},
                                   {"suppression", numbers.list(ratios(e.share_after, e.r2))},
                                   {"alpha", numbers.list(e.alpha)},
                                   {"elasticity", numbers.list(e.elasticity)},
                                   {"output_rms", numbers.list(e.output_rms)},
                                   {"gain_max", numbers.number(e.gain_max)},
                                   {"gain_dim", numbers.list(e.gain_dim)},
                                   {"bound_1", numbers.list(e.bound_1)},
                                   {"bound_5", numbers.list(e.bound_5)},
                                   {"lower", numbers.list(e.lower)}};
    if (!e.clip_growth.empty()) norm["clip_growth"] = numbers.list(e.clip_growth);
    if (!e.next_linear.empty()) norm["next_linear"] = numbers.list(e.next_linear);
    json["norms"].push_back(std::move(norm));
  }
  for (const HeadEvidence& e : report.heads) {
    nlohmann::ordered_json head = {{"layer", e.layer},
                                   {"head", e.head},
                                   {"query", e.query},
                                   {"p", numbers.list(e.p)},
                                   {"share_after", numbers.list(e.share_after)},
                                   {"suppression", numbers.list(ratios(e.share_after, e.p))}};
    if (!e.through_o.empty()) head["through_o"] = numbers.list(e.through_o);
    json["heads"].push_back(std::move(head));
  }
  json["queries"] = report.queries;
  json["not_computed"] = report.not_computed;
  json["non_finite_values"] = numbers.n_non_finite();
  return json;
}

std::string rescale_csv(const RescaleReport& report) {
  std::string text =
      "role,layer,token,dim,r2,share_after,alpha,output_rms,bound_1,bound_5,lower,next_linear,"
      "elasticity,clip_growth,suppression,gain_dim,gain_max\n";
  for (const NormEvidence& e : report.norms)
    for (std::size_t t = 0; t < e.r2.size(); ++t)
      text += fmt::format(
          "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", e.role, e.layer, t, e.dim[t],
          e.r2[t], e.share_after[t], e.alpha[t], e.output_rms[t], e.bound_1[t], e.bound_5[t],
          e.lower[t], e.next_linear.empty() ? "" : fmt::format("{}", e.next_linear[t]),
          e.elasticity[t], e.clip_growth.empty() ? "" : fmt::format("{}", e.clip_growth[t]),
          e.share_after[t] / e.r2[t], e.gain_dim[t], e.gain_max);
  return text;
}

}  // namespace sinkscope
