// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/normalizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "core/error.h"

namespace sinkscope {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double sum_of(const std::vector<double>& p) { return std::accumulate(p.begin(), p.end(), 0.0); }

// e^{z_j − m} / (e^{b − m} + Σ e^{z − m}) with m = max(b, max z): never overflows.
NormalizedRow with_sink(std::span<const double> z, double b) {
  double m = b;
  for (double value : z) m = std::max(m, value);
  NormalizedRow row{std::vector<double>(z.size(), 0.0), 0.0};
  if (m == -kInfinity) return row;
  const double null = std::exp(b - m);
  double sum = null;
  for (std::size_t j = 0; j < z.size(); ++j) sum += row.p[j] = std::exp(z[j] - m);
  for (double& p : row.p) p /= sum;
  // sigmoid(b − LSE) keeps what 1 − Σp would lose below one part in 10^16.
  const double lse = log_sum_exp(z);
  row.null_mass = b == -kInfinity ? 0.0 : 1.0 / (1.0 + std::exp(lse - b));
  return row;
}

NormalizedRow clipped(std::span<const double> z, double gamma, double zeta) {
  if (!(gamma <= 0) || !(zeta >= 1))
    throw Error(ErrorKind::invalid_argument,
                fmt::format("clipped softmax: expected gamma <= 0 and zeta >= 1, found {} and {}",
                            gamma, zeta));
  NormalizedRow row = with_sink(z, -kInfinity);
  for (std::size_t j = 0; j < row.p.size(); ++j)
    row.p[j] = z[j] == -kInfinity ? 0.0 : std::clamp((zeta - gamma) * row.p[j] + gamma, 0.0, 1.0);
  row.null_mass = std::max(0.0, 1.0 - sum_of(row.p));
  return row;
}

// The finite scores, largest first.
std::vector<double> sorted_scores(std::span<const double> z) {
  std::vector<double> sorted;
  for (double value : z)
    if (value != -kInfinity) sorted.push_back(value);
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  return sorted;
}

// τ = (Σ_{j≤k} z_(j) − 1) / k for the largest k with 1 + k z_(k) > Σ_{j≤k} z_(j).
double sparsemax_threshold(const std::vector<double>& sorted) {
  double sum = 0, threshold = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double k = static_cast<double>(i + 1);
    sum += sorted[i];
    if (1 + k * sorted[i] > sum) threshold = (sum - 1) / k;
  }
  return threshold;
}

// τ_k = M − √max(0, (1 − k(Q − M²)) / k), M and Q running means of z and z²; the support is the
// number of k with τ_k ≤ z_(k).
double entmax15_threshold(const std::vector<double>& sorted) {
  double sum = 0, squares = 0;
  std::vector<double> thresholds;
  std::size_t support = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double k = static_cast<double>(i + 1);
    sum += sorted[i];
    squares += sorted[i] * sorted[i];
    const double mean = sum / k, spread = k * (squares / k - mean * mean);
    thresholds.push_back(mean - std::sqrt(std::max(0.0, (1 - spread) / k)));
    if (thresholds.back() <= sorted[i]) ++support;
  }
  return support == 0 ? 0 : thresholds[support - 1];
}

NormalizedRow projected(std::span<const double> z, NormalizerKind kind) {
  NormalizedRow row{std::vector<double>(z.size(), 0.0), 0.0};
  std::vector<double> sorted = sorted_scores(z);
  if (sorted.empty()) return row;
  const double top = sorted.front(), divisor = kind == NormalizerKind::entmax15 ? 2 : 1;
  for (double& value : sorted) value = (value - top) / divisor;
  const double threshold =
      kind == NormalizerKind::entmax15 ? entmax15_threshold(sorted) : sparsemax_threshold(sorted);
  for (std::size_t j = 0; j < z.size(); ++j) {
    const double above = std::max(0.0, (z[j] - top) / divisor - threshold);
    row.p[j] = kind == NormalizerKind::entmax15 ? above * above : above;
  }
  return row;
}

NormalizedRow sigmoids(std::span<const double> z) {
  NormalizedRow row{std::vector<double>(z.size(), 0.0), 0.0};
  for (std::size_t j = 0; j < z.size(); ++j) row.p[j] = 1.0 / (1.0 + std::exp(-z[j]));
  row.null_mass = std::max(0.0, 1.0 - sum_of(row.p));
  return row;
}

}  // namespace

const std::vector<NormalizerFacts>& normalizers() {
  using Kind = NormalizerKind;
  static const std::vector<NormalizerFacts> all = {
      {Kind::softmax, "softmax", "p_j = exp(z_j) / sum exp(z)", true},
      {Kind::softmax1, "softmax1", "p_j = exp(z_j) / (1 + sum exp(z))", false},
      {Kind::sink_logit, "sink_logit", "p_j = exp(z_j) / (exp(b) + sum exp(z))", false},
      {Kind::clipped, "clipped", "p_j = clip((zeta - gamma) softmax(z)_j + gamma, 0, 1)", false},
      {Kind::sparsemax, "sparsemax", "projection of z on the simplex", true},
      {Kind::entmax15, "entmax15", "entmax with alpha = 1.5", true},
      {Kind::sigmoid, "sigmoid", "p_j = 1 / (1 + exp(-z_j))", false},
  };
  return all;
}

const char* name_of(NormalizerKind kind) {
  for (const NormalizerFacts& facts : normalizers())
    if (facts.kind == kind) return facts.name;
  return "";
}

std::optional<NormalizerKind> normalizer_named(const std::string& name) {
  for (const NormalizerFacts& facts : normalizers())
    if (facts.name == name) return facts.kind;
  return std::nullopt;
}

double log_sum_exp(std::span<const double> z) {
  double top = -kInfinity, sum = 0;
  for (double value : z) top = std::max(top, value);
  if (top == -kInfinity) return top;
  for (double value : z) sum += std::exp(value - top);
  return top + std::log(sum);
}

NormalizedRow normalize(const Normalizer& normalizer, std::span<const double> z) {
  switch (normalizer.kind) {
    case NormalizerKind::softmax:
      return with_sink(z, -kInfinity);
    case NormalizerKind::softmax1:
      return with_sink(z, 0);
    case NormalizerKind::sink_logit:
      return with_sink(z, normalizer.sink_logit);
    case NormalizerKind::clipped:
      return clipped(z, normalizer.gamma, normalizer.zeta);
    case NormalizerKind::sparsemax:
    case NormalizerKind::entmax15:
      return projected(z, normalizer.kind);
    case NormalizerKind::sigmoid:
      return sigmoids(z);
  }
  return {};
}

}  // namespace sinkscope
