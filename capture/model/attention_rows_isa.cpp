// SPDX-License-Identifier: GPL-3.0-or-later
// Compiled once per instruction set; attention_rows.cpp picks one at run time.
#include "capture/model/attention_rows_isa.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "capture/model/attention_rows.h"
#include "capture/model/row_order_isa.h"
#include "capture/model/simd_lanes.h"

namespace sinkscope::SINKSCOPE_ISA {
namespace {

struct Visible {
  int begin, end;  // columns
};

Visible visible_columns(const AttentionBlock& b, int row) {
  if (b.all_keys) return {0, b.n_keys};
  const int query = b.query_begin + row;
  const int first = b.window > 0 ? std::max(0, query - b.window + 1) : 0;
  return {std::max(0, first - b.key_begin), query + 1 - b.key_begin};
}

struct Sums {
  double mass = 0, weighted_logit = 0;
};

// x <- exp(x - top); returns Σ e and Σ e·x.
Sums exponentiate(float* x, int n, float top) {
  Sums sums;
  for (int run = 0; run < n; run += kRun) {
    const int end = std::min(n, run + kRun);
    F16 mass{}, weighted{};
    int i = run;
    for (; i + kLanes <= end; i += kLanes) {
      const F16 s = load(x + i) - top;
      const F16 e = exp_nonpositive(s);
      store(x + i, e);
      mass += e;
      // exp(-inf) = 0 and 0·(-inf) is no number: a masked key weighs nothing.
      weighted += e == F16{} ? F16{} : e * s;
    }
    if (i < end) {
      const int left = end - i;
      const F16 s = keep(load_part(x + i, left, top) - top, left, -1000.0f);
      const F16 e = exp_nonpositive(s);
      float part[kLanes];
      store(part, e);
      std::copy(part, part + left, x + i);
      mass += e;
      weighted += e == F16{} ? F16{} : e * s;
    }
    sums.mass += sum(mass);
    sums.weighted_logit += sum(weighted);
  }
  return sums;
}

struct Moments {
  double mass = 0, position = 0, value_norm = 0;  // Σ p, Σ p·column, Σ p·‖v‖
};

// x <- x / mass, column sums, and the two weighted sums.
Moments normalize(float* x, int n, float inverse, const float* value_norm, float* key_mass) {
  Moments moments;
  for (int run = 0; run < n; run += kRun) {
    const int end = std::min(n, run + kRun);
    F16 mass{}, position{}, norm{};
    F16 offset = lane_index();
    int i = run;
    for (; i + kLanes <= end; i += kLanes) {
      const F16 p = load(x + i) * inverse;
      store(x + i, p);
      store(key_mass + i, load(key_mass + i) + p);
      mass += p;
      position += p * offset;
      norm += p * load(value_norm + i);
      offset += static_cast<float>(kLanes);
    }
    double mass_run = sum(mass), position_run = sum(position), norm_run = sum(norm);
    for (; i < end; ++i) {
      const float p = x[i] * inverse;
      x[i] = p;
      key_mass[i] += p;
      mass_run += p;
      position_run += static_cast<double>(p) * (i - run);
      norm_run += static_cast<double>(p) * value_norm[i];
    }
    moments.mass += mass_run;
    moments.position += position_run + mass_run * run;
    moments.value_norm += norm_run;
  }
  return moments;
}

struct Weights {
  double lse = 0, entropy = 0, null_mass = 0;
  float largest = 0;
  Moments moments;
};

Weights softmax_row(float* seen, int n, float top, const float* value_norm, float* key_mass) {
  const Sums sums = exponentiate(seen, n, top);
  Weights w;
  w.lse = top + std::log(sums.mass);
  w.largest = static_cast<float>(1.0 / sums.mass);
  w.moments = normalize(seen, n, w.largest, value_norm, key_mass);
  w.moments.mass = 1;
  // H = LSE - Σ p s = ln Σe^(s-m) - Σ p (s-m)
  w.entropy = std::max(0.0, std::log(sums.mass) - sums.weighted_logit / sums.mass);
  return w;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The logit beside the row's own scores in the denominator; −∞ for plain softmax.
double sink_of(const Normalizer& normalizer) {
  return normalizer.kind == NormalizerKind::softmax1     ? 0
         : normalizer.kind == NormalizerKind::sink_logit ? normalizer.sink_logit
                                                         : -HUGE_VAL;
}

// Keys [n] that are lost, but for the query's own.
struct LostKeys {
  const bool* keys = nullptr;  // null = none
  int own = 0;
  bool at(int i) const { return keys[i] && i != own; }
};

// Sets lost scores to −∞ and returns Σ exp(s − top) of those that were visible.
double lose(float* seen, int n, const LostKeys& lost, float top) {
  double mass = 0;
  for (int i = 0; i < n; ++i) {
    if (!lost.at(i)) continue;
    mass += std::exp(static_cast<double>(seen[i]) - top);
    seen[i] = -std::numeric_limits<float>::infinity();
  }
  return mass;
}

// Softmax, with a logit in the denominator that has no value, or with keys that are lost. A row
// times a gate: p = softmax(s) · sigmoid(LSE − b), the rest is sigmoid(b − LSE).
Weights gated_row(const AttentionBlock& b, double sink, float* seen, int n, const LostKeys& lost,
                  float raw_top, const float* value_norm, float* key_mass) {
  const double raw_lse = log_sum_exp(seen, n);
  const bool any_lost = lost.keys != nullptr;
  const double lost_mass = any_lost ? lose(seen, n, lost, raw_top) : 0;
  const float kept_top = any_lost ? range_of(seen, n).max : raw_top;
  const float top = b.renormalize ? kept_top : raw_top;
  const Sums sums = exponentiate(seen, n, top);
  const double mass = b.renormalize ? sums.mass : std::exp(raw_lse - top);
  const double lse = top + std::log(mass);
  const double inverse = sigmoid(lse - sink) / mass;
  Weights w;
  w.lse = raw_lse;
  w.null_mass =
      (sink == -HUGE_VAL ? 0 : sigmoid(sink - lse)) + (b.renormalize ? 0 : lost_mass * inverse);
  w.largest = static_cast<float>(inverse * std::exp(static_cast<double>(kept_top) - top));
  w.moments = normalize(seen, n, static_cast<float>(inverse), value_norm, key_mass);
  if (inverse > 0)
    w.entropy = std::max(0.0, -inverse * (sums.weighted_logit + std::log(inverse) * sums.mass));
  return w;
}

// Every other normalizer.
Weights other_row(const AttentionBlock& b, float* seen, int n, const LostKeys& lost, float raw_top,
                  const float* value_norm, float* key_mass) {
  Weights w;
  w.lse = log_sum_exp(seen, n);
  float top = raw_top;
  if (lost.keys != nullptr && b.renormalize) {
    lose(seen, n, lost, raw_top);
    top = range_of(seen, n).max;
  }
  w.null_mass = weights_by_reference(b.normalizer, seen, n, top);
  if (lost.keys != nullptr && !b.renormalize)
    for (int i = 0; i < n; ++i) {
      if (!lost.at(i)) continue;
      w.null_mass += seen[i];
      seen[i] = 0;
    }
  for (int i = 0; i < n; ++i) {
    if (seen[i] > 0) w.entropy -= seen[i] * std::log(static_cast<double>(seen[i]));
    w.largest = std::max(w.largest, seen[i]);
  }
  w.moments = normalize(seen, n, 1.0f, value_norm, key_mass);
  return w;
}

struct Scores {
  Range range;
  float median;  // element (n − 1) / 2 of the sorted ones
};

// Of a row's scores but those that are hidden (−∞).
Scores seen_scores(const float* seen, int n, bool has_hidden) {
  if (!has_hidden) {
    const Range range = range_of(seen, n);
    return {range, select(seen, n, (n - 1) / 2, range)};
  }
  thread_local std::vector<float> kept;
  kept.clear();
  for (int i = 0; i < n; ++i)
    if (seen[i] > -std::numeric_limits<float>::infinity()) kept.push_back(seen[i]);
  return seen_scores(kept.data(), static_cast<int>(kept.size()), false);
}

// Σ p |i − j| of a row whose query, at column `own`, sees keys on both sides.
double distance_both_ways(const float* p, int n, int own) {
  double sum = 0;
  for (int j = 0; j < n; ++j) sum += static_cast<double>(p[j]) * std::abs(own - j);
  return sum;
}

void one_row(const AttentionBlock& b, int row, const AttentionRowStats& out, float* key_mass) {
  float* x = b.scores + row * b.stride;
  const Visible v = visible_columns(b, row);
  const int n = v.end - v.begin;
  float* seen = x + v.begin;
  const auto [range, median] = seen_scores(seen, n, b.n_hidden != nullptr && b.n_hidden[row] > 0);
  const NormalizerKind kind = b.normalizer.kind;
  const bool is_softmax = kind == NormalizerKind::softmax && b.sink == nullptr,
             is_gated = is_softmax || b.sink != nullptr || kind == NormalizerKind::softmax1 ||
                        kind == NormalizerKind::sink_logit;
  const float* norms = b.value_norm + v.begin;
  const int own = b.query_begin + row - b.key_begin;
  const LostKeys lost{b.lost == nullptr ? nullptr : b.lost + v.begin, own - v.begin};
  float* mass = key_mass + v.begin;
  const double sink = b.sink != nullptr ? static_cast<double>(b.sink[row]) : sink_of(b.normalizer);
  const Weights w = is_softmax && lost.keys == nullptr
                        ? softmax_row(seen, n, range.max, norms, mass)
                    : is_gated ? gated_row(b, sink, seen, n, lost, range.max, norms, mass)
                               : other_row(b, seen, n, lost, range.max, norms, mass);
  if (v.begin > 0) std::memset(x, 0, sizeof(float) * static_cast<std::size_t>(v.begin));
  std::memset(x + v.end, 0, sizeof(float) * static_cast<std::size_t>(b.n_keys - v.end));

  out.lse[row] = static_cast<float>(w.lse);
  out.entropy[row] = static_cast<float>(w.entropy);
  if (!is_softmax || lost.keys != nullptr) out.null_mass[row] = static_cast<float>(w.null_mass);
  out.max_prob[row] = w.largest;
  out.logit_max[row] = range.max;
  out.logit_gap[row] = range.max - median;
  // Positions are counted from the first visible column.
  out.distance[row] = static_cast<float>(
      b.all_keys ? distance_both_ways(x, n, own) : (n - 1) * w.moments.mass - w.moments.position);
  float first4 = 0;
  for (int key = b.key_begin; key < std::min(4, b.key_begin + v.end); ++key)
    first4 += x[key - b.key_begin];
  out.first4[row] = first4;
  float last8 = 0;
  for (int c = std::max(v.begin, own - 7); c <= own; ++c) last8 += x[c];
  out.last8[row] = last8;
  out.out_norm_sum[row] = static_cast<float>(w.moments.value_norm);
}

}  // namespace

void attention_rows(const AttentionBlock& block, const AttentionRowStats& stats, float* key_mass) {
  for (int row = 0; row < block.n_rows; ++row) one_row(block, row, stats, key_mass);
}

}  // namespace sinkscope::SINKSCOPE_ISA
