// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/residual_metrics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>

namespace sinkscope {
namespace {
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// NaN has no place in an order: sorting algorithms may read past the end when they meet one.
std::vector<double> without_nan(std::span<const double> values) {
  std::vector<double> kept;
  std::copy_if(values.begin(), values.end(), std::back_inserter(kept),
               [](double v) { return !std::isnan(v); });
  return kept;
}

}  // namespace

double lower_median(std::span<const double> values) {
  std::vector<double> copy = without_nan(values);
  if (copy.empty()) return kNaN;
  const auto middle = copy.begin() + static_cast<std::ptrdiff_t>((copy.size() - 1) / 2);
  std::nth_element(copy.begin(), middle, copy.end());
  return *middle;
}

double finite_median(std::span<const double> values) {
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
               [](double v) { return std::isfinite(v); });
  return lower_median(finite);
}

double infinity_norm(std::span<const float> x) {
  double largest = 0;
  for (const float v : x) {
    if (std::abs(double{v}) > largest) largest = std::abs(double{v});
  }
  return largest;
}

const char* to_string(MassiveMode mode) {
  switch (mode) {
    case MassiveMode::automatic:
      return "automatic";
    case MassiveMode::absolute:
      return "absolute";
    case MassiveMode::ratio:
      return "ratio";
    case MassiveMode::zscore:
      return "zscore";
  }
  return "";
}

MassiveMode resolve_mode(MassiveMode mode, double largest_abs, double min_abs) {
  if (mode != MassiveMode::automatic) return mode;
  return largest_abs > min_abs ? MassiveMode::absolute : MassiveMode::ratio;
}

bool is_massive(double abs_value, const StateScale& scale, const MassiveCriterion& criterion) {
  if (!(abs_value > 0)) return false;
  const bool ratio = abs_value >= criterion.min_ratio * scale.median_abs;
  switch (criterion.mode) {
    case MassiveMode::absolute:
      return abs_value > criterion.min_abs && ratio;
    case MassiveMode::ratio:
      return ratio;
    case MassiveMode::zscore:
      return abs_value >= criterion.min_zscore * scale.sd;
    case MassiveMode::automatic:
      break;
  }
  assert(false && "the mode must be resolved");
  return false;
}

M2 m2_of(std::span<const double> mean_abs) {
  const double median = lower_median(mean_abs);
  if (std::isnan(median)) return {kNaN, -1};
  const auto largest = std::max_element(mean_abs.begin(), mean_abs.end(), [](double a, double b) {
    return !std::isnan(b) && (std::isnan(a) || a < b);
  });
  return {*largest / median, static_cast<int>(largest - mean_abs.begin())};
}

std::vector<int> dims_above_median(std::span<const double> mean_abs, double threshold) {
  const double limit = threshold * lower_median(mean_abs);
  std::vector<int> dims;
  for (std::size_t d = 0; d < mean_abs.size(); ++d)
    if (mean_abs[d] >= limit && mean_abs[d] != 0) dims.push_back(static_cast<int>(d));
  std::stable_sort(dims.begin(), dims.end(), [&](int a, int b) {
    return mean_abs[static_cast<std::size_t>(a)] > mean_abs[static_cast<std::size_t>(b)];
  });
  return dims;
}

double argmax_hit(std::span<const double> argmax_counts, int dim) {
  const double tokens = std::accumulate(argmax_counts.begin(), argmax_counts.end(), 0.0);
  if (dim < 0 || tokens == 0) return kNaN;
  return argmax_counts[static_cast<std::size_t>(dim)] / tokens;
}

std::vector<int> sorted_dims(std::span<const double> mean_abs) {
  std::vector<int> order(mean_abs.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int d) {
    const double v = mean_abs[static_cast<std::size_t>(d)];
    return std::isnan(v) ? -std::numeric_limits<double>::infinity() : v;
  };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(a) > key(b); });
  return order;
}

int first_permille_count(int d_model, PermilleRounding rounding) {
  const double exact = 0.001 * d_model;
  const double n = rounding == PermilleRounding::up ? std::ceil(exact) : std::round(exact);
  return std::max(1, static_cast<int>(n));
}

double first_permille_ratio(std::span<const double> mean_abs, PermilleRounding rounding) {
  std::vector<double> values = without_nan(mean_abs);
  const auto n =
      std::min(static_cast<std::ptrdiff_t>(values.size()),
               std::ptrdiff_t{first_permille_count(static_cast<int>(mean_abs.size()), rounding)});
  std::sort(values.begin(), values.end(), std::greater<>());
  const double first = std::accumulate(values.begin(), values.begin() + n, 0.0);
  const double all = std::accumulate(values.begin(), values.end(), 0.0);
  return all > 0 ? 1000 * first / all : kNaN;
}

std::vector<int> outlier_features(const MatrixD& hits, double n_positions,
                                  const OutlierFeatureCriterion& criterion) {
  std::vector<int> dims;
  const double n_states = static_cast<double>(hits.rows());
  for (Eigen::Index d = 0; d < hits.cols(); ++d) {
    const double states = static_cast<double>((hits.col(d).array() > 0).count());
    const double pairs = hits.col(d).sum();
    if (states > 0 && states >= criterion.layer_share * n_states &&
        pairs >= criterion.position_share * n_states * n_positions) {
      dims.push_back(static_cast<int>(d));
    }
  }
  return dims;
}

}  // namespace sinkscope
