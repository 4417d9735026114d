// SPDX-License-Identifier: GPL-3.0-or-later
// Sparse selection among several residual streams (Qwen4-Exp, DeepSeek-V4), against plain loops in
// double.
#include <gmock/gmock.h>

#include <cmath>

#include "capture/model/rope.h"
#include "tests/engine/captured.h"
#include "tests/engine/plain_loops.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace {

using Json = nlohmann::json;

// formats_2026.md section 5: blocks of keys by their mean, normed, at their first position.
std::set<int> blocks_seen(const ModelFiles& model, int layer, const Rows& n1, int t, int n_best) {
  const ArchSpec& spec = model.spec();
  const auto heads = at(spec.index.n_heads), width = at(spec.index.head_dim),
             turned = at(spec.rope.rotary_dim);
  const int block = spec.index.block, complete = (t + 1) / block;
  const std::vector<float> q_gain = model.norm_gain(Role::index_q_norm, layer).effective,
                           k_gain = model.norm_gain(Role::index_k_norm, layer).effective;
  const Row q = times({n1[at(t)]}, matrix(model, Role::index_q, layer))[0];
  const Rows k = times(n1, matrix(model, Role::index_k, layer));
  Row scores(at(complete), 0.0);
  for (int b = 0; b < complete; ++b) {
    Row mean(width, 0.0);
    for (int j = 0; j < block; ++j)
      for (std::size_t c = 0; c < width; ++c) mean[c] += k[at(b * block + j)][c] / block;
    Row key = normed(mean, k_gain, spec.norm_eps);
    rotate_half(key, 0, turned, b * block, spec.rope.theta);
    for (std::size_t h = 0; h < heads; ++h) {
      Row query(q.begin() + static_cast<std::ptrdiff_t>(h * width),
                q.begin() + static_cast<std::ptrdiff_t>((h + 1) * width));
      query = normed(query, q_gain, spec.norm_eps);
      rotate_half(query, 0, turned, t, spec.rope.theta);
      scores[at(b)] += std::max(0.0, dot(query, key)) / std::sqrt(static_cast<double>(width));
    }
  }
  return best_of(scores, complete, n_best);
}

// A budget of two blocks of four keys for 23 tokens: the map is the full one on the chosen keys.
TEST(SparseStreams, Qwen4ExpSeesOnlyTheChosenBlocks) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/qwen4_exp");
  const int n_best = 2, layer = 1;
  const auto model = with_config(folder, [](Json& config) { config["indexer_budget"] = 8; });
  const CaptureRequest request = everything_of(folder);
  const H5Reference sparse(capture(*model, request)), full(capture(*open_model(folder), request));
  const int T = request.runs[0].seq_len(), H = model->spec().n_heads,
            block = model->spec().index.block;
  const Rows n1 = tap_rows(sparse, "hyper_attn.hook_mixed", layer, at(model->spec().d_model));
  const std::vector<float> got = sparse.floats("/run0/attention/pattern"),
                           all = full.floats("/run0/attention/pattern");
  int n_lost = 0;
  for (int t = 0; t < T; ++t) {
    const std::set<int> chosen = blocks_seen(*model, layer, n1, t, n_best);
    const auto is_seen = [&](int j) {
      return j <= t && (j / block >= (t + 1) / block || chosen.contains(j / block));
    };
    for (int h = 0; h < H; ++h) {
      const std::size_t row = at((h * T + t) * T);  // of the first attention layer
      double mass = 0;
      for (int j = 0; j < T; ++j) mass += is_seen(j) ? all[row + at(j)] : 0;
      for (int j = 0; j < T; ++j) {
        n_lost += j <= t && !is_seen(j) ? 1 : 0;
        ASSERT_NEAR(got[row + at(j)], is_seen(j) ? all[row + at(j)] / mass : 0, 1e-5)
            << "head " << h << ", query " << t << ", key " << j;
      }
    }
  }
  EXPECT_GT(n_lost, 100);
}

// The pairs of the last n dims, by yarn's frequencies as the engine has them (rope_test.cpp).
void rotate_last_pairs(Row& x, const std::vector<float>& inverse, double position) {
  const std::size_t first = x.size() - 2 * inverse.size();
  for (std::size_t i = 0; i < inverse.size(); ++i) {
    const double angle = position * inverse[i];
    const double a = x[first + 2 * i], b = x[first + 2 * i + 1];
    x[first + 2 * i] = a * std::cos(angle) - b * std::sin(angle);
    x[first + 2 * i + 1] = b * std::cos(angle) + a * std::sin(angle);
  }
}

// formats_2026.md section 9: entry w from window w and the one before it, for the index.
Row index_entry(const ModelFiles& model, int layer, const Rows& kv, const Rows& gate, int w) {
  const ArchSpec& spec = model.spec();
  const int m = spec.compress_of(layer), d = spec.index.head_dim;
  const Rows place = matrix(model, Role::index_place, layer);
  Row entry(at(d));
  for (int c = 0; c < d; ++c) {
    double sum = 0, norm = 0;
    for (int j = w == 0 ? m : 0; j < 2 * m; ++j) {  // m slots of the window before, then its own
      const int token = (w - 1) * m + j, channel = j < m ? c : d + c;
      const double weight = std::exp(gate[at(token)][at(channel)] + place[at(j % m)][at(channel)]);
      sum += weight * kv[at(token)][at(channel)];
      norm += weight;
    }
    entry[at(c)] = sum / norm;
  }
  return normed(entry, model.norm_gain(Role::index_kv_norm, layer).effective, spec.norm_eps);
}

std::vector<std::set<int>> entries_seen(const ModelFiles& model, int layer, const Rows& n1,
                                        const Rows& latent, int n_best) {
  const ArchSpec& spec = model.spec();
  const int m = spec.compress_of(layer), T = static_cast<int>(n1.size());
  const auto heads = at(spec.index.n_heads), width = at(spec.index.head_dim);
  const std::vector<float> inverse =
      rope_frequencies(spec.rope_of(layer), spec.n_ctx, T, {}).inverse;
  const Rows q = times(latent, matrix(model, Role::index_q, layer)),
             weights = times(n1, matrix(model, Role::index_weights, layer)),
             kv = times(n1, matrix(model, Role::index_kv, layer)),
             gate = times(n1, matrix(model, Role::index_gate, layer));
  Rows keys;
  for (int w = 0; w < T / m; ++w) {
    keys.push_back(index_entry(model, layer, kv, gate, w));
    rotate_last_pairs(keys.back(), inverse, w * m);
  }
  std::vector<std::set<int>> seen;
  for (int t = 0; t < T; ++t) {
    Row scores(keys.size(), 0.0);
    for (std::size_t h = 0; h < heads; ++h) {
      Row query(q[at(t)].begin() + static_cast<std::ptrdiff_t>(h * width),
                q[at(t)].begin() + static_cast<std::ptrdiff_t>((h + 1) * width));
      rotate_last_pairs(query, inverse, t);
      for (std::size_t w = 0; w < keys.size(); ++w)
        scores[w] += weights[at(t)][h] * std::max(0.0, dot(query, keys[w]));
    }
    seen.push_back(best_of(scores, (t + 1) / m, n_best));
  }
  return seen;
}

// Two entries of five: what the others had goes to the tokens, the chosen entries and the sink.
TEST(SparseStreams, DeepSeekV4SeesOnlyTheChosenEntries) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/deepseek_v4");
  const int n_best = 2, layer = 1;
  const auto model = with_config(folder, [](Json& config) { config["index_topk"] = 2; });
  const CaptureRequest request = everything_of(folder);
  const H5Reference sparse(capture(*model, request)), full(capture(*open_model(folder), request));
  const int T = request.runs[0].seq_len(), H = model->spec().n_heads;
  const auto W = at(T / model->spec().compress_of(layer));
  const std::vector<std::set<int>> seen = entries_seen(
      *model, layer, tap_rows(sparse, "ln1.hook_out", layer, at(model->spec().d_model)),
      tap_rows(sparse, "attn.hook_q_latent", layer, at(model->spec().latent.q_rank)), n_best);
  const Rows got = tap_rows(sparse, "attn.hook_pattern_compressed", layer, W),
             all = tap_rows(full, "attn.hook_pattern_compressed", layer, W);
  const std::vector<float> tokens = sparse.floats("/run0/attention/pattern"),
                           all_tokens = full.floats("/run0/attention/pattern");
  int n_lost = 0;
  for (int h = 0; h < H; ++h)
    for (int t = 0; t < T; ++t) {
      const Row& row = all[at(h * T + t)];
      double lost = 0;
      for (std::size_t w = 0; w < W; ++w)
        if (!seen[at(t)].contains(static_cast<int>(w))) lost += row[w];
      n_lost += lost > 0 ? 1 : 0;
      for (std::size_t w = 0; w < W; ++w) {
        const bool is_seen = seen[at(t)].contains(static_cast<int>(w));
        ASSERT_NEAR(got[at(h * T + t)][w], is_seen ? row[w] / (1 - lost) : 0, 1e-5)
            << "head " << h << ", query " << t << ", entry " << w;
      }
      const std::size_t first = at(((layer * H + h) * T + t) * T);
      for (int j = 0; j < T; ++j)
        ASSERT_NEAR(tokens[first + at(j)], all_tokens[first + at(j)] / (1 - lost), 1e-5);
    }
  EXPECT_GT(n_lost, 20);
}

// --heads and --rows choose of the compressed keys' maps what they choose of the tokens'.
TEST(SparseStreams, CompressedMapsHaveTheChosenHeadsAndRows) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/deepseek_v4");
  const auto model = open_model(folder);
  CaptureRequest request = everything_of(folder);
  const H5Reference all(capture(*model, request));
  request.record.heads = {3, 1};
  request.record.rows = {22, 0, 9};
  const H5Reference some(capture(*model, request));
  const std::string name = "/run0/taps/attn.hook_pattern_compressed/values";
  const std::vector<std::int64_t> dims = all.dims(name);  // [N, H, T, E]
  ASSERT_EQ(some.dims(name), (std::vector<std::int64_t>{dims[0], 2, 3, dims[3]}));
  const std::vector<float> got = some.floats(name), want = all.floats(name);
  std::size_t next = 0;
  for (std::int64_t n = 0; n < dims[0]; ++n)
    for (const int head : {1, 3})
      for (const int row : {0, 9, 22})
        for (std::int64_t e = 0; e < dims[3]; ++e, ++next) {
          const auto i =
              static_cast<std::size_t>(((n * dims[1] + head) * dims[2] + row) * dims[3] + e);
          if (std::isnan(want[i]))
            ASSERT_TRUE(std::isnan(got[next])) << next;
          else
            ASSERT_EQ(got[next], want[i]) << next;
        }
}

}  // namespace
}  // namespace sinkscope::test
