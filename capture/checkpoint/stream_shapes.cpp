// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/stream_shapes.h"

#include <fmt/format.h>

#include <algorithm>

namespace sinkscope {
namespace {

bool is_between(Role role, Role first, Role last) { return role >= first && role <= last; }

ExpectedShape stream_shape(Role role, const ArchSpec& spec) {
  const StreamSpec& streams = spec.streams;
  const std::int64_t N = streams.n, all = spec.state_width(), r = streams.rank;
  const std::string because =
      fmt::format("{} streams of hidden_size {}, rank {}", N, spec.d_model, streams.rank);
  switch (role) {
    case Role::mix1_down:
    case Role::mix2_down:
    case Role::mix_final_down:
      return {{r, all}, because};
    case Role::mix1_up:
    case Role::mix2_up:
    case Role::mix_final_up:
      return {{all, r}, because};
    case Role::mix1_inject:
    case Role::mix2_inject:
    case Role::mix_final_factors:
      return {{N, all}, because};
    case Role::mix1_factors:
    case Role::mix2_factors:
      return {{(2 + N) * N, all}, because};
    case Role::mix1_base:
    case Role::mix2_base:
      return {{(2 + N) * N}, because};
    case Role::mix1_scale:
    case Role::mix2_scale:
      return {{3}, because};
    case Role::mix_final_base:
      return {{N}, because};
    case Role::mix_final_scale:
      return {{1}, because};
    default:  // norms
      return {{all}, because};
  }
}

ExpectedShape ngram_shape(Role role, const ArchSpec& spec) {
  const NgramSpec& ngram = spec.ngram;
  const std::int64_t all = spec.state_width(), P = ngram.width;
  const std::string because = fmt::format(
      "{} streams of hidden_size {}, ple_embed_dim {}, n-grams of up to {} with {} heads",
      spec.streams.n, spec.d_model, P, ngram.longest, ngram.n_heads);
  switch (role) {
    case Role::ngram_multipliers:
      return {{ngram.longest}, because};
    case Role::ngram_sizes:
    case Role::ngram_offsets:
      return {{ngram.n_hashes()}, because};
    case Role::ngram_table:  // as many rows as there are
      return {{1, P / std::max(ngram.n_hashes(), 1)}, because};
    case Role::ngram_key:
      return {{all, P}, because};
    case Role::ngram_value:
      return {{spec.d_model, P}, because};
    case Role::ngram_conv:
      return {{all, ngram.n_taps}, because};
    default:  // norms
      return {{all}, because};
  }
}

// Compressed keys, and those of the index.
ExpectedShape compress_shape(Role role, const ArchSpec& spec, int layer) {
  const std::int64_t D = spec.d_model, d = spec.head_dim, dI = spec.index.head_dim,
                     m = spec.compress_of(layer), windows = spec.compresses_pairs(layer) ? 2 : 1;
  const std::string because =
      fmt::format("windows of {} tokens, {} seen by an entry, head_dim {}, index_head_dim {}", m,
                  windows, d, dI);
  switch (role) {
    case Role::compress_kv:
    case Role::compress_gate:
      return {{windows * d, D}, because};
    case Role::compress_place:
      return {{m, windows * d}, because};
    case Role::compress_norm:
      return {{d}, because};
    case Role::index_kv:
    case Role::index_gate:
      return {{2 * dI, D}, because};
    case Role::index_place:
      return {{m, 2 * dI}, because};
    default:  // index_kv_norm
      return {{dI}, because};
  }
}

}  // namespace

std::optional<ExpectedShape> stream_role_shape(Role role, const ArchSpec& spec, int layer) {
  if (is_between(role, Role::mix_final_norm, Role::mix_final_scale) ||
      is_between(role, Role::mix1_norm, Role::mix2_scale))
    return stream_shape(role, spec);
  if (is_between(role, Role::ngram_multipliers, Role::ngram_conv)) return ngram_shape(role, spec);
  if (is_between(role, Role::compress_kv, Role::index_kv_norm))
    return compress_shape(role, spec, layer);
  return std::nullopt;
}

}  // namespace sinkscope
