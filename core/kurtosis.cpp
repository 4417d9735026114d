// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kurtosis.h"

#include <limits>

namespace sinkscope {
namespace {

double quotient(double numerator, double denominator) {
  return denominator > 0 ? numerator / denominator : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

const char* to_string(KurtosisFlavor flavor) {
  switch (flavor) {
    case KurtosisFlavor::pearson:
      return "pearson";
    case KurtosisFlavor::excess:
      return "excess";
    case KurtosisFlavor::qualcomm:
      return "qualcomm";
    case KurtosisFlavor::uncentered:
      return "uncentered";
  }
  return "";
}

double kurtosis(const Moments& m, KurtosisFlavor flavor, double eps) {
  const double fourth = m.m4 / m.count;
  const double variance = m.variance();
  switch (flavor) {
    case KurtosisFlavor::pearson:
      return quotient(fourth, variance * variance);
    case KurtosisFlavor::excess:
      return quotient(fourth, variance * variance) - 3;
    case KurtosisFlavor::qualcomm: {
      const double s2 = m.sample_variance();
      return quotient(fourth, s2 * s2 + eps);
    }
    case KurtosisFlavor::uncentered: {
      const double mean2 = m.mean * m.mean;
      const double second = variance + mean2;
      const double raw =
          fourth + 4 * m.mean * m.m3 / m.count + 6 * mean2 * variance + mean2 * mean2;
      return quotient(raw, second * second);
    }
  }
  return std::numeric_limits<double>::quiet_NaN();
}

double kurtosis(std::span<const float> x, KurtosisFlavor flavor, double eps) {
  return kurtosis(moments_of(x), flavor, eps);
}

}  // namespace sinkscope
