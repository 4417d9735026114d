// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <limits>

#include "capture/model/attention.h"

// What both bodies of attention have in common.
namespace sinkscope {

AttentionStats::AttentionStats(int heads, int kv_heads, int tokens)
    : n_heads(heads),
      n_kv_heads(kv_heads),
      seq_len(tokens),
      window_side(std::min(tokens, 64)),
      bins(std::min(tokens, 64)) {
  const auto rows = static_cast<std::size_t>(heads) * static_cast<std::size_t>(tokens);
  for (auto* v : {&lse, &null_mass, &entropy, &max_prob, &logit_max, &logit_gap, &distance, &first4,
                  &last8, &out_norm, &out_norm_sum})
    v->assign(rows, 0.0f);
  key_mass.assign(rows, 0.0);
  visible.assign(static_cast<std::size_t>(tokens), 0);
  value_norm.assign(static_cast<std::size_t>(kv_heads) * static_cast<std::size_t>(tokens), 0.0f);
  window.assign(static_cast<std::size_t>(heads * window_side * window_side), 0.0f);
  thumbnail.assign(static_cast<std::size_t>(heads * bins * bins), 0.0f);
}

void group_value_norms(const std::vector<float>& head_norms, AttentionStats& stats) {
  const auto T = static_cast<std::size_t>(stats.seq_len);
  const auto repeat = static_cast<std::size_t>(stats.n_heads / stats.n_kv_heads);
  for (std::size_t i = 0; i < stats.value_norm.size(); ++i) {
    const std::size_t group = i / T, t = i % T;
    const float first = head_norms[group * repeat * T + t];
    stats.value_norm[i] = first;
    for (std::size_t h = 1; h < repeat; ++h)
      if (head_norms[(group * repeat + h) * T + t] != first)
        stats.value_norm[i] = std::numeric_limits<float>::quiet_NaN();
  }
}

void count_visible(const AttentionCall& call, AttentionStats& stats) {
  const int T = stats.seq_len, window = call.window;
  if (!call.selected.defined()) {
    for (int key = 0; key < T; ++key)
      stats.visible[static_cast<std::size_t>(key)] = window == kAllKeys ? T
                                                     : window > 0       ? std::min(window, T - key)
                                                                        : T - key;
    return;
  }
  const at::Tensor selected = call.selected.to(at::kCPU).contiguous();
  const std::int64_t* keys = selected.const_data_ptr<std::int64_t>();
  for (int query = 0; query < T; ++query)
    for (std::int64_t i = 0; i < selected.size(1); ++i) {
      const std::int64_t key = keys[query * selected.size(1) + i];
      const bool is_seen =
          window == kAllKeys || (key <= query && (window == 0 || key > query - window));
      if (is_seen && key < T) ++stats.visible[static_cast<std::size_t>(key)];
    }
}

}  // namespace sinkscope
