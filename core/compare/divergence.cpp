// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/compare/divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/json_numbers.h"
#include "core/number_text.h"

namespace sinkscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kListed = 5;

struct Place {
  std::size_t run, token;
};

// Mean of finite values.
class Mean {
 public:
  void add(const std::vector<float>& values) {
    for (const float value : values) {
      if (!std::isfinite(value)) continue;
      sum_ += value;
      ++n_;
    }
  }
  double value() const {
    return n_ == 0 ? std::numeric_limits<double>::quiet_NaN() : sum_ / static_cast<double>(n_);
  }

 private:
  double sum_ = 0;
  std::int64_t n_ = 0;
};

std::string name_of(const ModelDivergence& all, std::size_t run) {
  return fmt::format(
      "run{}{}", run,
      all.runs[run].input.name.empty() ? "" : " " + quoted(all.runs[run].input.name));
}

std::string label_of(const RunInput& input, std::size_t token) {
  return token < input.token_text.size() ? input.token_text[token] : std::string();
}

Json summary_json(const DivergenceSummary& s, JsonNumbers& numbers) {
  Json at = nullptr;
  if (s.max_run >= 0) at = {{"run", fmt::format("run{}", s.max_run)}, {"token", s.max_token}};
  return {
      {"positions", s.n_positions},
      {"loss", {{"a", numbers.number(s.mean_loss_a)}, {"b", numbers.number(s.mean_loss_b)}}},
      {"perplexity",
       {{"a", numbers.number(std::exp(s.mean_loss_a))},
        {"b", numbers.number(std::exp(s.mean_loss_b))}}},
      {"kl", {{"mean", numbers.number(s.mean_kl)}, {"max", numbers.number(s.max_kl)}, {"at", at}}}};
}

Json list_json(const std::vector<float>& values, JsonNumbers& numbers) {
  return numbers.list({values.begin(), values.end()});
}

// The positions of the largest values above 0, the largest first.
std::vector<Place> largest(const ModelDivergence& all) {
  std::vector<Place> places;
  for (std::size_t r = 0; r < all.runs.size(); ++r)
    for (std::size_t t = 0; t < all.runs[r].kl.size(); ++t)
      if (std::isfinite(all.runs[r].kl[t]) && all.runs[r].kl[t] > 0) places.push_back({r, t});
  const auto middle =
      places.begin() + static_cast<std::ptrdiff_t>(std::min(kListed, places.size()));
  std::partial_sort(places.begin(), middle, places.end(), [&](const Place& a, const Place& b) {
    const float x = all.runs[a.run].kl[a.token], y = all.runs[b.run].kl[b.token];
    if (x != y) return x > y;
    return a.run != b.run ? a.run < b.run : a.token < b.token;
  });
  places.erase(middle, places.end());
  return places;
}

}  // namespace

DivergenceSummary summary_of(std::span<const RunDivergence> runs) {
  DivergenceSummary out;
  Mean kl, loss_a, loss_b;
  out.max_kl = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t r = 0; r < runs.size(); ++r) {
    kl.add(runs[r].kl);
    loss_a.add(runs[r].loss_a);
    loss_b.add(runs[r].loss_b);
    out.n_positions += static_cast<std::int64_t>(runs[r].kl.size());
    for (std::size_t t = 0; t < runs[r].kl.size(); ++t) {
      const float value = runs[r].kl[t];
      if (!std::isfinite(value) || value <= out.max_kl) continue;
      out.max_kl = value;
      out.max_run = static_cast<int>(r);
      out.max_token = static_cast<int>(t);
    }
  }
  out.mean_kl = kl.value();
  out.mean_loss_a = loss_a.value();
  out.mean_loss_b = loss_b.value();
  return out;
}

Json divergence_json(const ModelDivergence& all) {
  JsonNumbers numbers;
  Json out = {{"schema", "sinkscope.compare_kl/1"},
              {"conventions",
               {{"kl", "KL(A || B) of the next token's distribution, nats, positions 0 ... T-2"},
                {"loss", "mean -ln p of the next token, nats; perplexity = exp(loss)"},
                {"means", "over all scored positions of all runs together"}}},
              {"a", all.model_a},
              {"b", all.model_b}};
  out.update(summary_json(summary_of(all.runs), numbers));
  out["runs"] = Json::array();
  for (std::size_t r = 0; r < all.runs.size(); ++r) {
    const RunDivergence& run = all.runs[r];
    DivergenceSummary summary = summary_of({&run, 1});
    if (summary.max_run == 0) summary.max_run = static_cast<int>(r);
    Json entry = {{"run", fmt::format("run{}", r)},
                  {"name", run.input.name},
                  {"tokens", run.input.seq_len()}};
    entry.update(summary_json(summary, numbers));
    entry["per_token"] = {{"token_ids", run.input.token_ids},
                          {"token_text", run.input.token_text},
                          {"kl", list_json(run.kl, numbers)},
                          {"loss_a", list_json(run.loss_a, numbers)},
                          {"loss_b", list_json(run.loss_b, numbers)}};
    out["runs"].push_back(std::move(entry));
  }
  out["non_finite_values"] = numbers.n_non_finite();
  return out;
}

std::string divergence_csv(const ModelDivergence& all) {
  std::string out = "run,name,position,token_id,token,loss_a,loss_b,kl\n";
  for (std::size_t r = 0; r < all.runs.size(); ++r) {
    const RunDivergence& run = all.runs[r];
    for (std::size_t t = 0; t < run.kl.size(); ++t)
      out +=
          fmt::format("run{},{},{},{},{},{},{},{}\n", r, csv_field(run.input.name), t,
                      run.input.token_ids[t], csv_field(label_of(run.input, t)),
                      csv_number(run.loss_a[t]), csv_number(run.loss_b[t]), csv_number(run.kl[t]));
  }
  return out;
}

std::string divergence_text(const ModelDivergence& all) {
  const DivergenceSummary s = summary_of(all.runs);
  std::string out = fmt::format("A  {}\nB  {}\n\n", all.model_a, all.model_b);
  out += fmt::format("{} scored positions of {} {}  [each with its next token; nats]\n",
                     count_text(s.n_positions), count_text(static_cast<int>(all.runs.size())),
                     all.runs.size() == 1 ? "run" : "runs");
  out +=
      fmt::format("  loss        A {}   B {}\n", readable(s.mean_loss_a), readable(s.mean_loss_b));
  out += fmt::format("  perplexity  A {}   B {}\n", readable(std::exp(s.mean_loss_a)),
                     readable(std::exp(s.mean_loss_b)));
  out += fmt::format("  KL(A || B)  mean {}   max {}\n", readable(s.mean_kl), readable(s.max_kl));
  const std::vector<Place> places = largest(all);
  if (places.empty()) return out;
  out += "\nLargest, after which token\n";
  for (const Place& at : places) {
    const RunDivergence& run = all.runs[at.run];
    const std::string label = label_of(run.input, at.token);
    out += fmt::format(
        "  {}  {} token {} {}   loss A {}   B {}\n", pad_left(readable(run.kl[at.token]), 10),
        name_of(all, at.run), at.token,
        label.empty() ? fmt::format("id {}", run.input.token_ids[at.token]) : quoted(label),
        readable(run.loss_a[at.token]), readable(run.loss_b[at.token]));
  }
  return out;
}

}  // namespace sinkscope
