// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "capture/model/attention.h"
#include "capture/model/attention_products.h"
#include "capture/model/attention_rows.h"
#include "capture/model/relative_logits.h"
#include "capture/model/spread.h"

namespace sinkscope {
namespace {

constexpr int kBlockRows = 64;

struct Shape {
  int T, H, G, d, d_value, repeat, window;
  double scale;
  // Where the keys end that a query before `row_end` sees.
  int key_end(int row_end) const { return window == kAllKeys ? T : row_end; }
};

const float* head_row(const at::Tensor& x, int head, int row) {
  return x.const_data_ptr<float>() + head * x.stride(1) + row * x.stride(0);
}

// The keys as score_rows() wants them, made once a layer: one run of panels a kv head.
struct Keys {
  std::vector<float> panels;
  std::int64_t head_floats;
};

Keys keys_of(const AttentionCall& call, const Shape& s) {
  Keys keys{{}, panel_floats(s.T, s.d)};
  keys.panels.resize(static_cast<std::size_t>(s.G * keys.head_floats));
  at::parallel_for(0, s.G, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto g = static_cast<int>(begin); g < end; ++g)
      pack_keys(head_row(call.k, g, 0), call.k.stride(0), s.T, s.d,
                keys.panels.data() + g * keys.head_floats);
  });
  return keys;
}

// What weights are multiplied with: heads [n, T, d], one after the other, `repeat` query heads to
// each, and ‖v‖ [n, T].
struct Values {
  at::Tensor heads;
  int repeat;
  std::vector<float> norms;
};

// One unit of work: rows [row, row + n_rows) of one head, up to the keys they see.
struct Unit {
  int head, row, n_rows, key_begin, n_keys;
};

std::vector<Unit> units_of_tile(const Shape& s, int head, int n_heads, int row, int n_rows) {
  std::vector<Unit> units;
  for (int h = head; h < head + n_heads; ++h) {
    for (int r = row; r < row + n_rows; r += kBlockRows) {
      const int rows = std::min(kBlockRows, row + n_rows - r);
      // Whole panels of keys; those that no row sees become zeros.
      const int first = s.window > 0 ? std::max(0, r - s.window + 1) : 0;
      const int key_begin = first / kPanelKeys * kPanelKeys;
      units.push_back({h, r, rows, key_begin, s.key_end(r + rows) - key_begin});
    }
  }
  return units;
}

float row_norm(const float* x, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  return static_cast<float>(std::sqrt(sum));
}

// What a unit adds to sums that several units share; merged in unit order afterwards.
struct UnitSums {
  std::vector<float> key_mass;   // [n_keys]
  std::vector<float> thumbnail;  // lines of the bins that the unit's rows fall into
  int first_bin = 0;
};

int bin_of(const AttentionStats& stats, int position) {
  return static_cast<int>(std::int64_t{position} * stats.bins / stats.seq_len);
}

void edit_block(const AttentionEdit& edit, const Shape& s, const Unit& u, AttentionBlock& block) {
  if (const auto& other = edit.normalizers[static_cast<std::size_t>(u.head)]) {
    block.normalizer = *other;
    block.sink = nullptr;
  }
  if (!edit.lost.defined()) return;
  block.lost = edit.lost.const_data_ptr<bool>() + std::int64_t{u.head} * s.T + u.key_begin;
  block.renormalize = edit.renormalize.const_data_ptr<bool>()[u.head];
}

// Leaves the unit's queries the keys that were selected for them: the scores of others become −∞.
// How many that are of those before the query goes to `n_hidden` [n_rows].
void hide_others(const at::Tensor& selected, const Shape& s, const Unit& u, float* scores,
                 std::int64_t stride, int* n_hidden) {
  thread_local std::vector<std::pair<int, float>> kept;
  const std::int64_t n_selected = selected.size(1);
  for (int r = 0; r < u.n_rows; ++r) {
    const int query = u.row + r;
    const std::int64_t* keys = selected.const_data_ptr<std::int64_t>() + query * n_selected;
    const int first = s.window > 0 ? std::max(0, query - s.window + 1) : 0,
              end = s.key_end(query + 1);
    float* line = scores + r * stride;
    kept.clear();
    for (std::int64_t i = 0; i < n_selected; ++i)
      if (keys[i] >= first && keys[i] < end) {
        const auto column = static_cast<int>(keys[i]) - u.key_begin;
        kept.emplace_back(column, line[column]);
      }
    std::fill(line + first - u.key_begin, line + end - u.key_begin,
              -std::numeric_limits<float>::infinity());
    for (const auto& [column, score] : kept) line[column] = score;
    n_hidden[r] = end - first - static_cast<int>(kept.size());
  }
}

// Scores, softmax with statistics, product with the values, for one unit. `scores` is where its
// first row's first key goes.
void run_unit(const AttentionCall& call, const Shape& s, const Keys& k, const Values& v,
              const Unit& u, float* scores, std::int64_t stride, AttentionStats& stats,
              at::Tensor& z, UnitSums& sums) {
  const float* panels = k.panels.data() + u.head / s.repeat * k.head_floats;
  score_rows(head_row(call.q, u.head, u.row), call.q.stride(0), u.n_rows, s.d,
             static_cast<float>(s.scale), panels + std::int64_t{u.key_begin} * s.d, u.n_keys,
             scores, stride);
  if (call.r.defined())
    add_relative_logits(
        {call.r.const_data_ptr<float>() + std::int64_t{u.row} * call.r.stride(0) +
             u.head * call.r.stride(1),
         call.r.stride(0), static_cast<int>(call.r.size(2)), call.profiles.const_data_ptr<float>(),
         static_cast<int>(call.profiles.size(1))},
        u.row, u.n_rows, u.key_begin, scores, stride);
  const int value_head = u.head / v.repeat;
  AttentionBlock block{
      scores,      stride,   u.row,    u.n_rows,
      u.key_begin, u.n_keys, s.window, &v.norms[std::int64_t{value_head} * s.T + u.key_begin]};
  block.all_keys = s.window == kAllKeys;
  const std::int64_t at = std::int64_t{u.head} * s.T + u.row;
  if (call.sink.defined()) block.sink = call.sink.const_data_ptr<float>() + at;
  if (call.edit != nullptr) edit_block(*call.edit, s, u, block);
  if (call.cap > 0) cap_scores(block, static_cast<float>(call.cap));
  int n_hidden[kBlockRows];
  if (call.selected.defined()) {
    hide_others(call.selected, s, u, scores, stride, n_hidden);
    block.n_hidden = n_hidden;
  }
  const AttentionRowStats rows{&stats.lse[at],       &stats.entropy[at],   &stats.max_prob[at],
                               &stats.logit_max[at], &stats.logit_gap[at], &stats.distance[at],
                               &stats.first4[at],    &stats.last8[at],     &stats.out_norm_sum[at],
                               &stats.null_mass[at]};
  sums.key_mass.assign(static_cast<std::size_t>(u.n_keys), 0.0f);
  attention_rows(block, rows, sums.key_mass.data());
  sums.first_bin = bin_of(stats, u.row);
  const int lines = bin_of(stats, u.row + u.n_rows - 1) - sums.first_bin + 1;
  sums.thumbnail.assign(static_cast<std::size_t>(lines * stats.bins), 0.0f);
  pool_thumbnail(block, s.T, stats.bins, sums.first_bin, sums.thumbnail.data());

  const int W = stats.window_side;
  for (int r = u.row; r < std::min(W, u.row + u.n_rows); ++r) {
    float* to = &stats.window[(std::int64_t{u.head} * W + r) * W];
    for (int j = u.key_begin; j < std::min(W, u.key_begin + u.n_keys); ++j)
      to[j] = scores[(r - u.row) * stride + j - u.key_begin];
  }
  float* out = z.data_ptr<float>() + (std::int64_t{u.row} * s.H + u.head) * s.d_value;
  const std::int64_t out_stride = std::int64_t{s.H} * s.d_value;
  const float* values =
      v.heads.const_data_ptr<float>() + (std::int64_t{value_head} * s.T + u.key_begin) * s.d_value;
  mix_values(scores, stride, u.n_rows, u.n_keys, values, s.d_value, s.d_value, out, out_stride);
  for (int r = 0; r < u.n_rows; ++r)
    stats.out_norm[at + r] = row_norm(out + r * out_stride, s.d_value);
}

void merge_sums(const Unit& u, const UnitSums& sums, AttentionStats& stats) {
  double* mass = &stats.key_mass[std::int64_t{u.head} * stats.seq_len + u.key_begin];
  for (int j = 0; j < u.n_keys; ++j) mass[j] += sums.key_mass[static_cast<std::size_t>(j)];
  float* line = &stats.thumbnail[(std::int64_t{u.head} * stats.bins + sums.first_bin) * stats.bins];
  for (std::size_t i = 0; i < sums.thumbnail.size(); ++i)
    line[i] = std::max(line[i], sums.thumbnail[i]);
}

// Where a unit's scores go inside a recorded tile [heads, rows, T]; clears what the unit leaves
// out of the tile's columns [0, tile_end).
float* place_in_map(float* map, const Unit& u, int head, int row, int n_rows, int tile_end,
                    std::int64_t T) {
  float* first = map + (std::int64_t{u.head - head} * n_rows + u.row - row) * T;
  for (int r = 0; r < u.n_rows; ++r) {
    float* line = first + r * T;
    std::fill(line, line + u.key_begin, 0.0f);
    std::fill(line + u.key_begin + u.n_keys, line + tile_end, 0.0f);
  }
  return first + u.key_begin;
}

Values values_of(const AttentionCall& call, const Shape& s, AttentionStats& stats) {
  const bool is_scaled = call.edit != nullptr && call.edit->value_scale.defined();
  Values v{call.v, s.repeat, {}};
  if (is_scaled) {
    v.heads = call.v.repeat_interleave(s.repeat, 1) * call.edit->value_scale.t().unsqueeze(-1);
    v.repeat = 1;
  }
  v.heads = v.heads.transpose(0, 1).contiguous();
  v.norms.resize(static_cast<std::size_t>(v.heads.size(0) * s.T));
  const float* row = v.heads.const_data_ptr<float>();
  for (float& norm : v.norms) {
    norm = row_norm(row, s.d_value);
    row += s.d_value;
  }
  if (is_scaled)
    group_value_norms(v.norms, stats);
  else
    stats.value_norm = v.norms;
  return v;
}

}  // namespace

at::Tensor attend_fused(const AttentionCall& given, const TileGeometry& tile, AttentionStats& stats,
                        MapSink* maps, const std::stop_token& stop) {
  // Probabilities are float32 whatever the run's type.
  AttentionCall call = given;
  for (at::Tensor* x : {&call.q, &call.k, &call.v}) *x = x->to(at::kFloat);
  for (at::Tensor* x : {&call.sink, &call.r, &call.selected})
    if (x->defined()) *x = x->contiguous();
  if (call.profiles.defined()) call.profiles = call.profiles.flip(1).contiguous();
  const Shape s{static_cast<int>(call.q.size(0)),
                static_cast<int>(call.q.size(1)),
                static_cast<int>(call.k.size(1)),
                static_cast<int>(call.q.size(2)),
                static_cast<int>(call.v.size(2)),
                static_cast<int>(call.q.size(1) / call.k.size(1)),
                call.window,
                call.scale};
  count_visible(call, stats);
  at::Tensor z = at::empty({s.T, s.H, s.d_value}, at::kFloat);
  const Keys k = keys_of(call, s);
  const Values v = values_of(call, s, stats);
  std::vector<UnitSums> sums;
  for (int row = 0; row < s.T; row += tile.rows) {
    const int n_rows = std::min(tile.rows, s.T - row);
    for (int head = 0; head < s.H; head += tile.heads) {
      if (stop.stop_requested()) return {};
      const int n_heads = std::min(tile.heads, s.H - head);
      float* map = maps != nullptr ? maps->begin_tile(head, n_heads, row, n_rows) : nullptr;
      const std::vector<Unit> units = units_of_tile(s, head, n_heads, row, n_rows);
      if (sums.size() < units.size()) sums.resize(units.size());
      spread(static_cast<std::int64_t>(units.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        thread_local std::vector<float> scratch;
        for (std::int64_t i = begin; i < end; ++i) {
          const Unit& u = units[static_cast<std::size_t>(i)];
          std::int64_t stride = s.T;
          float* scores = nullptr;
          if (map != nullptr) {
            scores = place_in_map(map, u, head, row, n_rows, s.key_end(row + n_rows), s.T);
          } else {
            stride = (u.n_keys + 15) / 16 * 16;
            scratch.resize(static_cast<std::size_t>(kBlockRows * stride));
            scores = scratch.data();
          }
          run_unit(call, s, k, v, u, scores, stride, stats, z, sums[static_cast<std::size_t>(i)]);
        }
      });
      for (std::size_t i = 0; i < units.size(); ++i) merge_sums(units[i], sums[i], stats);
      if (map != nullptr) maps->end_tile(s.key_end(row + n_rows), s.window);
    }
  }
  return z;
}

}  // namespace sinkscope
