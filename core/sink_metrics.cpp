// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sink_metrics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace sinkscope {
namespace {
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
}

FirstTokenScore first_token_score(const ConstMapF& pattern) {
  const double mass = pattern.col(0).cast<double>().sum();
  return first_token_score(mass, pattern(0, 0), static_cast<int>(pattern.rows()));
}

FirstTokenScore first_token_score(double key0_mass, double a00, int seq_len) {
  return {key0_mass / seq_len, seq_len > 1 ? (key0_mass - a00) / (seq_len - 1) : kNaN};
}

VectorD gu_scores(const ConstMapF& pattern) {
  VectorD score(pattern.cols());
  for (Eigen::Index k = 0; k < pattern.cols(); ++k) {
    const Eigen::Index n = pattern.rows() - k;
    score[k] = pattern.col(k).tail(n).cast<double>().sum() / static_cast<double>(n);
  }
  return score;
}

VectorD gu_scores(std::span<const float> key_mass, std::span<const int> visible) {
  assert(key_mass.size() == visible.size());
  VectorD score(static_cast<Eigen::Index>(key_mass.size()));
  for (std::size_t k = 0; k < key_mass.size(); ++k) {
    score[static_cast<Eigen::Index>(k)] = visible[k] > 0 ? double{key_mass[k]} / visible[k] : kNaN;
  }
  return score;
}

VectorD gu_scores_cut(const ConstMapF& window, std::span<const int> visible, int length) {
  assert(length <= window.rows() && length <= static_cast<int>(visible.size()));
  VectorD score(length);
  for (int k = 0; k < length; ++k) {
    const int queries = std::min(visible[static_cast<std::size_t>(k)], length - k);
    const double mass = window.col(k).segment(k, length - k).cast<double>().sum();
    score[k] = queries > 0 ? mass / queries : kNaN;
  }
  return score;
}

SinkRatio sink_ratio(std::span<const double> scores, double epsilon) {
  SinkRatio r;
  for (const double s : scores) {
    if (std::isnan(s)) continue;
    ++r.cells;
    if (s > epsilon) ++r.above;
  }
  r.ratio = r.cells > 0 ? static_cast<double>(r.above) / static_cast<double>(r.cells) : kNaN;
  return r;
}

HeadSummary summarize_heads(std::span<const double> scores, double epsilon) {
  HeadSummary s;
  double sum = 0;
  int n = 0;
  for (std::size_t h = 0; h < scores.size(); ++h) {
    if (std::isnan(scores[h])) continue;
    sum += scores[h];
    ++n;
    if (s.max_head < 0 || scores[h] > s.max) {
      s.max = scores[h];
      s.max_head = static_cast<int>(h);
    }
  }
  s.mean = n > 0 ? sum / n : kNaN;
  if (n == 0) s.max = kNaN;
  s.share_above = sink_ratio(scores, epsilon).ratio;
  return s;
}

}  // namespace sinkscope
