// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kurtosis_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/stream_blocks.h"

namespace sinkscope {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr KurtosisFlavor kFlavors[] = {KurtosisFlavor::pearson, KurtosisFlavor::excess,
                                       KurtosisFlavor::qualcomm, KurtosisFlavor::uncentered};

// Mean and largest of the values that exist.
struct Summary {
  double sum = 0, max = kNaN;
  int n = 0;
  void add(double v) {
    if (std::isnan(v)) return;
    sum += v;
    if (n == 0 || v > max) max = v;
    ++n;
  }
  double mean() const { return n > 0 ? sum / n : kNaN; }
};

// The smallest float that is not below x: for a float f, f >= x exactly if f >= it.
float float_not_below(double x) {
  const float f = static_cast<float>(x);
  return f < x ? std::nextafter(f, std::numeric_limits<float>::infinity()) : f;
}

}  // namespace

void tensor_kurtosis(const std::vector<SiteStats>& sites, const SinkOptions& options,
                     ResidualReport& report) {
  std::vector<NamedColumn> columns;
  for (const KurtosisFlavor f : kFlavors) {
    columns.emplace_back(fmt::format("{}_tensor", to_string(f)), std::vector<double>());
  }
  NamedColumn channel_mean{"pearson_channel_mean", {}}, channel_max{"pearson_channel_max", {}};
  for (const SiteStats& site : sites) {
    const Moments all = tensor_moments(site.both);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      columns[i].second.push_back(kurtosis(all, kFlavors[i], options.qualcomm_eps));
    }
    Summary channels;
    for (const Moments& m : site.both.moments) channels.add(kurtosis(m, KurtosisFlavor::pearson));
    channel_mean.second.push_back(channels.mean());
    channel_max.second.push_back(channels.max);
  }
  for (NamedColumn& c : columns) report.kurtosis.push_back(std::move(c));
  report.kurtosis.push_back(std::move(channel_mean));
  report.kurtosis.push_back(std::move(channel_max));
}

void stream_quantities(const CaptureReader& reader, const std::string& run, const RunInput& input,
                       const std::vector<SiteStats>& sites, const std::vector<int>& stream_indices,
                       const SinkOptions& options, ResidualReport& report) {
  struct OfSite {
    Summary pearson, qualcomm;
    Eigen::ArrayXi hits;  // [D] positions with |h| ≥ min_abs
    int n_positions = 0;
  };
  std::vector<OfSite> found(sites.size());
  std::vector<StreamSite> places;
  for (std::size_t s = 0; s < sites.size(); ++s) {
    const int width = sites[s].first.width();
    places.push_back({stream_indices[s], width});
    found[s].hits = Eigen::ArrayXi::Zero(width);
  }
  const float min_abs = float_not_below(options.outlier_features.min_abs);
  for_each_stream_block(reader, run, places, [&](std::size_t s, int begin, const ConstMapF& rows) {
    OfSite& of = found[s];
    for (Eigen::Index i = 0; i < rows.rows(); ++i) {
      const int position = begin + static_cast<int>(i);
      if (!options.at.matches(position, input.token_ids[static_cast<std::size_t>(position)]))
        continue;
      ++of.n_positions;
      const auto row = rows.row(i);
      const Moments m = moments_of({row.data(), static_cast<std::size_t>(row.size())});
      of.pearson.add(kurtosis(m, KurtosisFlavor::pearson));
      of.qualcomm.add(kurtosis(m, KurtosisFlavor::qualcomm, options.qualcomm_eps));
      for (Eigen::Index d = 0; d < row.size(); ++d) of.hits[d] += std::abs(row[d]) >= min_abs;
    }
  });
  NamedColumn pearson{"pearson_token_mean", {}}, qualcomm{"qualcomm_token_mean", {}};
  std::vector<VectorD> hits;  // [L+1][D], block states only
  int n_positions = 0;
  for (std::size_t s = 0; s < sites.size(); ++s) {
    pearson.second.push_back(found[s].pearson.mean());
    qualcomm.second.push_back(found[s].qualcomm.mean());
    n_positions = found[s].n_positions;
    if (sites[s].site.hook != "hook_resid_mid") hits.push_back(found[s].hits.cast<double>());
  }
  if (hits.empty()) return;
  MatrixD all_hits(static_cast<Eigen::Index>(hits.size()), hits.front().size());
  for (std::size_t i = 0; i < hits.size(); ++i) {
    all_hits.row(static_cast<Eigen::Index>(i)) = hits[i].transpose();
  }
  report.kurtosis.push_back(std::move(pearson));
  report.kurtosis.push_back(std::move(qualcomm));
  report.outlier_features = outlier_features(all_hits, n_positions, options.outlier_features);
  report.has_outlier_features = true;
}

void outlier_tensors(RunStats& stats, const SinkOptions& options, int n_layers, int layers_end,
                     ResidualReport& report) {
  if (options.at.kind == PositionFilter::Kind::ids) {
    report.not_computed["outlier_tensors"] = "positions all, first or rest (not by id)";
    return;
  }
  std::vector<SiteName> sites;
  if (layers_end > n_layers) sites.push_back({"ln_final.hook_out", -1});
  for (int layer = 0; layer < std::min(n_layers, layers_end); ++layer) {
    for (const char* hook :
         {"hook_resid_post", "hook_mlp_out", "ln2.hook_out", "hook_attn_out", "ln1.hook_out"}) {
      sites.push_back({hook, layer});
    }
  }
  OutlierTensors& out = report.outlier_tensors;
  Summary norms, ffn_norms, block_norms, kurtoses, block_kurtoses;
  for (const SiteName& name : sites) {
    if (!stats.has(name)) continue;
    const SiteStats site = stats.site(name);
    const double norm = largest(site.both).value;
    const double k =
        kurtosis(tensor_moments(site.both), KurtosisFlavor::qualcomm, options.qualcomm_eps);
    out.names.push_back(name.text());
    out.inf_norm.push_back(norm);
    out.kurtosis.push_back(k);
    norms.add(norm);
    kurtoses.add(k);
    if (name.hook == "hook_mlp_out") ffn_norms.add(norm);
    if (name.hook == "hook_resid_post") {
      block_norms.add(norm);
      block_kurtoses.add(k);
    }
  }
  out.max_inf_norm = norms.max;
  out.max_ffn_inf_norm = ffn_norms.max;
  out.max_block_inf_norm = block_norms.max;
  out.avg_kurtosis = kurtoses.mean();
  out.max_kurtosis = kurtoses.max;
  out.max_block_kurtosis = block_kurtoses.max;
}

}  // namespace sinkscope
