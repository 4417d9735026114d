// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/what_if/outliers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/number_text.h"

namespace sinkscope {
namespace {

constexpr std::size_t kShown = 4;  // of a list in words

int number_of(const std::string& run) { return std::stoi(run.substr(3)); }  // "run3_edit0"

void add_peaks(const RunReport& run, Outliers& all) {
  const std::vector<Peak>& peaks = run.residual.max_abs;
  for (std::size_t s = 0; s < peaks.size() && s < all.max_abs.size(); ++s) {
    RunPeak& known = all.max_abs[s];
    if (peaks[s].token < 0 || (known.run >= 0 && !(peaks[s].value > known.value))) continue;
    static_cast<Peak&>(known) = peaks[s];
    known.run = number_of(run.name);
  }
}

void add_sinks(const RunReport& run, Outliers& all) {
  const AttentionSinks& a = run.attention;
  all.has_attention = all.has_attention || !a.layers.empty();
  for (const SinkToken& token : a.sink_tokens)
    all.sink_tokens.push_back({token, number_of(run.name), a.gu.sink_ratio.cells});
  for (Eigen::Index l = 0; l < a.gu.score.rows(); ++l)
    for (Eigen::Index h = 0; h < a.gu.score.cols(); ++h) {
      KeyScore& known = all.largest_score;
      const double score = a.gu.score(l, h);
      if (std::isnan(score) || (known.run >= 0 && !(score > known.value))) continue;
      known = {score, number_of(run.name), a.layers[static_cast<std::size_t>(l)],
               static_cast<int>(h)};
    }
}

void add_massive(const RunReport& run, Outliers& all) {
  for (const MassiveGroup& group : run.residual.massive_groups) {
    RunMassive massive{group, number_of(run.name), {}};
    if (const auto t = static_cast<std::size_t>(group.token); t < run.input.token_text.size())
      massive.text = run.input.token_text[t];
    all.massive.push_back(std::move(massive));
  }
}

// "run 2, token 0 "<s>"".
std::string token_place(int run, int token, const std::string& text, bool names_run) {
  return fmt::format("{}token {}{}", names_run ? fmt::format("run {}, ", run) : "", token,
                     text.empty() ? "" : " " + quoted(text));
}

std::string label_of(const Outliers& all, int run, int token) {
  const auto known = all.token_text.find(run);
  const auto t = static_cast<std::size_t>(token);
  return known != all.token_text.end() && t < known->second.size() ? known->second[t] : "";
}

std::string and_more(std::size_t n) {
  return n > kShown ? fmt::format(" and {} more", n - kShown) : "";
}

}  // namespace

Outliers outliers_of(const SinkReport& report) {
  Outliers all;
  all.sites = report.runs.front().residual.sites;
  all.max_abs.assign(all.sites.size(), RunPeak{{std::nan(""), -1, -1}, -1});
  all.residual_sinks = report.all.residual.sinks;
  all.key = report.options.gu_key;
  all.epsilon = report.options.epsilon;
  for (const RunReport& run : report.runs) {
    all.token_text[number_of(run.name)] = run.input.token_text;
    add_peaks(run, all);
    add_sinks(run, all);
    add_massive(run, all);
  }
  std::stable_sort(all.sink_tokens.begin(), all.sink_tokens.end(),
                   [](const auto& a, const auto& b) {
                     return std::tuple(-a.heads, -a.max_score) < std::tuple(-b.heads, -b.max_score);
                   });
  std::stable_sort(all.massive.begin(), all.massive.end(), [](const auto& a, const auto& b) {
    return std::tuple(-a.n_sites, -a.peak.value) < std::tuple(-b.n_sites, -b.peak.value);
  });
  return all;
}

std::string largest_text(const Outliers& all, bool names_run) {
  const RunPeak* most = nullptr;
  for (const RunPeak& peak : all.max_abs)
    if (peak.run >= 0 && (most == nullptr || peak.value > most->value)) most = &peak;
  if (most == nullptr) return "not recorded";
  return fmt::format(
      "{} at {}, {}, dimension {}", readable(most->value),
      all.sites[static_cast<std::size_t>(most - all.max_abs.data())],
      token_place(most->run, most->token, label_of(all, most->run, most->token), names_run),
      most->dim);
}

std::string sink_text(const Outliers& all, bool names_run) {
  if (!all.has_attention) return "no softmax attention was recorded";
  const KeyScore& top = all.largest_score;
  if (all.sink_tokens.empty() && top.run < 0) return "no head can be judged";
  if (all.sink_tokens.empty())
    return fmt::format(
        "no token gets more than {:g} of a head; key {} gets {} at most in layer {}, "
        "head {}{}",
        all.epsilon, all.key, readable(top.value), top.layer, top.head,
        names_run ? fmt::format(" of run {}", top.run) : "");
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(kShown, all.sink_tokens.size()); ++i) {
    const RunSink& sink = all.sink_tokens[i];
    parts.push_back(fmt::format("{}: {} of {} heads, {} at most in layer {}, head {}",
                                token_place(sink.run, sink.token, sink.text, names_run), sink.heads,
                                sink.cells, readable(sink.max_score), sink.layer, sink.head));
  }
  return fmt::format("{}{}", fmt::join(parts, "; "), and_more(all.sink_tokens.size()));
}

std::string residual_sinks_text(const Outliers& all) {
  if (all.residual_sinks.empty()) return "none";
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(kShown, all.residual_sinks.size()); ++i) {
    const ResidualSink& sink = all.residual_sinks[i];
    parts.push_back(fmt::format("dimension {} ({} times the median at {}, at {} site{})", sink.dim,
                                readable(sink.ratio), sink.site, sink.n_sites,
                                sink.n_sites == 1 ? "" : "s"));
  }
  return fmt::format("{}{}", fmt::join(parts, "; "), and_more(all.residual_sinks.size()));
}

std::string massive_text(const Outliers& all, bool names_run) {
  if (all.massive.empty()) return "none";
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(kShown, all.massive.size()); ++i) {
    const RunMassive& group = all.massive[i];
    parts.push_back(fmt::format("{}, dimension {} ({} at {}, at {} site{})",
                                token_place(group.run, group.token, group.text, names_run),
                                group.dim, readable(group.peak.value), group.peak.site,
                                group.n_sites, group.n_sites == 1 ? "" : "s"));
  }
  return fmt::format("{}{}", fmt::join(parts, "; "), and_more(all.massive.size()));
}

nlohmann::ordered_json outliers_json(const Outliers& all, JsonNumbers& numbers) {
  using Json = nlohmann::ordered_json;
  Json peaks = Json::array(), massive = Json::array(), residual = Json::array(),
       attention = Json::array();
  for (std::size_t s = 0; s < all.max_abs.size(); ++s)
    peaks.push_back({{"site", all.sites[s]},
                     {"value", numbers.number(all.max_abs[s].value)},
                     {"run", all.max_abs[s].run},
                     {"token", all.max_abs[s].token},
                     {"dim", all.max_abs[s].dim}});
  for (const RunMassive& group : all.massive)
    massive.push_back({{"run", group.run},
                       {"token", group.token},
                       {"text", group.text},
                       {"dim", group.dim},
                       {"sites", group.n_sites},
                       {"first_site", group.first_site},
                       {"last_site", group.last_site},
                       {"value", numbers.number(group.peak.value)},
                       {"site", group.peak.site}});
  for (const ResidualSink& sink : all.residual_sinks)
    residual.push_back({{"dim", sink.dim},
                        {"sites", sink.n_sites},
                        {"site", sink.site},
                        {"ratio", numbers.number(sink.ratio)},
                        {"argmax_hit", numbers.number(sink.argmax_hit)}});
  for (const RunSink& sink : all.sink_tokens)
    attention.push_back({{"run", sink.run},
                         {"token", sink.token},
                         {"text", sink.text},
                         {"heads", sink.heads},
                         {"of_heads", sink.cells},
                         {"max_score", numbers.number(sink.max_score)},
                         {"layer", sink.layer},
                         {"head", sink.head},
                         {"mean_score", numbers.number(sink.mean_score)}});
  Json score;  // null where no head can be judged
  if (const KeyScore& top = all.largest_score; top.run >= 0)
    score = {{"key", all.key},
             {"value", numbers.number(top.value)},
             {"run", top.run},
             {"layer", top.layer},
             {"head", top.head}};
  return {{"max_abs", peaks},
          {"massive", massive},
          {"residual_sinks", residual},
          {"attention_sinks", attention},
          {"largest_score", score}};
}

}  // namespace sinkscope
