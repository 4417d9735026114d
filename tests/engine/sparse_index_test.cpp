// SPDX-License-Identifier: GPL-3.0-or-later
// Sparse selection (A.X K2): which keys a query sees, against plain loops in double.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "capture/model/blocks.h"
#include "tests/engine/captured.h"
#include "tests/engine/plain_loops.h"
#include "tests/support/h5_reference.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace {

// The n best causal keys of each query; scores [query][key].
std::vector<std::set<int>> best_of(const Rows& scores, int n) {
  std::vector<std::set<int>> best;
  for (std::size_t i = 0; i < scores.size(); ++i)
    best.push_back(test::best_of(scores[i], static_cast<int>(i) + 1, n));
  return best;
}

TEST(SparseIndex, BestKeysEqualPlainLoops) {
  const int T = 40, heads = 3, width = 7, n = 6;
  auto generator = at::detail::createCPUGenerator(3);
  const auto normal = [&](std::vector<std::int64_t> shape) {
    return at::randn(shape, generator, at::kFloat);
  };
  const at::Tensor q = normal({T, heads, width}), k = normal({T, width}), w = normal({T, heads});
  const at::Tensor got = best_keys(q, k, w, n);
  Rows scores(T, Row(T, 0.0));
  for (int i = 0; i < T; ++i)
    for (int j = 0; j < T; ++j)
      for (int h = 0; h < heads; ++h) {
        double dot = 0;
        for (int c = 0; c < width; ++c) dot += q[i][h][c].item<double>() * k[j][c].item<double>();
        scores[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] +=
            w[i][h].item<double>() * std::max(0.0, dot / std::sqrt(7.0));
      }
  // Compared by their scores: relu makes equal ones, whose order means nothing.
  const auto sorted_scores = [&](int i, const std::set<int>& keys) {
    std::multiset<double> sorted;
    for (const int key : keys)
      sorted.insert(
          std::round(scores[static_cast<std::size_t>(i)][static_cast<std::size_t>(key)] * 1e4));
    return sorted;
  };
  const std::vector<std::set<int>> want = best_of(scores, n);
  for (int i = 0; i < T; ++i) {
    std::set<int> mine;
    for (int slot = 0; slot < n; ++slot)
      if (const int key = got[i][slot].item<int>(); key <= i) mine.insert(key);
    EXPECT_EQ(sorted_scores(i, mine), sorted_scores(i, want[static_cast<std::size_t>(i)])) << i;
  }
}

// formats_2026.md section 2: score_ij = Σ_h w_ih relu(qI_ih · kI_j · dI^-1/2).
Rows index_scores(const ModelFiles& model, const Rows& n1, const Rows& latent) {
  const ArchSpec& spec = model.spec();
  const auto heads = static_cast<std::size_t>(spec.index.n_heads),
             width = static_cast<std::size_t>(spec.index.head_dim),
             turned = static_cast<std::size_t>(spec.latent.rope_dim);
  Rows q = times(latent, matrix(model, Role::index_q, 0)),
       k = times(n1, matrix(model, Role::index_k, 0));
  const Rows w = times(n1, matrix(model, Role::index_weights, 0));
  const std::vector<float> gain = model.read_vector(Role::index_k_norm, 0),
                           bias = model.read_vector(Role::index_k_norm_bias, 0);
  for (std::size_t t = 0; t < k.size(); ++t) {
    double mean = 0, square = 0;
    for (const double x : k[t]) mean += x / static_cast<double>(width);
    for (const double x : k[t]) square += (x - mean) * (x - mean) / static_cast<double>(width);
    for (std::size_t c = 0; c < width; ++c)
      k[t][c] = (k[t][c] - mean) / std::sqrt(square + 1e-6) * gain[c] + bias[c];
    rotate_half(k[t], 0, turned, static_cast<double>(t), spec.rope.theta);
    for (std::size_t h = 0; h < heads; ++h)
      rotate_half(q[t], h * width, turned, static_cast<double>(t), spec.rope.theta);
  }
  Rows scores(q.size(), Row(q.size(), 0.0));
  for (std::size_t i = 0; i < q.size(); ++i)
    for (std::size_t j = 0; j < q.size(); ++j)
      for (std::size_t h = 0; h < heads; ++h) {
        double dot = 0;
        for (std::size_t c = 0; c < width; ++c) dot += q[i][h * width + c] * k[j][c];
        scores[i][j] += w[i][h] / std::sqrt(static_cast<double>(heads)) *
                        std::max(0.0, dot / std::sqrt(static_cast<double>(width)));
      }
  return scores;
}

// A.X K2 with fewer keys than tokens: the first block's map is the full one on the selected keys.
TEST(SparseIndex, AttentionSeesOnlyTheSelectedKeys) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/axk2");
  const int n_keys = 9;
  const auto model =
      with_config(folder, [&](nlohmann::json& config) { config["index_topk"] = n_keys; });
  CaptureRequest request = everything_of(folder);
  const H5Reference sparse(capture(*model, request)), full(capture(*open_model(folder), request));
  const auto T = request.runs[0].token_ids.size(),
             H = static_cast<std::size_t>(model->spec().n_heads);
  const Rows scores =
      index_scores(*model, tap_rows(sparse, "ln1.hook_out", 0, at(model->spec().d_model)),
                   tap_rows(sparse, "attn.hook_q_latent", 0, at(model->spec().latent.q_rank)));
  const std::vector<std::set<int>> seen = best_of(scores, n_keys);
  const std::vector<float> got = sparse.floats("/run0/attention/pattern"),
                           all = full.floats("/run0/attention/pattern");
  for (std::size_t h = 0; h < H; ++h)
    for (std::size_t i = 0; i < T; ++i) {
      const std::size_t row = (h * T + i) * T;  // of block 0
      double mass = 0;
      for (const int j : seen[i]) mass += all[row + static_cast<std::size_t>(j)];
      for (std::size_t j = 0; j < T; ++j) {
        const double want = seen[i].contains(static_cast<int>(j)) ? all[row + j] / mass : 0;
        ASSERT_NEAR(got[row + j], want, 1e-5) << "head " << h << ", query " << i << ", key " << j;
      }
    }
  std::vector<std::int64_t> queries(T, 0);  // that see each key, of block 0
  for (const auto& keys : seen)
    for (const int j : keys) ++queries[static_cast<std::size_t>(j)];
  std::vector<std::int64_t> visible = sparse.integers("/run0/attention/visible");
  visible.resize(T);
  EXPECT_EQ(visible, queries);
}

}  // namespace
}  // namespace sinkscope::test
