// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/rescale/theory.h"

#include <cmath>
#include <limits>

namespace sinkscope {

double rescale_factor(double r2, double mean_square, double eps) {
  return std::sqrt(((1 - r2) * mean_square + eps) / (mean_square + eps));
}

double clip_growth(double others_square, double outlier, double c) {
  return std::sqrt((others_square + outlier * outlier) / (others_square + c * c));
}

double upper_bound_1(double r2, double gain_max, double gain_ratio) {
  return gain_max * std::sqrt((1 - r2) + gain_ratio * gain_ratio * r2);
}

double upper_bound_5(double r2, double gain_max_others, double gain_d) {
  return std::sqrt(gain_max_others * gain_max_others * (1 - r2) + gain_d * gain_d * r2);
}

double lower_bound(double r2, double gain_min_others, double gain_d) {
  return std::sqrt(gain_d * gain_d * r2 + gain_min_others * gain_min_others * (1 - r2));
}

double elasticity(double r2, double mean_square, double eps) {
  return (r2 * mean_square + eps) / (mean_square + eps);
}

double joint_r2(std::span<const float> h, std::span<const int> dims) {
  double all = 0, some = 0;
  for (float value : h) all += static_cast<double>(value) * value;
  for (int d : dims) {
    const double value = h[static_cast<std::size_t>(d)];
    some += value * value;
  }
  return all > 0 ? some / all : std::numeric_limits<double>::quiet_NaN();
}

double share_after(double r2, double gain_d, double mean_square, double eps, double output_rms) {
  return gain_d * gain_d * r2 * mean_square / ((mean_square + eps) * output_rms * output_rms);
}

double sink_gap(int n, double share) { return std::log((n - 1) * (1 - share) / share); }

}  // namespace sinkscope
