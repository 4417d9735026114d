// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "capture/model/blocks.h"
#include "capture/model/linear.h"

namespace sinkscope {

at::Tensor best_keys(const at::Tensor& q, const at::Tensor& k, const at::Tensor& weights,
                     std::int64_t n_best, std::int64_t span) {
  constexpr std::int64_t kMaxRows = 256, kProducts = (std::int64_t{32} << 20) / 4;
  const std::int64_t T = q.size(0), width = q.size(2);
  const std::int64_t n_rows = std::clamp<std::int64_t>(kProducts / (q.size(1) * T), 1, kMaxRows);
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  const auto positions = at::TensorOptions().dtype(at::kLong).device(q.device());
  std::vector<at::Tensor> best;
  for (std::int64_t row = 0; row < T; row += n_rows) {
    const std::int64_t n = std::min(n_rows, T - row);
    // [heads, rows, keys] -> Σ_h w relu(q·k) [rows, keys]
    const at::Tensor products =
        q.narrow(0, row, n).transpose(0, 1).matmul(k.t()).mul_(scale).relu_();
    at::Tensor scores = weights.defined()
                            ? products.mul_(weights.narrow(0, row, n).t().unsqueeze(-1)).sum(0)
                            : products.sum(0);
    const at::Tensor n_seen = at::arange(row + 1, row + n + 1, positions).floor_divide(span);
    const at::Tensor later = at::arange(k.size(0), positions).unsqueeze(0).ge(n_seen.unsqueeze(1));
    scores.masked_fill_(later, -std::numeric_limits<double>::infinity());
    best.push_back(std::get<1>(scores.topk(n_best, -1)));
  }
  return at::cat(best);
}

at::Tensor indexed_keys(const BlockPass& pass, const at::Tensor& n1, const at::Tensor& latent) {
  const auto& [spec, w, layer, rotary, listener, edits, state] = pass;
  const IndexSpec& index = spec.index;
  if (index.top_k == 0 || n1.size(1) <= index.top_k) return {};
  const at::Tensor q = rotate(
      heads_of(linear_layer(latent, w.index_q, {}), 0, index.n_heads, index.head_dim), rotary);
  const at::Tensor key = apply_norm(w.index_k_norm, linear_layer(n1, w.index_k, {})).y;
  const at::Tensor k = rotate(key.unsqueeze(2), rotary);
  const at::Tensor weights = linear_layer(n1, w.index_weights, {}).to(at::kFloat) /
                             std::sqrt(static_cast<double>(index.n_heads));
  return best_keys(q[0].to(at::kFloat), k[0].select(1, 0).to(at::kFloat), weights[0], index.top_k);
}

at::Tensor indexed_blocks(const BlockPass& pass, const at::Tensor& n1) {
  const auto& [spec, w, layer, rotary, listener, edits, state] = pass;
  const IndexSpec& index = spec.index;
  const std::int64_t T = n1.size(1), block = index.block, n_blocks = T / block;
  if (index.top_k == 0 || n_blocks <= index.top_k) return {};
  const at::Tensor both = linear_layer(n1, w.index_q, {});  // queries, then the key
  const at::Tensor own = heads_of(both, 0, index.n_heads, index.head_dim);
  const at::Tensor q = rotate(apply_norm(w.index_q_norm, own).y, rotary);
  const at::Tensor each =
      both.narrow(-1, std::int64_t{index.n_heads} * index.head_dim, index.head_dim);
  const at::Tensor mean = each.narrow(1, 0, n_blocks * block)
                              .unflatten(1, {n_blocks, block})
                              .to(at::kFloat)
                              .mean(2)
                              .to(n1.scalar_type());
  const auto first = [&](const at::Tensor& table) {  // of each block
    return table.narrow(0, 0, n_blocks * block)
        .unflatten(0, {n_blocks, block})
        .select(1, 0)
        .contiguous();
  };
  const at::Tensor k = rotate(apply_norm(w.index_k_norm, mean).y.unsqueeze(2),
                              {first(rotary.cos), first(rotary.sin)});
  const at::Tensor best = best_keys(q[0].to(at::kFloat), k[0].select(1, 0).to(at::kFloat), {},
                                    index.top_k, block);  // [T, top_k]
  const auto positions = best.options();
  const at::Tensor t = at::arange(T, positions).unsqueeze(-1), n_seen = (t + 1).floor_divide(block);
  const at::Tensor inside = at::arange(block, positions);
  const at::Tensor chosen = best.masked_fill(best.ge(n_seen), T).unsqueeze(-1) * block + inside;
  const at::Tensor tail = n_seen * block + inside;
  return at::cat({chosen.flatten(1), tail.masked_fill(tail.gt(t), T)}, -1).clamp_max(T);
}

}  // namespace sinkscope
