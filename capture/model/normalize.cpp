// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/normalize.h"

#include <cmath>
#include <limits>

namespace sinkscope {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Rows that are −∞ throughout would be NaN; rows that hold NaN or +∞ stay NaN.
at::Tensor softmax(const at::Tensor& scores) {
  const at::Tensor is_empty = scores.amax(-1, /*keepdim=*/true).eq(-kInfinity);
  return scores.softmax(-1).masked_fill(is_empty, 0.0);
}

NormalizedScores with_sink(const at::Tensor& scores, double b) {
  const at::Tensor p = softmax(scores);
  if (b == -kInfinity) return {p, at::zeros_like(scores.select(-1, 0))};
  const at::Tensor lse = scores.logsumexp(-1);
  // Softmax times a gate of the whole row; both shares in the form that loses nothing.
  return {p * (lse - b).sigmoid().unsqueeze(-1), (b - lse).sigmoid()};
}

at::Tensor missing_mass(const at::Tensor& p) { return (1 - p.sum(-1)).clamp_min(0); }

NormalizedScores clipped(const at::Tensor& scores, double gamma, double zeta) {
  const at::Tensor p = (softmax(scores) * (zeta - gamma) + gamma)
                           .clamp(0.0, 1.0)
                           .masked_fill(scores.eq(-kInfinity), 0.0);
  return {p, missing_mass(p)};
}

// Sparsemax and entmax 1.5 by sorting: the threshold of the largest support that holds.
NormalizedScores projected(const at::Tensor& scores, bool is_entmax) {
  const at::Tensor top = scores.amax(-1, /*keepdim=*/true);
  const at::Tensor is_empty = top.eq(-kInfinity);
  const at::Tensor z = (scores - top.masked_fill(is_empty, 0.0)) / (is_entmax ? 2.0 : 1.0);
  const at::Tensor sorted = std::get<0>(z.sort(-1, /*descending=*/true));
  const at::Tensor is_finite = sorted.isfinite();
  const at::Tensor values = sorted.masked_fill(is_finite.logical_not(), 0.0);
  const at::Tensor k = at::arange(1, z.size(-1) + 1, z.options());
  const at::Tensor sum = values.cumsum(-1);
  at::Tensor threshold, holds;
  if (is_entmax) {
    const at::Tensor mean = sum / k, spread = k * (values.square().cumsum(-1) / k - mean.square());
    threshold = mean - ((1 - spread) / k).clamp_min(0).sqrt();
    holds = threshold.le(values);
  } else {
    threshold = (sum - 1) / k;
    holds = (1 + k * values).gt(sum);
  }
  const at::Tensor support = holds.logical_and(is_finite).sum(-1, /*keepdim=*/true);
  const at::Tensor tau = threshold.gather(-1, (support - 1).clamp_min(0));
  at::Tensor p = (z - tau).clamp_min(0);
  if (is_entmax) p = p.square();
  return {p.masked_fill(is_empty, 0.0), at::zeros_like(scores.select(-1, 0))};
}

}  // namespace

NormalizedScores normalize(const Normalizer& normalizer, const at::Tensor& scores) {
  switch (normalizer.kind) {
    case NormalizerKind::softmax:
      return with_sink(scores, -kInfinity);
    case NormalizerKind::softmax1:
      return with_sink(scores, 0);
    case NormalizerKind::sink_logit:
      return with_sink(scores, normalizer.sink_logit);
    case NormalizerKind::clipped:
      return clipped(scores, normalizer.gamma, normalizer.zeta);
    case NormalizerKind::sparsemax:
      return projected(scores, false);
    case NormalizerKind::entmax15:
      return projected(scores, true);
    case NormalizerKind::sigmoid:
      break;
  }
  const at::Tensor p = scores.sigmoid();
  return {p, missing_mass(p)};
}

}  // namespace sinkscope
