// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/residual_sinks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "core/kurtosis_table.h"

namespace sinkscope {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct IndexedSite {
  int index = 0;  // in residual/sites
  SiteName name;
};

std::vector<IndexedSite> recorded_sites(const CaptureReader& reader, const std::string& run,
                                        int layers_end) {
  std::vector<IndexedSite> sites;
  const std::vector<std::string> all = reader.read_texts(run, "residual/sites");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const SiteName name = SiteName::parse(all[i]);
    if (name.layer < layers_end) sites.push_back({static_cast<int>(i), name});
  }
  return sites;
}

bool is_block_state(const SiteName& site) { return site.hook != "hook_resid_mid"; }

// The massive ones among the (token, dim) entries of a state whose |h| the statistics know exactly,
// largest first.
std::vector<Peak> massive_entries(const SiteStats& site, const StateScale& scale,
                                  const MassiveCriterion& criterion) {
  std::vector<Peak> entries;
  const auto add = [&](const Peak& p) {
    if (is_massive(p.value, scale, criterion)) entries.push_back(p);
  };
  for (const Peak& p : site.token_peaks) add(p);
  for (const PartStats* part : {&site.first, &site.rest}) {
    for (int d = 0; d < part->width(); ++d) {
      const auto j = static_cast<std::size_t>(d);
      if (part->max_token[j] >= 0) add({part->max_abs[j], part->max_token[j], d});
    }
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Peak& a, const Peak& b) { return a.value > b.value; });
  return entries;
}

void find_massive(const std::vector<SiteStats>& sites, const SinkOptions& options,
                  ResidualReport& report) {
  double largest_abs = 0;
  for (const Peak& p : report.max_abs) largest_abs = std::max(largest_abs, p.value);
  MassiveCriterion criterion = options.massive;
  criterion.mode = resolve_mode(criterion.mode, largest_abs, criterion.min_abs);
  report.massive_mode = criterion.mode;
  for (const SiteStats& site : sites) {
    const Moments all = tensor_moments(site.both);
    const StateScale scale{site.median_abs, std::sqrt(all.variance())};
    std::set<std::pair<int, int>> seen;
    for (const Peak& p : massive_entries(site, scale, criterion)) {
      if (static_cast<int>(seen.size()) >= options.massive_per_site) break;
      if (!seen.insert({p.token, p.dim}).second) continue;
      report.massive.push_back(
          {site.site.text(), p.value, p.token, p.dim, p.value / site.median_abs});
    }
  }
}

std::vector<MassiveGroup> group_massive(const std::vector<MassiveActivation>& massive) {
  std::vector<MassiveGroup> groups;
  for (const MassiveActivation& m : massive) {
    auto g = std::find_if(groups.begin(), groups.end(), [&](const MassiveGroup& other) {
      return other.token == m.token && other.dim == m.dim;
    });
    if (g == groups.end()) {
      g = groups.insert(g, {m.token, m.dim, 0, m.site, m.site, m});
    }
    ++g->n_sites;
    g->last_site = m.site;
    if (m.value > g->peak.value) g->peak = m;
  }
  std::stable_sort(groups.begin(), groups.end(), [](const MassiveGroup& a, const MassiveGroup& b) {
    return a.n_sites != b.n_sites ? a.n_sites > b.n_sites : a.peak.value > b.peak.value;
  });
  return groups;
}

// H_avg[j] = mean of |H_i[n,j]| over the positions and the L+1 block states   (2601.22966)
std::vector<double> mean_over_states(const std::vector<SiteStats>& sites, bool with_first) {
  std::vector<double> sum;
  int n = 0;
  for (const SiteStats& site : sites) {
    if (!is_block_state(site.site)) continue;
    const PartStats& part = with_first ? site.both : site.rest;
    sum.resize(part.mean_abs.size());
    for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += part.mean_abs[d];
    ++n;
  }
  for (double& v : sum) v /= n;
  return sum;
}

double finite_positions(const PartStats& part) {
  double n = 0;
  for (const Moments& m : part.moments) n = std::max(n, m.count);
  return n;
}

}  // namespace

std::vector<int> leading_dims(const std::vector<double>& mean_abs, int n) {
  const auto is_nan = [](double v) { return std::isnan(v); };
  std::vector<int> order = sorted_dims(mean_abs);
  // NaN come last, and have no order of their own.
  const auto n_known = static_cast<std::ptrdiff_t>(mean_abs.size()) -
                       std::count_if(mean_abs.begin(), mean_abs.end(), is_nan);
  order.resize(static_cast<std::size_t>(std::min<std::ptrdiff_t>(n_known, n)));
  return order;
}

PartStats detection_part(const SiteStats& site, const PositionFilter& filter) {
  const bool first_was_asked_for =
      filter.kind == PositionFilter::Kind::first || filter.kind == PositionFilter::Kind::ids;
  return first_was_asked_for ? site.both : site.rest;
}

void find_residual_sinks(const std::vector<PartStats>& detection, double min_m2,
                         ResidualReport& report) {
  std::map<int, ResidualSink> sinks;
  report.m2.clear();
  report.m2_dim.clear();
  report.argmax_hit.clear();
  for (std::size_t s = 0; s < detection.size(); ++s) {
    const PartStats& part = detection[s];
    const M2 m2 = m2_of(part.mean_abs);
    report.m2.push_back(m2.value);
    report.m2_dim.push_back(m2.dim);
    report.argmax_hit.push_back(argmax_hit(part.argmax_count, m2.dim));
    const double median = lower_median(part.mean_abs);
    for (const int d : dims_above_median(part.mean_abs, min_m2)) {
      const auto j = static_cast<std::size_t>(d);
      ResidualSink& sink = sinks[d];
      sink.dim = d;
      ++sink.n_sites;
      const double ratio = part.mean_abs[j] / median;
      if (!(ratio > sink.ratio)) continue;
      sink.ratio = ratio;
      sink.site = report.sites[s];
      sink.argmax_hit = argmax_hit(part.argmax_count, d);
      sink.mean = part.moments[j].mean;
      sink.sd = std::sqrt(part.moments[j].variance());
    }
  }
  report.sinks.clear();
  for (const auto& [dim, sink] : sinks) report.sinks.push_back(sink);
  std::stable_sort(report.sinks.begin(), report.sinks.end(),
                   [](const ResidualSink& a, const ResidualSink& b) {
                     return a.n_sites != b.n_sites ? a.n_sites > b.n_sites : a.ratio > b.ratio;
                   });
}

ResidualRun residual_sinks(const CaptureReader& reader, const std::string& run,
                           const SinkOptions& options, int layers_end) {
  ResidualRun out;
  ResidualReport& report = out.report;
  RunStats stats(reader, run, options.at);
  std::vector<SiteStats> sites;
  std::vector<int> stream_indices;
  for (const auto& [index, name] : recorded_sites(reader, run, layers_end)) {
    sites.push_back(stats.site(name, index));
    stream_indices.push_back(index);
    report.sites.push_back(name.text());
    const PartStats& both = sites.back().both;
    report.max_abs.push_back(largest(both));
    report.median_abs.push_back(sites.back().median_abs);
    out.pool.detection.push_back(detection_part(sites.back(), options.at));
    out.pool.n_tokens = std::max(out.pool.n_tokens, finite_positions(both));
    out.pool.n_rest = std::max(out.pool.n_rest, finite_positions(sites.back().rest));
  }
  tensor_kurtosis(sites, options, report);
  if (options.use_stream && reader.has(run, "residual/stream")) {
    stream_quantities(reader, run, stats.input(), sites, stream_indices, options, report);
  } else {
    for (const char* name : {"pearson_token_mean", "qualcomm_token_mean", "outlier_features"}) {
      report.not_computed[name] = "residual/stream (--record stream)";
    }
  }
  outlier_tensors(stats, options, reader.model(run).n_layers, layers_end, report);
  find_massive(sites, options, report);
  report.massive_groups = group_massive(report.massive);
  find_residual_sinks(out.pool.detection, options.min_m2, report);

  out.pool.h_avg = mean_over_states(sites, true);
  out.pool.h_avg_rest = mean_over_states(sites, false);
  report.sorted_dims = leading_dims(out.pool.h_avg, options.n_sorted_dims);
  report.sorted_dims_without_first = leading_dims(out.pool.h_avg_rest, options.n_sorted_dims);
  report.first_permille_ratio = first_permille_ratio(out.pool.h_avg, options.permille);
  report.first_permille_ratio_without_first =
      first_permille_ratio(out.pool.h_avg_rest, options.permille);
  report.non_finite = find_non_finite(reader, run, layers_end);
  return out;
}

void add_to_pool(ResidualPool& pool, const ResidualPool& run) {
  if (pool.detection.empty()) {
    pool = run;
    return;
  }
  for (std::size_t s = 0; s < pool.detection.size(); ++s) {
    pool.detection[s] = join(pool.detection[s], run.detection.at(s));
  }
  const auto blend = [](std::vector<double>& a, double na, const std::vector<double>& b,
                        double nb) {
    if (nb == 0) return;
    for (std::size_t d = 0; d < a.size(); ++d) {
      a[d] = na == 0 ? b.at(d) : (na * a[d] + nb * b.at(d)) / (na + nb);
    }
  };
  blend(pool.h_avg, pool.n_tokens, run.h_avg, run.n_tokens);
  blend(pool.h_avg_rest, pool.n_rest, run.h_avg_rest, run.n_rest);
  pool.n_tokens += run.n_tokens;
  pool.n_rest += run.n_rest;
}

}  // namespace sinkscope
