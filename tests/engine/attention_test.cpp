// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/attention.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

namespace sinkscope {
namespace {

// Collects whole maps [H, T, T].
class WholeMaps : public MapSink {
 public:
  WholeMaps(int heads, int seq_len)
      : maps(at::full({heads, seq_len, seq_len}, NAN)), seq_len_(seq_len) {}
  float* begin_tile(int head, int n_heads, int row, int n_rows) override {
    head_ = head, n_heads_ = n_heads, row_ = row, n_rows_ = n_rows;
    tile_ = at::full({n_heads, n_rows, seq_len_}, NAN);
    return tile_.data_ptr<float>();
  }
  void end_tile(int key_end, int) override {
    tile_.narrow(2, key_end, seq_len_ - key_end).zero_();
    maps.narrow(0, head_, n_heads_).narrow(1, row_, n_rows_).copy_(tile_);
  }
  at::Tensor maps;

 private:
  int seq_len_, head_ = 0, n_heads_ = 0, row_ = 0, n_rows_ = 0;
  at::Tensor tile_;
};

// What a call may have beside queries, keys and values.
struct Extras {
  int d_value = 0;  // 0 = d
  double cap = 0;
  bool sink = false;
  int n_selected = 0;  // keys that each query sees; 0 = all
};

AttentionCall random_call(int T, int H, int G, int d, int window, const Extras& extras = {}) {
  auto generator = at::detail::createCPUGenerator(5);
  const auto normal = [&](int heads) {
    return at::randn({T, heads, d}, generator, at::kFloat) * 1.5;
  };
  // Slices of wider matrices, as the fused q/k/v product gives them.
  const at::Tensor qkv = at::cat({normal(H), normal(G), normal(G)}, 1);
  AttentionCall call{qkv.narrow(1, 0, H), qkv.narrow(1, H, G), qkv.narrow(1, H + G, G),
                     1 / std::sqrt(static_cast<double>(d)), window};
  call.cap = extras.cap;
  if (extras.d_value > 0) call.v = at::randn({T, G, extras.d_value}, generator, at::kFloat) * 1.5;
  if (extras.sink) call.sink = at::randn({H, T}, generator, at::kFloat) * 2;
  if (extras.n_selected > 0) {
    // As an indexer selects: the best of random scores, later keys last.
    const at::Tensor later = at::ones({T, T}).triu(1);
    const at::Tensor scores = at::rand({T, T}, generator, at::kFloat) - 9 * later;
    call.selected = std::get<1>(scores.topk(extras.n_selected, -1));
  }
  return call;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::fmax(largest, std::fabs(a[i] - b[i]));
  return largest;
}

struct Shape {
  int T, H, G, d, window, tile_heads, tile_rows;
  Extras extras = {};
};
class Bodies : public ::testing::TestWithParam<Shape> {};

// `slack` stretches the tolerances where weights are large or amplify what scores differ by.
void expect_equal_statistics(const AttentionStats& fused, const AttentionStats& reference,
                             double slack = 1) {
  EXPECT_LT(largest_difference(fused.lse, reference.lse), 1e-5 * slack);
  EXPECT_LT(largest_difference(fused.null_mass, reference.null_mass), 1e-6 * slack);
  EXPECT_LT(largest_difference(fused.entropy, reference.entropy), 1e-5 * slack);
  EXPECT_LT(largest_difference(fused.max_prob, reference.max_prob), 1e-6 * slack);
  EXPECT_LT(largest_difference(fused.logit_max, reference.logit_max), 1e-5 * slack);
  EXPECT_LT(largest_difference(fused.logit_gap, reference.logit_gap), 1e-5 * slack);
  EXPECT_LT(largest_difference(fused.distance, reference.distance), 1e-4 * slack);
  EXPECT_LT(largest_difference(fused.first4, reference.first4), 1e-6 * slack);
  EXPECT_LT(largest_difference(fused.last8, reference.last8), 1e-6 * slack);
  EXPECT_LT(largest_difference(fused.out_norm, reference.out_norm), 1e-5 * slack);
  EXPECT_LT(largest_difference(fused.out_norm_sum, reference.out_norm_sum), 1e-5 * slack);
  for (std::size_t i = 0; i < fused.value_norm.size(); ++i)
    ASSERT_TRUE(std::isnan(fused.value_norm[i])
                    ? std::isnan(reference.value_norm[i])
                    : std::fabs(fused.value_norm[i] - reference.value_norm[i]) < 1e-5 * slack)
        << i;
  EXPECT_LT(largest_difference(fused.window, reference.window), 1e-6 * slack);
  EXPECT_LT(largest_difference(fused.thumbnail, reference.thumbnail), 1e-6 * slack);
  for (std::size_t i = 0; i < fused.key_mass.size(); ++i)
    ASSERT_NEAR(fused.key_mass[i], reference.key_mass[i], 1e-5 * slack) << i;
}

void expect_equal_bodies(const Shape& s) {
  const AttentionCall call = random_call(s.T, s.H, s.G, s.d, s.window, s.extras);
  AttentionStats fused(s.H, s.G, s.T), reference(s.H, s.G, s.T);
  WholeMaps fused_maps(s.H, s.T), reference_maps(s.H, s.T);
  const TileGeometry tile{s.tile_heads, s.tile_rows};
  const at::Tensor a = attend_fused(call, tile, fused, &fused_maps, {});
  const at::Tensor b = attend_reference(call, {s.H, s.T}, reference, &reference_maps, {});
  EXPECT_LT((a - b).abs().max().item<float>(), 5e-6);  // of values up to 6
  EXPECT_LT((fused_maps.maps - reference_maps.maps).abs().max().item<float>(), 1e-6);
  expect_equal_statistics(fused, reference);
  // Without maps the scores stay in scratch memory: same numbers to the bit.
  AttentionStats alone(s.H, s.G, s.T);
  const at::Tensor c = attend_fused(call, tile, alone, nullptr, {});
  EXPECT_TRUE(at::equal(a, c));
  EXPECT_EQ(alone.key_mass, fused.key_mass);
  EXPECT_EQ(alone.thumbnail, fused.thumbnail);
  EXPECT_EQ(fused.visible, reference.visible);
}

TEST_P(Bodies, FusedEqualsReference) { expect_equal_bodies(GetParam()); }

// An encoder: every query sees every key.
TEST(Attention, BothBodiesSeeKeysOnBothSides) {
  for (const Shape& s : {Shape{1, 4, 2, 6, kAllKeys, 4, 1}, Shape{23, 4, 2, 24, kAllKeys, 4, 23},
                         Shape{150, 6, 3, 8, kAllKeys, 2, 150},
                         Shape{131, 3, 1, 14, kAllKeys, 3, 64, {9, 1.5, true}},
                         Shape{90, 4, 2, 8, kAllKeys, 4, 40, {0, 0, false, 7}}}) {
    SCOPED_TRACE(s.T);
    expect_equal_bodies(s);
  }
}

// p_ij of two keys that a selection leaves, by hand; and who sees which key.
TEST(Attention, OnlySelectedKeysCount) {
  AttentionCall call;
  call.q = at::ones({4, 1, 1});
  call.k = at::tensor({0.0f, 1.0f, 5.0f, 2.0f}).view({4, 1, 1});
  call.v = at::tensor({1.0f, 2.0f, 3.0f, 4.0f}).view({4, 1, 1});
  call.selected = at::tensor({0, 3, 0, 1, 1, 0, 3, 1}, at::kLong).view({4, 2});
  for (const bool is_fused : {true, false}) {
    AttentionStats stats(1, 1, 4);
    const at::Tensor z = is_fused ? attend_fused(call, {1, 4}, stats, nullptr, {})
                                  : attend_reference(call, {1, 4}, stats, nullptr, {});
    // Query 3 sees keys 3 and 1: e^2 : e^1.
    const float p3 = 1 / (1 + std::exp(-1.0f));
    EXPECT_NEAR(z[3].item<float>(), 4 * p3 + 2 * (1 - p3), 1e-6);
    EXPECT_NEAR(stats.lse[3], std::log(std::exp(2.0) + std::exp(1.0)), 1e-6);
    EXPECT_EQ(stats.logit_max[3], 2);
    EXPECT_EQ(stats.logit_gap[3], 1);  // the lower of two is the median
    EXPECT_EQ(stats.visible, (std::vector<std::int32_t>{3, 3, 0, 1}));
  }
}

// Every normalizer, each with keys lost both ways, and values scaled for one query head of a group.
void expect_equal_under_edits(const Shape& s) {
  const AttentionCall plain = random_call(s.T, s.H, s.G, s.d, s.window, s.extras);
  const std::vector<Normalizer> kinds = {
      {},
      {.kind = NormalizerKind::softmax1},
      {.kind = NormalizerKind::sink_logit, .sink_logit = -1.5},
      {.kind = NormalizerKind::sink_logit, .sink_logit = 90},
      {.kind = NormalizerKind::clipped, .gamma = -.03, .zeta = 1.1},
      {.kind = NormalizerKind::sparsemax},
      {.kind = NormalizerKind::entmax15},
      {.kind = NormalizerKind::sigmoid}};
  for (const Normalizer& kind : kinds) {
    for (bool loses : {false, true}) {
      SCOPED_TRACE(std::string(name_of(kind.kind)) + (loses ? ", keys lost" : ""));
      AttentionEdit edit;
      edit.normalizers.assign(static_cast<std::size_t>(s.H), kind);
      edit.normalizers[0].reset();  // one head as the model has it
      if (loses) {
        edit.lost = at::zeros({s.H, s.T}, at::kBool);
        edit.lost.narrow(0, 1, s.H - 1).select(1, 0).fill_(true);
        edit.lost.select(1, s.T / 2).fill_(true);
        edit.renormalize = at::ones({s.H}, at::kBool);
        edit.renormalize.narrow(0, s.H / 2, s.H - s.H / 2).fill_(false);
      } else {
        edit.value_scale = at::ones({s.H, s.T});
        edit.value_scale[0][0] = -2;
        edit.value_scale.select(1, s.T - 1).fill_(.5);
      }
      AttentionCall call = plain;
      call.edit = &edit;
      AttentionStats fused(s.H, s.G, s.T), reference(s.H, s.G, s.T);
      WholeMaps fused_maps(s.H, s.T), reference_maps(s.H, s.T);
      const at::Tensor a = attend_fused(call, {s.tile_heads, s.tile_rows}, fused, &fused_maps, {});
      const at::Tensor b = attend_reference(call, {s.H, s.T}, reference, &reference_maps, {});
      EXPECT_LT((a - b).abs().max().item<float>(),
                2e-5 * std::max(1.0f, b.abs().max().item<float>()));
      EXPECT_LT((fused_maps.maps - reference_maps.maps).abs().max().item<float>(), 3e-6);
      expect_equal_statistics(fused, reference, kind.kind == NormalizerKind::sigmoid ? 30 : 3);
    }
  }
}

TEST_P(Bodies, FusedEqualsReferenceUnderEdits) { expect_equal_under_edits(GetParam()); }

TEST(Attention, BothBodiesEditKeysOnBothSides) {
  for (const Shape& s :
       {Shape{23, 4, 2, 24, kAllKeys, 4, 23}, Shape{90, 4, 2, 8, kAllKeys, 4, 40}}) {
    SCOPED_TRACE(s.T);
    expect_equal_under_edits(s);
  }
}

// A window costs itself and not the prompt: 4,096 queries that see 128 keys each are a sixteenth of
// the work of those that see all; a third of the time is asked for.
TEST(Attention, AWindowCostsItsWindow) {
  const auto seconds = [](int window) {
    const AttentionCall call = random_call(4096, 2, 1, 32, window, {});
    double best = 1e9;
    for (int i = 0; i < 3; ++i) {
      AttentionStats stats(2, 1, 4096);
      const auto begin = std::chrono::steady_clock::now();
      attend_fused(call, {2, 256}, stats, nullptr, {});
      best = std::min(
          best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return best;
  };
  EXPECT_LT(3 * seconds(128), seconds(0));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Bodies,
    ::testing::Values(Shape{1, 4, 2, 6, 0, 4, 1}, Shape{23, 4, 2, 24, 0, 4, 23},
                      Shape{100, 6, 2, 10, 0, 3, 40}, Shape{150, 6, 3, 8, 7, 2, 150},
                      Shape{131, 3, 1, 14, 40, 3, 64}, Shape{70, 4, 2, 8, 0, 4, 70, {5, 0, false}},
                      Shape{99, 6, 3, 8, 11, 2, 64, {0, 2.5, false}},
                      Shape{83, 4, 4, 10, 0, 4, 30, {7, 0, true}},
                      Shape{150, 6, 2, 6, 9, 6, 150, {9, 1.5, true}},
                      Shape{140, 4, 2, 8, 0, 2, 140, {0, 0, false, 9}},
                      Shape{133, 6, 2, 6, 0, 6, 50, {5, 2, true, 20}}));

// The sink's share and the rows make 1; −∞ logits change nothing, huge ones take everything.
TEST(Attention, SinkLogitsTakeTheirShare) {
  const int T = 40, H = 4, G = 2;
  AttentionCall call = random_call(T, H, G, 8, 0, {6, 0, true});
  AttentionCall plain = call;
  plain.sink = at::Tensor();
  for (auto* body : {attend_fused, attend_reference}) {
    AttentionStats stats(H, G, T), without(H, G, T);
    WholeMaps maps(H, T), plain_maps(H, T);
    const at::Tensor z = body(call, {H, T}, stats, &maps, {});
    const at::Tensor z_plain = body(plain, {H, T}, without, &plain_maps, {});
    for (int h = 0; h < H; ++h)
      for (int t = 0; t < T; ++t) {
        const auto i = static_cast<std::size_t>(h * T + t);
        const double b = call.sink[h][t].item<float>(), lse = stats.lse[i];
        const double null = 1 / (1 + std::exp(lse - b));  // e^b / (e^b + e^lse)
        ASSERT_NEAR(stats.null_mass[i], null, 1e-6);
        ASSERT_NEAR(maps.maps[h][t].sum().item<float>(), 1 - null, 1e-6);
        ASSERT_NEAR((z[t][h] - z_plain[t][h] * (1 - null)).abs().max().item<float>(), 0, 1e-5);
      }
    EXPECT_EQ(without.null_mass, std::vector<float>(static_cast<std::size_t>(H * T), 0.0f));
    AttentionCall extreme = call;
    extreme.sink = at::full({H, T}, -1e30f);
    EXPECT_LT((body(extreme, {H, T}, stats, nullptr, {}) - z_plain).abs().max().item<float>(),
              1e-6);
    extreme.sink = at::full({H, T}, 1e30f);
    EXPECT_EQ(body(extreme, {H, T}, stats, nullptr, {}).abs().max().item<float>(), 0);
    EXPECT_EQ(stats.null_mass, std::vector<float>(static_cast<std::size_t>(H * T), 1.0f));
  }
}

// One head of width 1: the last query's scores are the keys.
AttentionCall scores_of_last_query(const std::vector<float>& scores) {
  const auto T = static_cast<std::int64_t>(scores.size());
  return {at::ones({T, 1, 1}), at::tensor(scores).view({T, 1, 1}), at::ones({T, 1, 1}), 1, 0};
}

// FC-32: a learned sink takes its share; what is left of a row is not normalized again.
TEST(FieldCases, FC32_ALearnedSinkTakesItsShare) {
  AttentionCall call = scores_of_last_query({0, 0, 0});
  call.sink = at::zeros({1, 3});
  for (auto* body : {attend_fused, attend_reference}) {
    AttentionStats stats(1, 1, 3);
    WholeMaps maps(1, 3);
    body(call, {1, 3}, stats, &maps, {});
    for (int j = 0; j < 3; ++j) EXPECT_NEAR(maps.maps[0][2][j].item<float>(), 0.25f, 1e-7);
    EXPECT_NEAR(stats.null_mass[2], 0.25f, 1e-7);
  }
}

// FC-33: 50·tanh(100/50) = 48.2014; 0 = no cap.
TEST(FieldCases, FC33_ScoresAreCappedBeforeTheSoftmax) {
  AttentionCall call = scores_of_last_query({100, 0});
  for (auto* body : {attend_fused, attend_reference}) {
    AttentionStats stats(1, 1, 2);
    call.cap = 50;
    body(call, {1, 2}, stats, nullptr, {});
    EXPECT_NEAR(stats.logit_max[1], 48.2014, 1e-4);
    EXPECT_NEAR(stats.logit_gap[1], 48.2014, 1e-4);
    call.cap = 0;
    body(call, {1, 2}, stats, nullptr, {});
    EXPECT_EQ(stats.logit_max[1], 100);
  }
}

// FC-54: softmax1 is not shift invariant, and neither overflows nor loses a row far below zero.
TEST(FieldCases, FC54_Softmax1InBothBodies) {
  struct Row {
    std::vector<float> scores;
    std::vector<double> p;
    double null;
  };
  const std::vector<Row> rows = {{{2, 1, 0}, {.610296, .224515, .082595}, 1 - .917405},
                                 {{-20, -21, -22}, {2.0612e-9, 7.5826e-10, 2.7895e-10}, 1},
                                 {{100, 0, 0}, {1, 0, 0}, 0}};
  for (const Row& row : rows) {
    // One head of width 1: the last query's scores are the keys.
    const at::Tensor k = at::tensor(row.scores).view({3, 1, 1});
    AttentionEdit edit;
    edit.normalizers = {Normalizer{.kind = NormalizerKind::softmax1}};
    AttentionCall call{at::ones({3, 1, 1}), k, at::ones({3, 1, 1}), 1, 0};
    call.edit = &edit;
    for (auto* body : {attend_fused, attend_reference}) {
      AttentionStats stats(1, 1, 3);
      WholeMaps maps(1, 3);
      body(call, {1, 3}, stats, &maps, {});
      for (int j = 0; j < 3; ++j) {
        const double want = row.p[static_cast<std::size_t>(j)];
        EXPECT_NEAR(maps.maps[0][2][j].item<double>(), want,
                    1e-6 * want + (want > 1e-3 ? 1e-6 : 1e-13));
      }
      EXPECT_NEAR(stats.null_mass[2], row.null, 1e-6);
    }
  }
}

// FC-31: the strict upper triangle is exactly zero, for T = 1 too.
TEST(FieldCases, FC31_TheExplicitPathKeepsTheCausalMask) {
  for (int T : {1, 2, 70}) {
    const AttentionCall call = random_call(T, 4, 2, 8, 0);
    for (auto* body : {attend_fused, attend_reference}) {
      AttentionStats stats(4, 2, T);
      WholeMaps maps(4, T);
      body(call, {4, T}, stats, &maps, {});
      EXPECT_EQ(maps.maps.triu(1).abs().max().item<float>(), 0) << T;
      EXPECT_LT((maps.maps.sum(-1) - 1).abs().max().item<float>(), 1e-6) << T;
    }
  }
}

// FC-35: four query heads on two kv heads: 0,0,1,1, not 0,1,0,1.
TEST(FieldCases, FC35_QueryHeadsShareKvHeadsInBlocks) {
  const int T = 5, H = 4, G = 2, d = 3;
  AttentionCall call{at::zeros({T, H, d}), at::zeros({T, G, d}), at::empty({T, G, d}), 1, 0};
  call.v.select(1, 0).fill_(1);
  call.v.select(1, 1).fill_(2);
  for (auto* body : {attend_fused, attend_reference}) {
    AttentionStats stats(H, G, T);
    const at::Tensor z = body(call, {H, T}, stats, nullptr, {});
    for (int h = 0; h < H; ++h) EXPECT_FLOAT_EQ(z[T - 1][h][0].item<float>(), h < 2 ? 1 : 2);
  }
}

TEST(TileGeometry, SplitsHeadsBeforeRows) {
  EXPECT_EQ(tile_geometry(512, 9, 3).heads, 9);  // 9 MiB: one tile
  EXPECT_EQ(tile_geometry(512, 9, 3).rows, 512);
  const TileGeometry heads = tile_geometry(1024, 12, 4);  // 48 MiB: half the groups
  EXPECT_EQ(heads.heads, 6);
  EXPECT_EQ(heads.rows, 1024);
  const TileGeometry rows = tile_geometry(8192, 9, 3);
  EXPECT_EQ(rows.heads, 3);
  EXPECT_EQ(rows.rows, 256);
  EXPECT_LE(std::int64_t{4} * rows.heads * rows.rows * 8192, std::int64_t{32} << 20);
}

TEST(Attention, CanceledBeforeATileGivesNothing) {
  const AttentionCall call = random_call(20, 4, 2, 8, 0);
  std::stop_source stop;
  stop.request_stop();
  AttentionStats stats(4, 2, 20);
  EXPECT_FALSE(attend_fused(call, {4, 20}, stats, nullptr, stop.get_token()).defined());
  EXPECT_FALSE(attend_reference(call, {4, 20}, stats, nullptr, stop.get_token()).defined());
}

}  // namespace
}  // namespace sinkscope
