// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/what_if/head_preview.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace sinkscope {
namespace {

// A sparse projection needs only scores that lie less than this below the largest one.
double reach_of(NormalizerKind kind) { return kind == NormalizerKind::entmax15 ? 2 : 1; }

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The weights of one row under a normalizer, out of its softmax weights u (over the keys that are
// left) and their lse; written over u. Returns the null mass.
class Row {
 public:
  Row(const Normalizer& normalizer) : normalizer_(normalizer) {}

  double apply(float* u, int n, double lse) {
    switch (normalizer_.kind) {
      case NormalizerKind::softmax:
        return 0;
      case NormalizerKind::softmax1:
        return with_sink(u, n, lse, 0);
      case NormalizerKind::sink_logit:
        return with_sink(u, n, lse, normalizer_.sink_logit);
      case NormalizerKind::clipped:
        return clipped(u, n);
      case NormalizerKind::sigmoid:
        return sigmoids(u, n, lse);
      case NormalizerKind::sparsemax:
      case NormalizerKind::entmax15:
        return projected(u, n);
    }
    return 0;
  }

 private:
  static double with_sink(float* u, int n, double lse, double b) {
    const auto share = static_cast<float>(sigmoid(lse - b));
    for (int j = 0; j < n; ++j) u[j] *= share;
    return sigmoid(b - lse);
  }

  // A key that is not there has u = 0 and stays away: γ ≤ 0 clips it.
  double clipped(float* u, int n) const {
    const auto slope = static_cast<float>(normalizer_.zeta - normalizer_.gamma);
    const auto shift = static_cast<float>(normalizer_.gamma);
    double sum = 0;
    for (int j = 0; j < n; ++j) {
      u[j] = std::clamp(slope * u[j] + shift, 0.0F, 1.0F);
      sum += u[j];
    }
    return std::max(0.0, 1 - sum);
  }

  // 1 / (1 + e^{−s}) with e^s = u e^{lse}.
  static double sigmoids(float* u, int n, double lse) {
    const double odds = std::exp(-lse);
    double sum = 0;
    for (int j = 0; j < n; ++j) {
      const double p = u[j] > 0 ? u[j] / (u[j] + odds) : 0;
      u[j] = static_cast<float>(p);
      sum += p;
    }
    return std::max(0.0, 1 - sum);
  }

  // core/normalizer.h over the few keys that can be in the support, which gives the same threshold.
  double projected(float* u, int n) {
    const float top = *std::max_element(u, u + n);
    if (!(top > 0)) return 0;
    const auto least = static_cast<float>(top * std::exp(-reach_of(normalizer_.kind)));
    keys_.clear();
    scores_.clear();
    for (int j = 0; j < n; ++j) {
      if (!(u[j] >= least)) continue;
      keys_.push_back(j);
      scores_.push_back(std::log(static_cast<double>(u[j]) / top));
    }
    const NormalizedRow row = normalize(normalizer_, scores_);
    std::fill(u, u + n, 0.0F);
    for (std::size_t i = 0; i < keys_.size(); ++i) u[keys_[i]] = static_cast<float>(row.p[i]);
    return row.null_mass;
  }

  Normalizer normalizer_;
  std::vector<int> keys_;
  std::vector<double> scores_;
};

// What the edits ask of one head: the last normalizer, and all keys that any of them drops.
struct HeadPlan {
  Normalizer normalizer;
  std::vector<bool> lost;  // [n]
  bool loses = false, renormalize = true;
};

double sink_of(const AttentionNormalizer& edit, int head) {
  if (edit.sink_logits.empty()) return edit.normalizer.sink_logit;
  std::size_t place = static_cast<std::size_t>(head);
  if (!edit.heads.is_all()) {
    const std::vector<int>& heads = edit.heads.members();
    place = static_cast<std::size_t>(std::find(heads.begin(), heads.end(), head) - heads.begin());
  }
  if (place >= edit.sink_logits.size())
    throw Error(ErrorKind::invalid_argument,
                fmt::format("attention.normalizer: \"b\": expected a number for head {}, found {} "
                            "numbers",
                            head, edit.sink_logits.size()));
  return edit.sink_logits[place];
}

HeadPlan plan_of(const HeadInput& input, const WhatIf& what_if) {
  HeadPlan plan;
  plan.lost.assign(static_cast<std::size_t>(input.pattern.rows()), false);
  for (const Edit& edit : what_if) {
    if (!touches_head(edit, input.layer, input.head)) continue;
    if (const auto* swap = std::get_if<AttentionNormalizer>(&edit)) {
      if (swap->from_checkpoint)
        throw Error(ErrorKind::unsupported, "\"b\": \"checkpoint\" needs a rerun of the model");
      plan.normalizer = swap->normalizer;
      plan.normalizer.sink_logit = sink_of(*swap, input.head);
    } else if (const auto* mask = std::get_if<AttentionMaskKey>(&edit)) {
      plan.loses = true;
      plan.renormalize = mask->renormalize;
      for (int key : mask->keys.members())
        if (key < static_cast<int>(plan.lost.size()))
          plan.lost[static_cast<std::size_t>(key)] = true;
    }
  }
  return plan;
}

// Takes the lost keys of query i out of a row of n = i + 1; returns the mass that goes.
double take_lost(const HeadPlan& plan, float* row, int i) {
  double mass = 0;
  for (int j = 0; j < i; ++j) {  // a query at a lost position keeps its own key
    if (!plan.lost[static_cast<std::size_t>(j)]) continue;
    mass += row[j];
    row[j] = 0;
  }
  return mass;
}

// A larger map takes too long, and too much memory, for a preview.
constexpr int kMostWhole = 4096;

template <class AttentionEdit>
bool covers(const AttentionEdit& edit, int layer, int head) {
  return edit.layers.contains(layer) && edit.heads.contains(head);
}

// As many queries and keys as there are whole rows of.
bool has_whole_maps(const CaptureReader& reader, const std::string& run, int seq_len) {
  if (seq_len > kMostWhole || !reader.has(run, "attention/pattern")) return false;
  const auto dims = reader.dims(run, "attention/pattern");
  return dims[2] == seq_len && dims[3] == seq_len;
}

}  // namespace

HeadInput read_head_input(const CaptureReader& reader, const std::string& run, int layer,
                          int head) {
  HeadInput input;
  input.layer = layer;
  input.head = head;
  input.seq_len = reader.input(run).seq_len();
  if (!reader.has(run, "attention/layers"))
    throw Error(ErrorKind::not_found,
                fmt::format("{}: no softmax attention is recorded", reader.path()));
  const std::vector<int> layers = reader.read_i32(run, "attention/layers");
  const auto row = std::find(layers.begin(), layers.end(), layer) - layers.begin();
  if (row == static_cast<std::ptrdiff_t>(layers.size()) || head < 0 ||
      head >= reader.model(run).n_heads)
    throw Error(ErrorKind::not_found,
                fmt::format("{}: no attention in layer {}, head {}", reader.path(), layer, head));
  const std::int64_t last = input.seq_len - 1;
  if (last > 0 && reader.read_f64(run, "attention/visible", {row, last}, {1, 1}).front() > 1)
    throw Error(ErrorKind::unsupported,
                fmt::format("{}: {}: a head whose queries see later keys has no preview; run the "
                            "model under the what-if",
                            reader.path(), run));
  std::vector<float> values;
  std::int64_t n = 0;
  if (has_whole_maps(reader, run, input.seq_len)) {
    const std::vector<int> recorded = reader.read_i32(run, "attention/pattern_layers"),
                           heads = reader.read_i32(run, "attention/pattern_heads");
    const auto slot = std::find(recorded.begin(), recorded.end(), layer) - recorded.begin();
    const auto place = std::find(heads.begin(), heads.end(), head) - heads.begin();
    if (slot < static_cast<std::ptrdiff_t>(recorded.size()) &&
        place < static_cast<std::ptrdiff_t>(heads.size())) {
      n = input.seq_len;
      values = reader.read_f32(run, "attention/pattern", {slot, place, 0, 0}, {1, 1, n, n});
    }
  }
  if (values.empty()) {
    n = std::min(input.seq_len, 64);
    values = reader.read_f32(run, "attention/window", {row, head, 0, 0}, {1, 1, n, n});
  }
  input.pattern = ConstMapF(values.data(), n, n);
  if (reader.has(run, "attention/value_norm")) {
    const std::int64_t n_value = reader.dims(run, "attention/value_norm").at(1);
    const std::int64_t value_head = head * n_value / reader.model(run).n_heads;
    input.value_norm =
        reader.read_f32(run, "attention/value_norm", {row, value_head, 0}, {1, 1, n});
  }
  input.token_ids = reader.input(run).token_ids;
  input.lse = reader.read_f64(run, "attention/lse", {row, head, 0}, {1, 1, n});
  if (reader.has(run, "attention/compressed_mass"))
    throw Error(ErrorKind::unsupported,
                fmt::format("{}: queries of this model see compressed keys, too, which its maps "
                            "leave out; a rerun of the model shows the effect",
                            reader.path()));
  input.null = reader.read_f64(run, "attention/null_mass", {row, head, 0}, {1, 1, n});
  return input;
}

bool touches_head(const Edit& edit, int layer, int head) {
  if (const auto* swap = std::get_if<AttentionNormalizer>(&edit)) return covers(*swap, layer, head);
  if (const auto* mask = std::get_if<AttentionMaskKey>(&edit)) return covers(*mask, layer, head);
  return false;
}

bool touches_output(const Edit& edit, int layer, int head) {
  if (const auto* value = std::get_if<AttentionValue>(&edit)) return covers(*value, layer, head);
  if (const auto* gate = std::get_if<AttentionGate>(&edit)) return covers(*gate, layer, head);
  return false;
}

MatrixF addend_lengths(const HeadInput& input, const WhatIf& what_if, const MatrixF& pattern) {
  if (input.value_norm.empty())
    throw Error(ErrorKind::unsupported,
                "the norms of the values are not recorded: an edit of values or gates needs a "
                "rerun of the model");
  std::vector<float> length = input.value_norm;
  for (const Edit& edit : what_if) {
    if (!touches_output(edit, input.layer, input.head)) continue;
    if (const auto* value = std::get_if<AttentionValue>(&edit)) {
      for (int t : value->tokens.of(input.token_ids))
        if (t < static_cast<int>(length.size()))
          length[static_cast<std::size_t>(t)] *= static_cast<float>(std::abs(value->scale));
    } else if (const auto* gate = std::get_if<AttentionGate>(&edit)) {
      if (!gate->weights.empty())
        throw Error(ErrorKind::unsupported,
                    "attention.gate: weights of a file need a rerun of the model");
      for (float& one : length) one *= static_cast<float>(std::abs(gate->value));
    }
  }
  const Eigen::Map<const Eigen::RowVectorXf> scale(length.data(),
                                                   static_cast<Eigen::Index>(length.size()));
  return (pattern.array().rowwise() * scale.array()).matrix();
}

HeadPreview previewed_head(const HeadInput& input, const WhatIf& what_if) {
  HeadPreview preview{input.pattern, input.null};
  const bool is_touched = std::any_of(what_if.begin(), what_if.end(), [&](const Edit& edit) {
    return touches_head(edit, input.layer, input.head);
  });
  if (!is_touched) return preview;
  const HeadPlan plan = plan_of(input, what_if);
  Row row(plan.normalizer);
  for (Eigen::Index i = 0; i < preview.pattern.rows(); ++i) {
    const auto q = static_cast<std::size_t>(i);
    float* p = preview.pattern.row(i).data();
    const int n = static_cast<int>(i) + 1;
    // Softmax weights of the keys that are left. Their own sum says how much that is: next to a
    // sink, 1 minus what is lost would leave no digits.
    if (plan.loses && plan.renormalize) take_lost(plan, p, static_cast<int>(i));
    double lse = input.lse[q];
    if (input.null[q] > 0 || (plan.loses && plan.renormalize)) {
      double left = 0;
      for (int j = 0; j < n; ++j) left += p[j];
      const auto factor = static_cast<float>(left > 0 ? 1 / left : 0);
      for (int j = 0; j < n; ++j) p[j] *= factor;
      lse += std::log(left / (1 - input.null[q]));
    }
    preview.null[q] = row.apply(p, n, lse);
    if (plan.loses && !plan.renormalize) preview.null[q] += take_lost(plan, p, static_cast<int>(i));
  }
  return preview;
}

std::vector<double> column_sums(const MatrixF& pattern) {
  std::vector<double> sums(static_cast<std::size_t>(pattern.cols()), 0.0);
  for (Eigen::Index i = 0; i < pattern.rows(); ++i) {
    const float* row = pattern.row(i).data();
    for (Eigen::Index j = 0; j <= std::min(i, pattern.cols() - 1); ++j)
      sums[static_cast<std::size_t>(j)] += row[j];
  }
  return sums;
}

}  // namespace sinkscope
