// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mechanism_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sinkscope {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Means and central sums of pairs, one pair at a time (Welford).
struct Pairs {
  double n = 0, mean_x = 0, mean_y = 0, xx = 0, yy = 0, xy = 0;
  void add(double x, double y) {
    n += 1;
    const double dx = x - mean_x, dy = y - mean_y;
    mean_x += dx / n;
    mean_y += dy / n;
    xx += dx * (x - mean_x);
    yy += dy * (y - mean_y);
    xy += dx * (y - mean_y);
  }
  double correlation() const {
    if (n < 2 || !(xx > 0) || !(yy > 0)) return kNaN;
    return std::clamp(xy / std::sqrt(xx * yy), -1.0, 1.0);
  }
};

}  // namespace

std::vector<double> gate_correlation(const float* gated, const float* gate, int rows, int width) {
  std::vector<Pairs> pairs(static_cast<std::size_t>(width));
  for (int row = 0; row < rows; ++row)
    for (int d = 0; d < width; ++d) {
      const std::int64_t at = static_cast<std::int64_t>(row) * width + d;
      const double share = gate[at], y = std::abs(static_cast<double>(gated[at])) / share;
      if (share > 0 && std::isfinite(y)) pairs[static_cast<std::size_t>(d)].add(y, share);
    }
  std::vector<double> out;
  for (const Pairs& p : pairs) out.push_back(p.correlation());
  return out;
}

DepthUse depth_use(std::span<const float> weights, int n_tokens, int n_sources) {
  DepthUse use;
  const auto width = static_cast<std::size_t>(n_sources);
  use.mean.assign(width, 0.0);
  double n = 0;
  for (std::size_t t = 0; t < static_cast<std::size_t>(n_tokens); ++t) {
    const std::span<const float> row = weights.subspan(t * width, width);
    if (!std::all_of(row.begin(), row.end(), [](float w) { return std::isfinite(w); })) continue;
    n += 1;
    double top = 0, entropy = 0;
    for (std::size_t s = 0; s < width; ++s) {
      const double w = row[s];
      use.mean[s] += w;
      top = std::max(top, w);
      if (w > 0) entropy -= w * std::log(w);
    }
    use.top1 += top;
    use.effective_branches += std::exp(entropy);
    use.concentrated += top > 0.9 ? 1 : 0;
  }
  for (double* sum : {&use.top1, &use.effective_branches, &use.concentrated})
    *sum = n > 0 ? *sum / n : kNaN;
  for (double& mean : use.mean) mean = n > 0 ? mean / n : kNaN;
  use.embedding = width > 0 ? use.mean.front() : kNaN;
  use.newest = width > 0 ? use.mean.back() : kNaN;
  return use;
}

}  // namespace sinkscope
