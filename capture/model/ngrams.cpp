// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/ngrams.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "capture/model/blocks.h"
#include "capture/model/linear.h"
#include "capture/model/read_weights.h"
#include "capture/model/short_convolution.h"
#include "capture/model/streams.h"
#include "core/error.h"

namespace sinkscope {

std::vector<std::int64_t> ngram_rows(const NgramSpec& ngram, const std::vector<int>& ids, int eos,
                                     const std::vector<std::int64_t>& multipliers,
                                     const std::vector<std::int64_t>& sizes,
                                     const std::vector<std::int64_t>& offsets) {
  std::vector<std::int64_t> rows;
  int last_end = -1;  // the last eos strictly before t
  for (int t = 0; t < static_cast<int>(ids.size()); ++t) {
    std::uint64_t hash = 0;
    std::size_t head = 0;
    for (int s = 0; s < ngram.longest; ++s) {
      const bool is_inside = s == 0 || t - s > last_end;
      const int token = is_inside ? ids[static_cast<std::size_t>(t - s)] : eos;
      hash ^= static_cast<std::uint64_t>(token) *
              static_cast<std::uint64_t>(multipliers[static_cast<std::size_t>(s)]);
      for (int a = 0; s > 0 && a < ngram.n_heads; ++a, ++head) {
        const std::int64_t rest = static_cast<std::int64_t>(hash) % sizes[head];
        rows.push_back((rest < 0 ? rest + sizes[head] : rest) + offsets[head]);
      }
    }
    if (ids[static_cast<std::size_t>(t)] == eos) last_end = t;
  }
  return rows;
}

Ngrams::Ngrams(const ModelFiles& model, int layer, at::Device device, at::ScalarType dtype)
    : model_(model),
      layer_(layer),
      device_(device),
      dtype_(dtype),
      multipliers_(model.read_integers(Role::ngram_multipliers, layer)),
      sizes_(model.read_integers(Role::ngram_sizes, layer)),
      offsets_(model.read_integers(Role::ngram_offsets, layer)) {
  const std::int64_t N = model.spec().streams.n, n_rows = model.rows(Role::ngram_table, layer);
  for (std::size_t h = 0; h < sizes_.size(); ++h)
    if (sizes_[h] < 1 || offsets_[h] < 0 || offsets_[h] > n_rows - sizes_[h])
      throw Error(
          ErrorKind::corrupt,
          fmt::format("{}: hash {} of block {} has rows {} to {} of a table of {}", model.path(), h,
                      layer, offsets_[h], offsets_[h] + sizes_[h], n_rows));
  const auto matrix = [&](Role role) {
    return read_matrix(model, role, layer, 0, model.rows(role, layer), device, dtype);
  };
  const auto gain = [&](Role role) {
    return at::tensor(model.norm_gain(role, layer).effective, at::kFloat).view({N, -1}).to(device);
  };
  key = matrix(Role::ngram_key);
  value = matrix(Role::ngram_value);
  key_gain = gain(Role::ngram_key_norm);
  query_gain = gain(Role::ngram_query_norm);
  conv_gain = gain(Role::ngram_conv_norm);
  conv = read_matrix(model, Role::ngram_conv, layer, 0, model.rows(Role::ngram_conv, layer), device,
                     at::kFloat);
}

std::int64_t Ngrams::n_bytes() const {
  std::int64_t n = 0;
  for (const at::Tensor* part : {&key, &value, &key_gain, &query_gain, &conv_gain, &conv})
    n += static_cast<std::int64_t>(part->nbytes());
  return n;
}

at::Tensor Ngrams::embedding(const std::vector<int>& ids) const {
  const ArchSpec& spec = model_.spec();
  const std::vector<std::int64_t> rows =
      ngram_rows(spec.ngram, ids, spec.eos_id, multipliers_, sizes_, offsets_);
  const std::int64_t width = model_.cols(Role::ngram_table, layer_);
  at::Tensor host = at::empty({static_cast<std::int64_t>(rows.size()), width}, at::kFloat);
  float* into = host.data_ptr<float>();
  std::map<std::int64_t, const float*> known;  // n-grams repeat: each row is read once
  for (const std::int64_t row : rows) {
    const auto [seen, is_new] = known.emplace(row, into);
    if (is_new)
      model_.read_rows(Role::ngram_table, layer_, row, row + 1, into);
    else
      std::copy_n(seen->second, width, into);
    into += width;
  }
  return host.view({1, static_cast<std::int64_t>(ids.size()), -1}).to(device_, dtype_);
}

at::Tensor with_ngrams(const BlockPass& pass, const at::Tensor& x) {
  const auto& [spec, w, layer, rotary, listener, edits, state] = pass;
  const Ngrams& own = *w.ngrams;
  const std::int64_t N = spec.streams.n;
  const at::Tensor e = own.embedding(*state.token_ids);
  const at::Tensor keys =
      group_norm(linear_layer(e, own.key, {}).unflatten(-1, {N, -1}), own.key_gain, spec.norm_eps);
  const at::Tensor queries = group_norm(x.unflatten(-1, {N, -1}), own.query_gain, spec.norm_eps);
  const auto tap = [&](Site site, const at::Tensor& streams) {
    pass.listener.on_tap(site, pass.layer, streams);
  };
  tap(Site::ngram_key_norm, keys);
  tap(Site::ngram_query_norm, queries);
  const at::Tensor c =
      (keys * queries).sum(-1, /*keepdim=*/true) / std::sqrt(static_cast<double>(spec.d_model));
  const at::Tensor share = (c.sign() * c.abs().clamp_min(1e-6).sqrt()).sigmoid();
  const at::Tensor v = share * linear_layer(e, own.value, {}).to(at::kFloat).unsqueeze(-2);
  const at::Tensor normed = group_norm(v, own.conv_gain, spec.norm_eps);
  tap(Site::ngram_conv_norm, normed);
  const at::Tensor near =
      at::silu(short_convolution(normed.flatten(-2), own.conv, spec.ngram.longest));
  const at::Tensor add = (v + near.unflatten(-1, {N, -1})).to(x.scalar_type());
  listener.on_tap(Site::ngram_add, layer, add);
  return x + add.flatten(-2);
}

}  // namespace sinkscope
