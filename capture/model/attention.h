// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <stop_token>
#include <vector>

#include "capture/model/interventions.h"
#include "capture/record/tile_geometry.h"

namespace sinkscope {

// Everything that attention statistics hold for one layer and run; see core/FORMAT.md for formulas.
// Per-row arrays [H, T]; key_mass [H, T] in double until written.
struct AttentionStats {
  int n_heads = 0, n_kv_heads = 0, seq_len = 0, window_side = 0, bins = 0;
  std::vector<float> lse, null_mass, entropy, max_prob, logit_max, logit_gap, distance, first4,
      last8, out_norm, out_norm_sum;
  std::vector<double> key_mass;
  std::vector<std::int32_t> visible;   // [T] queries that see the key
  std::vector<float> value_norm;       // [G, T]
  std::vector<float> compressed_mass;  // [H, T] share of the compressed entries; empty = none
  std::vector<float> window;           // [H, W, W], W = min(T, 64)
  std::vector<float> thumbnail;        // [H, B, B], B = min(T, 64)
  AttentionStats(int heads, int kv_heads, int tokens);
};

// Takes the probabilities of a tile where maps are recorded.
class MapSink {
 public:
  virtual ~MapSink() = default;
  // A buffer [n_heads, n_rows, T] for the tile that starts at (head, row), contents undefined; null
  // when this tile is not wanted.
  virtual float* begin_tile(int head, int n_heads, int row, int n_rows) = 0;
  // The tile is complete: columns [0, key_end) of every row are written, unseen keys as zeros;
  // columns from key_end on are still undefined. `window` as in AttentionCall.
  virtual void end_tile(int key_end, int window) = 0;
};

// AttentionCall::window of an encoder: a query sees every key, later ones too.
inline constexpr int kAllKeys = -1;

// One attention, causal but for kAllKeys: q [T, H, d], k [T, G, d] and v [T, G, d_v], float32 on
// the CPU or any type on a device, last dimension contiguous. scores = q·k·scale, capped:
// c·tanh(s/c); key j visible to i iff i − window < j ≤ i (window 0: all j ≤ i; kAllKeys: all);
// query head h uses kv head h / (H/G). With a sink logit b,
// p_ij = e^s_ij / (e^b + Σ_k e^s_ik), and the null route takes e^b / (…).
// Keys that stand for a window of tokens each, beside the tokens' own: entry w covers `span` tokens
// from w·span on and is seen by queries from its last token on.
struct CompressedKeys {
  at::Tensor k, v;    // [W, G, d], [W, G, d_v]; undefined = none
  at::Tensor chosen;  // [T, n] entries that each query sees of those, W = none; undefined = all
  int span = 0;
  at::Tensor weights = {};  // [H, T, W] float32 on the CPU, to be filled in; undefined = not wanted
};

struct AttentionCall {
  at::Tensor q, k, v;
  double scale = 1;
  int window = 0;
  const AttentionEdit* edit = nullptr;  // null: attention as the model has it
  double cap = 0;                       // 0 = none
  at::Tensor sink = {};                 // [H, T] float32 logits of the null route; undefined = none
  // [T, k] keys that each query sees of those that it could see, each once, in any order; later
  // ones and T count for nothing. int64; undefined = all.
  at::Tensor selected = {};
  // r [T, H, d_r] and profiles [d_r, E], float32: r_i · profiles[:, i − j] joins the score of a key
  // less than E behind, before the cap; undefined = none. For causal attention.
  at::Tensor r = {}, profiles = {};
  CompressedKeys entries = {};  // only the reference body knows them
};

// Whether attend_fused can compute this call, on the CPU.
inline bool fused_knows(const AttentionCall& call) { return !call.entries.k.defined(); }

// stats.value_norm [G, T] from norms [H, T] of values that an edit scaled by query head; NaN where
// the heads of a group differ.
void group_value_norms(const std::vector<float>& head_norms, AttentionStats& stats);

// visible [T] of a call, whatever body computes it.
void count_visible(const AttentionCall& call, AttentionStats& stats);

// Two bodies, tested equal. Both fill `stats`, feed `maps` (may be null), and return z [T, H, d_v];
// an undefined tensor means canceled (`stop` is looked at once a tile).
//  fused: CPU, row blocks of one head per core, scores never leave the cache when maps are not
//         recorded. reference: plain tensor operations on any device.
at::Tensor attend_fused(const AttentionCall& call, const TileGeometry& tile, AttentionStats& stats,
                        MapSink* maps, const std::stop_token& stop);
at::Tensor attend_reference(const AttentionCall& call, const TileGeometry& tile,
                            AttentionStats& stats, MapSink* maps, const std::stop_token& stop);

}  // namespace sinkscope
