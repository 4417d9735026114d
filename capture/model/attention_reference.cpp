// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <limits>

#include "capture/model/attention.h"
#include "capture/model/normalize.h"
#include "capture/model/relative_logits.h"

// Attention and its statistics in plain tensor operations, for any device; the fused body is tested
// against it.
namespace sinkscope {
namespace {

// One tile: heads [head, head + n_heads) and rows [row, row + n_rows) against keys [key_begin,
// key_end).
struct Tile {
  int head, n_heads, row, n_rows, key_begin, key_end;
};

void copy_rows(const at::Tensor& values, const Tile& t, int T, std::vector<float>& into) {
  const at::Tensor host = values.to(at::kCPU, at::kFloat).contiguous();  // [heads, rows]
  for (int h = 0; h < t.n_heads; ++h)
    std::copy_n(host.data_ptr<float>() + std::int64_t{h} * t.n_rows, t.n_rows,
                &into[std::int64_t{t.head + h} * T + t.row]);
}

// [rows, keys] true where the query sees the key.
at::Tensor visible_mask(const Tile& t, int window, const at::Device& device) {
  const auto options = at::TensorOptions().dtype(at::kLong).device(device);
  const at::Tensor i = at::arange(t.row, t.row + t.n_rows, options).unsqueeze(1);
  const at::Tensor j = at::arange(t.key_begin, t.key_end, options).unsqueeze(0);
  if (window == kAllKeys) return at::ones({t.n_rows, t.key_end - t.key_begin}, i.options()).gt(0);
  at::Tensor seen = j.le(i);
  if (window > 0) seen = seen.logical_and(j.gt(i - window));
  return seen;
}

// Lower median of the visible scores: sorting pushes the unseen (+inf here) to the end.
at::Tensor lower_median_of(const at::Tensor& scores, const at::Tensor& seen) {
  const double inf = std::numeric_limits<double>::infinity();
  const at::Tensor sorted = std::get<0>(scores.masked_fill(seen.logical_not(), inf).sort(-1));
  const at::Tensor k = (seen.sum(-1) - 1).floor_divide(2);  // [rows]
  const at::Tensor index = k.view({1, -1, 1}).expand({scores.size(0), -1, 1});
  return sorted.gather(-1, index).squeeze(-1);
}

// −Σ p ln p; a softmax row has it from its log-sum-exp, without losing small p.
at::Tensor entropy_of(const at::Tensor& p, const at::Tensor& ps, const at::Tensor& lse,
                      bool is_edited) {
  if (!is_edited) return (lse.to(at::kDouble) - ps).clamp_min(0);
  return at::special_entr(p).sum(-1);
}

void row_statistics(const at::Tensor& scores, const at::Tensor& p, const at::Tensor& seen,
                    const Tile& t, const at::Tensor& value_norm, bool is_edited,
                    AttentionStats& stats) {
  const int T = stats.seq_len;
  const double inf = std::numeric_limits<double>::infinity();
  const at::Tensor masked = scores.masked_fill(seen.logical_not(), -inf);
  const at::Tensor top = masked.amax(-1), lse = masked.logsumexp(-1);
  const at::Tensor pd = p.to(at::kDouble);
  const at::Tensor ps = pd.mul(scores.to(at::kDouble)).masked_fill(seen.logical_not(), 0).sum(-1);
  copy_rows(lse, t, T, stats.lse);
  copy_rows(entropy_of(pd, ps, lse, is_edited), t, T, stats.entropy);
  copy_rows(p.amax(-1), t, T, stats.max_prob);
  copy_rows(top, t, T, stats.logit_max);
  copy_rows(top - lower_median_of(scores, seen), t, T, stats.logit_gap);
  const auto options = at::TensorOptions().dtype(at::kDouble).device(p.device());
  const at::Tensor i = at::arange(t.row, t.row + t.n_rows, options).unsqueeze(1);
  const at::Tensor j = at::arange(t.key_begin, t.key_end, options).unsqueeze(0);
  const int n_keys = t.key_end - t.key_begin;
  const at::Tensor of_tokens = pd.narrow(-1, 0, n_keys);  // compressed entries have no position
  copy_rows(of_tokens.mul((i - j).abs()).sum(-1), t, T, stats.distance);
  copy_rows(of_tokens.mul(j.lt(4)).sum(-1), t, T, stats.first4);
  copy_rows(of_tokens.mul(j.gt(i - 8).logical_and(j.le(i))).sum(-1), t, T, stats.last8);
  copy_rows(p.matmul(value_norm.unsqueeze(-1)).squeeze(-1), t, T, stats.out_norm_sum);

  const at::Tensor mass = of_tokens.sum(-2).to(at::kCPU).contiguous();  // [heads, keys]
  for (int h = 0; h < t.n_heads; ++h)
    for (int key = 0; key < n_keys; ++key)
      stats.key_mass[std::int64_t{t.head + h} * T + t.key_begin + key] +=
          mass.data_ptr<double>()[std::int64_t{h} * n_keys + key];
}

// Window and thumbnail from the probabilities on the host [heads, rows, keys].
void pictures(const at::Tensor& host, const Tile& t, AttentionStats& stats) {
  const int n_keys = t.key_end - t.key_begin, W = stats.window_side, B = stats.bins;
  const auto bin = [&](int i) { return static_cast<int>(std::int64_t{i} * B / stats.seq_len); };
  for (int h = 0; h < t.n_heads; ++h) {
    for (int r = 0; r < t.n_rows; ++r) {
      const float* p = host.data_ptr<float>() + (std::int64_t{h} * t.n_rows + r) * n_keys;
      const std::int64_t head = t.head + h;
      float* line = &stats.thumbnail[(head * B + bin(t.row + r)) * B];
      for (int j = 0; j < n_keys; ++j) {
        const int key = t.key_begin + j;
        line[bin(key)] = std::max(line[bin(key)], p[j]);
        if (t.row + r < W && key < W) stats.window[(head * W + t.row + r) * W + key] = p[j];
      }
    }
  }
}

void store_map(const at::Tensor& host, const Tile& t, int T, float* map) {
  const int n_keys = t.key_end - t.key_begin;
  for (std::int64_t line = 0; line < std::int64_t{t.n_heads} * t.n_rows; ++line) {
    float* to = map + line * T;
    std::fill_n(to, t.key_begin, 0.0f);
    std::copy_n(host.data_ptr<float>() + line * n_keys, n_keys, to + t.key_begin);
  }
}

// Softmax of masked scores [..., rows, keys]; `sink` [..., rows] takes its share, undefined = none.
NormalizedScores with_own_sink(const at::Tensor& scores, const at::Tensor& sink) {
  const at::Tensor p = scores.softmax(-1);
  if (!sink.defined()) return {p, at::zeros_like(scores.select(-1, 0))};
  const at::Tensor lse = scores.logsumexp(-1);
  return {p * (lse - sink).sigmoid().unsqueeze(-1), (sink - lse).sigmoid()};
}

// The heads and keys of a tile's edit, applied to masked scores [heads, rows, keys]; `sink`
// [heads, rows] or undefined.
NormalizedScores edited_rows(const at::Tensor& scores, const Tile& t, const AttentionEdit& edit,
                             const at::Tensor& sink) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto options = at::TensorOptions().dtype(at::kLong).device(scores.device());
  const at::Tensor own = at::arange(t.row, t.row + t.n_rows, options)
                             .unsqueeze(1)
                             .eq(at::arange(t.key_begin, t.key_end, options).unsqueeze(0));
  const std::int64_t n_entries = scores.size(-1) - own.size(-1);  // which no edit takes away
  at::Tensor p = at::empty_like(scores), null = at::empty_like(scores.select(-1, 0));
  NormalizedScores own_rows;  // of heads as they are: all at once, to the bit as without an edit
  for (int h = 0; h < t.n_heads; ++h) {
    const int head = t.head + h;
    const at::Tensor scores_of_head = scores[h];
    at::Tensor row = scores_of_head;
    at::Tensor lost;
    if (edit.lost.defined()) {
      // A query at a lost position keeps its own key.
      lost = edit.lost[head]
                 .narrow(0, t.key_begin, t.key_end - t.key_begin)
                 .unsqueeze(0)
                 .logical_and(own.logical_not());
      lost = at::constant_pad_nd(lost, {0, n_entries}, 0);
      if (edit.renormalize[head].item<bool>()) row = row.masked_fill(lost, -inf);
    }
    const auto& normalizer = edit.normalizers[static_cast<std::size_t>(head)];
    const bool is_as_it_is = !normalizer && row.is_same(scores_of_head);
    if (is_as_it_is && !own_rows.p.defined()) own_rows = with_own_sink(scores, sink);
    NormalizedScores made = normalizer ? normalize(*normalizer, row)
                            : is_as_it_is
                                ? NormalizedScores{own_rows.p[h], own_rows.null_mass[h]}
                                : with_own_sink(row, sink.defined() ? sink[h] : at::Tensor());
    if (lost.defined()) {
      made.null_mass = made.null_mass + made.p.masked_fill(lost.logical_not(), 0).sum(-1);
      made.p = made.p.masked_fill(lost, 0);
    }
    p[h].copy_(made.p);
    null[h].copy_(made.null_mass);
  }
  return {p, null};
}

// [rows, entries] true where the query sees the entry.
at::Tensor visible_entries(const CompressedKeys& entries, const Tile& t) {
  const auto options = at::TensorOptions().dtype(at::kLong).device(entries.k.device());
  const std::int64_t n = entries.k.size(0);
  const at::Tensor n_seen =
      at::arange(t.row + 1, t.row + t.n_rows + 1, options).floor_divide(entries.span);
  const at::Tensor seen = at::arange(n, options).unsqueeze(0).lt(n_seen.unsqueeze(1));
  if (!entries.chosen.defined()) return seen;
  const at::Tensor chosen = at::zeros({t.n_rows, n + 1}, seen.options())
                                .scatter_(1, entries.chosen.narrow(0, t.row, t.n_rows), true);
  return seen.logical_and(chosen.narrow(1, 0, n));
}

}  // namespace

at::Tensor attend_reference(const AttentionCall& call, const TileGeometry& tile,
                            AttentionStats& stats, MapSink* maps, const std::stop_token& stop) {
  const int T = stats.seq_len, H = stats.n_heads, G = stats.n_kv_heads, repeat = H / G;
  count_visible(call, stats);
  // [H, T, d]; each kv head serves `repeat` neighboring query heads: 0,0,1,1, not 0,1,0,1.
  const at::Tensor q = call.q.transpose(0, 1).to(at::kFloat);
  const at::Tensor k = call.k.transpose(0, 1).to(at::kFloat).repeat_interleave(repeat, 0);
  at::Tensor v = call.v.transpose(0, 1).to(at::kFloat).repeat_interleave(repeat, 0);
  if (call.edit != nullptr && call.edit->value_scale.defined())
    v = v * call.edit->value_scale.unsqueeze(-1);
  const at::Tensor norms = v.norm(2, -1);  // [H, T]
  const at::Tensor host_norms = norms.to(at::kCPU).contiguous();
  group_value_norms(
      {host_norms.const_data_ptr<float>(), host_norms.const_data_ptr<float>() + H * T}, stats);
  const CompressedKeys& entries = call.entries;
  const bool has_entries = entries.k.defined();
  const auto entry_heads = [&](const at::Tensor& x) {  // [W, G, d] -> [H, W, d]
    return has_entries ? x.transpose(0, 1).to(at::kFloat).repeat_interleave(repeat, 0)
                       : at::Tensor();
  };
  const at::Tensor entry_k = entry_heads(entries.k), entry_v = entry_heads(entries.v);
  if (has_entries) stats.compressed_mass.resize(static_cast<std::size_t>(H) * T);
  at::Tensor z = at::empty({H, T, v.size(2)}, q.options());
  for (int row = 0; row < T; row += tile.rows) {
    const int n_rows = std::min(tile.rows, T - row);
    for (int head = 0; head < H; head += tile.heads) {
      if (stop.stop_requested()) return {};
      const int n_heads = std::min(tile.heads, H - head);
      const Tile t{head,
                   n_heads,
                   row,
                   n_rows,
                   call.window > 0 ? std::max(0, row - call.window + 1) : 0,
                   call.window == kAllKeys ? T : row + n_rows};
      const auto heads = [&](const at::Tensor& x) { return x.narrow(0, head, n_heads); };
      const auto keys = [&](const at::Tensor& x) {
        return heads(x).narrow(1, t.key_begin, t.key_end - t.key_begin);
      };
      const auto with_entries = [&](const at::Tensor& of_keys, const at::Tensor& of_entries) {
        return has_entries ? at::cat({keys(of_keys), heads(of_entries)}, 1) : keys(of_keys);
      };
      at::Tensor scores = heads(q)
                              .narrow(1, row, n_rows)
                              .matmul(with_entries(k, entry_k).transpose(1, 2))
                              .mul(call.scale);
      if (call.r.defined())
        scores = scores + relative_logits(call.r.narrow(0, row, n_rows).narrow(1, head, n_heads),
                                          call.profiles, row, t.key_begin, t.key_end);
      if (call.cap > 0) scores = scores.div(call.cap).tanh_().mul_(call.cap);
      const at::Tensor sink =
          call.sink.defined() ? heads(call.sink).narrow(1, row, n_rows) : at::Tensor();
      at::Tensor seen = visible_mask(t, call.window, scores.device());
      if (call.selected.defined()) {
        const at::Tensor chosen = at::zeros({n_rows, T + 1}, seen.options())
                                      .scatter_(1, call.selected.narrow(0, row, n_rows), true);
        seen = seen.logical_and(chosen.narrow(1, t.key_begin, t.key_end - t.key_begin));
      }
      if (has_entries) seen = at::cat({seen, visible_entries(entries, t)}, 1);
      const double inf = std::numeric_limits<double>::infinity();
      const at::Tensor masked = scores.masked_fill(seen.logical_not(), -inf);
      const NormalizedScores made = call.edit != nullptr ? edited_rows(masked, t, *call.edit, sink)
                                                         : with_own_sink(masked, sink);
      const at::Tensor& p = made.p;
      copy_rows(made.null_mass, t, T, stats.null_mass);
      const bool is_softmax = call.edit == nullptr && !call.sink.defined();
      const at::Tensor values = with_entries(v, entry_v);
      row_statistics(scores, p, seen, t, has_entries ? values.norm(2, -1) : keys(norms),
                     !is_softmax, stats);
      const at::Tensor out = p.matmul(values);
      copy_rows(out.norm(2, -1), t, T, stats.out_norm);
      z.narrow(0, head, n_heads).narrow(1, row, n_rows).copy_(out);
      const int n_keys = t.key_end - t.key_begin;
      if (has_entries) {
        const at::Tensor share = p.narrow(-1, n_keys, entry_k.size(1));
        copy_rows(share.sum(-1), t, T, stats.compressed_mass);
        if (entries.weights.defined())
          entries.weights.narrow(0, head, n_heads).narrow(1, row, n_rows).copy_(share);
      }
      const at::Tensor host = p.narrow(-1, 0, n_keys).to(at::kCPU).contiguous();
      pictures(host, t, stats);
      if (float* map = maps != nullptr ? maps->begin_tile(head, n_heads, row, n_rows) : nullptr) {
        store_map(host, t, T, map);
        maps->end_tile(t.key_end, call.window);
      }
    }
  }
  return z.transpose(0, 1).to(call.q.scalar_type());
}

}  // namespace sinkscope
