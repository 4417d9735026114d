// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sink_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace sinkscope {
namespace {

using Axis = Quantity::Axis;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class QuantityList {
 public:
  void scalar(const std::string& name, double value) {
    list.push_back({name, Axis::none, 1, 1, {value}});
  }
  void column(const std::string& name, Axis axis, std::vector<double> values) {
    const int n = static_cast<int>(values.size());
    list.push_back({name, axis, n, 1, std::move(values)});
  }
  void matrix(const std::string& name, const MatrixD& m) {
    list.push_back({name, Axis::layer_head, static_cast<int>(m.rows()), static_cast<int>(m.cols()),
                    std::vector<double>(m.data(), m.data() + m.size())});
  }
  std::vector<Quantity> list;
};

void attention_quantities(const AttentionSinks& a, QuantityList& q) {
  q.matrix("attention.first_token_score.with_row0", a.with_row0);
  q.matrix("attention.first_token_score.without_row0", a.without_row0);
  q.scalar("attention.first_token_score.mean_map.with_row0", a.mean_map.with_row0);
  q.scalar("attention.first_token_score.mean_map.without_row0", a.mean_map.without_row0);
  q.matrix("attention.gu.score", a.gu.score);
  q.scalar("attention.gu.sink_ratio", a.gu.sink_ratio.ratio);
  std::vector<double> mean, max, share;
  for (const HeadSummary& s : a.gu.layers) {
    mean.push_back(s.mean);
    max.push_back(s.max);
    share.push_back(s.share_above);
  }
  const double top = max.empty() ? kNaN : *std::max_element(max.begin(), max.end());
  q.column("attention.gu.layer_mean", Axis::layer, std::move(mean));
  q.column("attention.gu.layer_max", Axis::layer, std::move(max));
  q.column("attention.gu.layer_share_above", Axis::layer, std::move(share));
  q.scalar("attention.gu.max", top);
  q.scalar("attention.n_sink_tokens", static_cast<double>(a.sink_tokens.size()));
}

void residual_quantities(const ResidualReport& r, QuantityList& q) {
  std::vector<double> max_abs;
  for (const Peak& p : r.max_abs) max_abs.push_back(p.token < 0 ? kNaN : p.value);
  q.column("residual.max_abs", Axis::site, std::move(max_abs));
  q.column("residual.median_abs", Axis::site, r.median_abs);
  for (const auto& [flavor, values] : r.kurtosis) {
    q.column("residual.kurtosis." + flavor, Axis::site, values);
  }
  q.column("residual.m2", Axis::site, r.m2);
  q.column("residual.argmax_hit", Axis::site, r.argmax_hit);
  q.scalar("residual.first_permille_ratio", r.first_permille_ratio);
  q.scalar("residual.first_permille_ratio_without_first", r.first_permille_ratio_without_first);
  const OutlierTensors& t = r.outlier_tensors;
  if (t.names.empty()) return;
  const std::string prefix = "residual.outlier_tensors.";
  q.column(prefix + "inf_norm", Axis::tensor, t.inf_norm);
  q.column(prefix + "kurtosis", Axis::tensor, t.kurtosis);
  q.scalar(prefix + "max_inf_norm", t.max_inf_norm);
  q.scalar(prefix + "max_ffn_inf_norm", t.max_ffn_inf_norm);
  q.scalar(prefix + "max_block_inf_norm", t.max_block_inf_norm);
  q.scalar(prefix + "avg_kurtosis", t.avg_kurtosis);
  q.scalar(prefix + "max_kurtosis", t.max_kurtosis);
  q.scalar(prefix + "max_block_kurtosis", t.max_block_kurtosis);
}

// Cell by cell over the runs, one run at a time.
class SpreadAccumulator {
 public:
  void add(const std::vector<Quantity>& run) {
    for (const Quantity& q : run) {
      auto found = std::find_if(tables_.begin(), tables_.end(),
                                [&](const Table& t) { return t.shape.name == q.name; });
      if (found == tables_.end()) {
        Quantity shape = q;
        shape.values.clear();
        tables_.push_back({std::move(shape), std::vector<Cell>(q.values.size())});
        found = tables_.end() - 1;
      }
      const std::size_t n = std::min(found->cells.size(), q.values.size());
      for (std::size_t i = 0; i < n; ++i) found->cells[i].add(q.values[i]);
    }
  }
  std::vector<SpreadTable> tables() const {
    std::vector<SpreadTable> out;
    for (const Table& t : tables_) {
      SpreadTable table{t.shape, {}};
      for (const Cell& c : t.cells) table.cells.push_back(c.spread());
      out.push_back(std::move(table));
    }
    return out;
  }

 private:
  struct Cell {
    Moments moments;
    double min = kNaN, max = kNaN;
    void add(double v) {
      if (std::isnan(v)) return;
      min = moments.count == 0 ? v : std::min(min, v);
      max = moments.count == 0 ? v : std::max(max, v);
      moments.add(v);
    }
    Spread spread() const {
      const bool none = moments.count == 0;
      return {none ? kNaN : moments.mean, std::sqrt(moments.variance()), min, max};
    }
  };
  struct Table {
    Quantity shape;
    std::vector<Cell> cells;
  };
  std::vector<Table> tables_;
};

// In how many runs each number or text occurs.
template <class Member>
class RunTally {
 public:
  void add(const std::set<Member>& members) {
    for (const Member& m : members) ++runs_[m];
  }
  std::vector<std::pair<Member, int>> most_first() const {
    std::vector<std::pair<Member, int>> list(runs_.begin(), runs_.end());
    std::stable_sort(list.begin(), list.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    return list;
  }

 private:
  std::map<Member, int> runs_;
};

template <class Item, class Member>
std::set<Member> members_of(const std::vector<Item>& items, Member Item::*member) {
  std::set<Member> members;
  for (const auto& item : items) members.insert(item.*member);
  return members;
}

void pool_residual(const ResidualPool& pool, const SinkOptions& options, ResidualReport& out) {
  find_residual_sinks(pool.detection, options.min_m2, out);
  out.sorted_dims = leading_dims(pool.h_avg, options.n_sorted_dims);
  out.sorted_dims_without_first = leading_dims(pool.h_avg_rest, options.n_sorted_dims);
  out.first_permille_ratio = first_permille_ratio(pool.h_avg, options.permille);
  out.first_permille_ratio_without_first = first_permille_ratio(pool.h_avg_rest, options.permille);
}

double largest_mean(const std::vector<SpreadTable>& spreads, const std::string& name) {
  double largest = kNaN;
  for (const SpreadTable& t : spreads) {
    if (t.shape.name != name) continue;
    for (const Spread& s : t.cells) largest = std::fmax(largest, s.mean);
  }
  return largest;
}

}  // namespace

std::vector<Quantity> quantities(const RunReport& run) {
  QuantityList q;
  q.scalar("tokens", run.input.seq_len());
  if (!run.attention.layers.empty()) attention_quantities(run.attention, q);
  residual_quantities(run.residual, q);
  return std::move(q.list);
}

std::vector<std::pair<std::string, NonFinite>> non_finite_values(const SinkReport& report) {
  std::vector<std::pair<std::string, NonFinite>> out;
  for (const RunReport& run : report.runs) out.emplace_back(run.name, run.residual.non_finite);
  return out;
}

SinkReport sink_report(const CaptureReader& reader, std::vector<std::string> runs,
                       const SinkOptions& options) {
  if (runs.empty()) runs = {reader.default_run()};
  SinkReport report;
  report.path = reader.path();
  report.model = reader.model(runs.front());
  report.complete = reader.complete();
  report.layers_done = reader.whole_layers(runs.front());
  report.options = options;
  const int layers_end = report.complete ? std::numeric_limits<int>::max() : report.layers_done;

  ResidualPool pool;
  SpreadAccumulator spreads;
  RunTally<int> sink_dims, massive_dims, sink_tokens;
  RunTally<std::string> sink_texts;
  for (const std::string& name : runs) {
    if (!report.complete && reader.whole_layers(name) < report.layers_done) {
      report.left_out.push_back(name);
      continue;
    }
    RunReport run;
    run.name = name;
    run.input = reader.input(name);
    run.attention = attention_sinks(reader, name, run.input, options, layers_end);
    ResidualRun residual = residual_sinks(reader, name, options, layers_end);
    run.residual = std::move(residual.report);
    run.mechanisms = read_mechanisms(reader, name, layers_end);
    add_to_pool(pool, residual.pool);
    spreads.add(quantities(run));
    sink_dims.add(members_of(run.residual.sinks, &ResidualSink::dim));
    massive_dims.add(members_of(run.residual.massive, &MassiveActivation::dim));
    sink_tokens.add(members_of(run.attention.sink_tokens, &SinkToken::token));
    std::set<std::string> texts = members_of(run.attention.sink_tokens, &SinkToken::text);
    texts.erase("");  // ids without a tokenizer
    sink_texts.add(texts);
    report.runs.push_back(std::move(run));
  }
  AllRuns& all = report.all;
  all.n_runs = static_cast<int>(report.runs.size());
  all.spreads = spreads.tables();
  all.residual.sites = report.runs.front().residual.sites;
  pool_residual(pool, options, all.residual);
  all.max_inf_norm = largest_mean(all.spreads, "residual.outlier_tensors.inf_norm");
  all.runs_with_sink_dim = sink_dims.most_first();
  all.runs_with_massive_dim = massive_dims.most_first();
  all.runs_with_sink_token = sink_tokens.most_first();
  all.runs_with_sink_text = sink_texts.most_first();
  return report;
}

}  // namespace sinkscope
