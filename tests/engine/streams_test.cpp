// SPDX-License-Identifier: GPL-3.0-or-later
// Several residual streams (Qwen4-Exp, DeepSeek-V4): their mixes by identities, hashed n-grams by
// hand, sparse selection against plain loops in double, configs in both spellings.
#include "capture/model/streams.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "capture/model/blocks.h"
#include "capture/model/ngrams.h"
#include "tests/engine/captured.h"
#include "tests/support/h5_reference.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Row = std::vector<double>;
using Rows = std::vector<Row>;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// The folder's model with another config.json.
std::unique_ptr<ModelFiles> with_config(const std::string& folder,
                                        const std::function<void(Json&)>& change) {
  const std::string changed = scratch_folder() + "/model";
  fs::create_directory(changed);
  fs::create_symlink(fs::absolute(folder + "/model.safetensors"), changed + "/model.safetensors");
  std::ifstream in(folder + "/config.json");
  Json config = Json::parse(in);
  change(config);
  std::ofstream(changed + "/config.json") << config;
  return open_model(changed);
}

CaptureRequest everything_of(const std::string& folder) {
  std::vector<int> ids;
  for (std::int64_t id : H5Reference(folder + "/expected.h5").integers("/input_ids"))
    ids.push_back(static_cast<int>(id));
  CaptureRequest request = request_for(ids);
  request.record.maps = request.record.all = request.record.logits = true;
  return request;
}

// One layer of a tap as rows of `width`.
Rows tap_rows(const H5Reference& file, const std::string& hook, int layer, std::size_t width) {
  const std::string group = "/run0/taps/" + hook;
  const std::vector<std::int64_t> layers = file.integers(group + "/layers");
  const auto row =
      static_cast<std::size_t>(std::find(layers.begin(), layers.end(), layer) - layers.begin());
  const std::vector<float> all = file.floats(group + "/values");
  const std::size_t size = all.size() / layers.size();
  Rows rows(size / width, Row(width));
  for (std::size_t i = 0; i < size; ++i) rows[i / width][i % width] = all[row * size + i];
  return rows;
}

Rows matrix(const ModelFiles& model, Role role, int layer) {
  const std::vector<float> values = model.read_vector(role, layer);
  const auto width = static_cast<std::size_t>(model.cols(role, layer));
  Rows rows(values.size() / width, Row(width));
  for (std::size_t i = 0; i < values.size(); ++i) rows[i / width][i % width] = values[i];
  return rows;
}

Rows times(const Rows& x, const Rows& w) {  // x [T][in], w [out][in]
  Rows y(x.size(), Row(w.size(), 0.0));
  for (std::size_t t = 0; t < x.size(); ++t)
    for (std::size_t o = 0; o < w.size(); ++o)
      for (std::size_t i = 0; i < w[o].size(); ++i) y[t][o] += x[t][i] * w[o][i];
  return y;
}

Row normed(const Row& x, const std::vector<float>& gain, double eps) {
  double square = 0;
  for (const double v : x) square += v * v / static_cast<double>(x.size());
  Row y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = gain[i] * x[i] / std::sqrt(square + eps);
  return y;
}

double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Of the `seen` first scores the n best.
std::set<int> best_of(const Row& scores, int seen, int n) {
  std::vector<int> order(at(seen));
  for (int i = 0; i < seen; ++i) order[at(i)] = i;
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return scores[at(a)] > scores[at(b)]; });
  if (seen > n) order.resize(at(n));
  return {order.begin(), order.end()};
}

TEST(Ngrams, RowsEqualThoseByHand) {
  const NgramSpec ngram{4, 3, 1, 2, 1};
  const std::vector<std::int64_t> multipliers = {1, 10, 100}, sizes = {1000, 1000},
                                  offsets = {0, 1000};
  // 2 is the end token: before the start, and behind it, it stands for what came before. An end
  // token itself still sees its own segment.
  EXPECT_THAT(ngram_rows(ngram, {5, 2, 7, 9}, 2, multipliers, sizes, offsets),
              ::testing::ElementsAre(5 ^ 20, 1000 + (5 ^ 20 ^ 200),  //
                                     2 ^ 50, 1000 + (2 ^ 50 ^ 200),  //
                                     7 ^ 20, 1000 + (7 ^ 20 ^ 200),  //
                                     9 ^ 70, 1000 + (9 ^ 70 ^ 200)));
}

TEST(Ngrams, ProductsWrapAndRemaindersAreNotNegative) {
  const NgramSpec ngram{2, 2, 1, 2, 1};
  const std::int64_t huge = (std::int64_t{1} << 62) + 12345;
  const std::vector<std::int64_t> rows = ngram_rows(ngram, {3, 3}, 0, {huge, huge}, {7}, {0});
  // 3·huge = 2^63 + 2^62 + 37035 wraps to −2^62 + 37035, whose remainder by 7 is not negative;
  // equal tokens cancel.
  const std::int64_t wrapped = -(std::int64_t{1} << 62) + 37035;
  EXPECT_EQ(rows[0], (wrapped % 7 + 7) % 7);
  EXPECT_EQ(rows[1], 0);
}

// Streams that are only added to: a mix that takes nothing leaves them as they are.
TEST(StreamMixes, GatedStreamsAreOnlyAddedTo) {
  const at::Tensor x = at::arange(12, at::kFloat).view({1, 2, 6});
  StreamRead read;
  read.take = at::tensor({0.0f, 2.0f, 1.0f, 0.5f}).view({1, 2, 2});
  const at::Tensor out = at::tensor({1.0f, 2.0f, 3.0f, 10.0f, 20.0f, 30.0f}).view({1, 2, 3});
  const at::Tensor want = x + at::tensor({0.0f, 0.0f, 0.0f, 2.0f, 4.0f, 6.0f,  //
                                          10.0f, 20.0f, 30.0f, 5.0f, 10.0f, 15.0f})
                                  .view({1, 2, 6});
  EXPECT_TRUE(write_streams(read, x, out).equal(want));
}

// comb_jk goes from stream j to stream k: a permutation moves them.
TEST(StreamMixes, BalancedStreamsGoFromTheFirstIndexToTheSecond) {
  const at::Tensor x = at::tensor({1.0f, 2.0f, 10.0f, 20.0f, 100.0f, 200.0f}).view({1, 1, 6});
  StreamRead read;
  read.take = at::zeros({1, 1, 3});
  read.comb = at::tensor({0.0f, 1.0f, 0.0f, 0.0f, 0.0f, 1.0f, 1.0f, 0.0f, 0.0f}).view({1, 1, 3, 3});
  const at::Tensor want = at::tensor({100.0f, 200.0f, 1.0f, 2.0f, 10.0f, 20.0f}).view({1, 1, 6});
  EXPECT_TRUE(write_streams(read, x, at::ones({1, 1, 2})).equal(want));
}

// One window of equal gates is a mean; the second entry of overlapping windows reads four tokens.
TEST(CompressedKeys, EntriesEqualThoseByHand) {
  const at::Tensor values = at::arange(10, at::kFloat).view({5, 2});  // 5 tokens, 2 channels
  const at::Tensor plain =
      compressed_entries(values, at::zeros({5, 2}), at::zeros({2, 2}), /*sees_two=*/false);
  EXPECT_TRUE(plain.allclose(at::tensor({1.0f, 2.0f, 5.0f, 6.0f}).view({2, 2})));
  // One channel in two halves: entry 0 is the mean of its own second halves, entry 1 also of the
  // first halves of the window before.
  const at::Tensor both =
      compressed_entries(values, at::zeros({5, 2}), at::zeros({2, 2}), /*sees_two=*/true);
  EXPECT_TRUE(both.allclose(at::tensor({2.0f, (0 + 2 + 5 + 7) / 4.0f}).view({2, 1})));
}

class Streams : public ::testing::TestWithParam<std::string> {};

// Prompts in several groups, weights read again each time: the same numbers, to the bit.
TEST_P(Streams, StreamedWeightsGiveTheSameBits) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + GetParam());
  const auto model = open_model(folder);
  CaptureRequest together = everything_of(folder);
  together.runs.push_back(request_for({9, 4, 11, 2, 3, 3, 7}).runs.front());
  CaptureRequest apart = together;
  apart.activation_budget = 1;
  apart.weight_budget = 0;
  const std::string a = capture(*model, together), b = capture(*model, apart);
  EXPECT_EQ(first_difference(a, b), "");
  EXPECT_EQ(first_difference(a, b, "/run1"), "");
}

// One token, and fewer tokens than a window: nothing is compressed, nothing indexed.
TEST_P(Streams, ShortPromptsRun) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + GetParam());
  const auto model = open_model(folder);
  CaptureRequest request = request_for({5});
  request.record.maps = request.record.all = true;
  request.runs.push_back(request_for({5, 6, 7}).runs.front());
  const H5Reference got(capture(*model, request));
  for (const float x : got.floats("/run0/residual/stream")) ASSERT_TRUE(std::isfinite(x));
  // The first token does not see the others.
  const std::vector<std::int64_t> dims = got.dims("/run1/residual/stream");  // [S, T, N, D]
  const auto width = static_cast<std::size_t>(dims[2] * dims[3]);
  const std::vector<float> one = got.floats("/run0/residual/stream"),
                           three = got.floats("/run1/residual/stream");
  for (std::size_t i = 0; i < one.size(); ++i)
    ASSERT_NEAR(one[i], three[i / width * 3 * width + i % width], 1e-5) << i;
}

INSTANTIATE_TEST_SUITE_P(Models, Streams, ::testing::Values("qwen4_exp", "deepseek_v4"),
                         [](const auto& test) { return test.param; });

TEST(StreamSpellings, Qwen4ExpSaysFullAttentionAndRopeOnTop) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/qwen4_exp");
  const auto old = with_config(folder, [](Json& config) {
    for (auto& type : config["layer_types"])
      if (type == "indexed_attention") type = "full_attention";
    config["rope_theta"] = config["rope_parameters"]["rope_theta"];
    config["partial_rotary_factor"] = config["rope_parameters"]["partial_rotary_factor"];
    config.erase("rope_parameters");
  });
  ASSERT_THAT(old->obstacles(), ::testing::IsEmpty());
  const CaptureRequest request = everything_of(folder);
  EXPECT_EQ(first_difference(capture(*open_model(folder), request), capture(*old, request)), "");
}

// Without layer_types: one attention layer after every three.
TEST(StreamSpellings, Qwen4ExpHasAnIntervalWithoutLayerTypes) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/qwen4_exp");
  const auto model = with_config(folder, [](Json& config) {
    config.erase("layer_types");
    config["full_attention_interval"] = 2;
  });
  EXPECT_EQ(model->spec().mixers, open_model(folder)->spec().mixers);
}

TEST(StreamSpellings, DeepSeekV4InOldWords) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/deepseek_v4");
  const auto old = with_config(folder, [](Json& config) {
    const Json ropes = config["rope_parameters"];
    Json yarn = ropes["compress"];
    for (const char* key : {"rope_theta", "partial_rotary_factor", "attention_factor"})
      yarn.erase(key);
    yarn["type"] = yarn["rope_type"];
    yarn.erase("rope_type");
    config["rope_theta"] = ropes["main"]["rope_theta"];
    config["compress_rope_theta"] = ropes["compress"]["rope_theta"];
    config["rope_scaling"] = yarn;
    config["compress_ratios"] = {0, 4, 128, 4, 0};  // one more for the layer that predicts further
    config["compress_rate_csa"] = 4;
    config["compress_rate_hca"] = 8;
    config["num_hash_layers"] = 1;
    for (const char* key : {"rope_parameters", "layer_types", "compress_rates", "mlp_layer_types",
                            "partial_rotary_factor"})
      config.erase(key);
  });
  ASSERT_THAT(old->obstacles(), ::testing::IsEmpty());
  const CaptureRequest request = everything_of(folder);
  EXPECT_EQ(first_difference(capture(*open_model(folder), request), capture(*old, request)), "");
}

// Twenty rounds of Sinkhorn: columns, which come last, sum to 1 up to hc_eps, rows nearly.
TEST(StreamMixes, MatricesBetweenStreamsAreDoublyStochastic) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/deepseek_v4");
  const auto model = with_config(folder, [](Json& config) {
    config["hc_sinkhorn_iters"] = 20;
    config["hc_eps"] = 1e-6;
  });
  const H5Reference got(capture(*model, everything_of(folder)));
  const std::size_t N = 3;
  for (const char* hook : {"hyper_attn.hook_comb", "hyper_mlp.hook_comb"})
    for (const Row& comb : tap_rows(got, hook, 2, N * N))
      for (std::size_t k = 0; k < N; ++k) {
        double column = 0, row = 0;
        for (std::size_t j = 0; j < N; ++j) {
          column += comb[j * N + k];
          row += comb[k * N + j];
        }
        ASSERT_NEAR(column, 1, 1e-5);
        ASSERT_NEAR(row, 1, 5e-3);
      }
}

// Rotate-half on the first n dims of x from `first` on.
void rotate_half(Row& x, std::size_t first, std::size_t n, double position, double theta) {
  for (std::size_t i = 0; i < n / 2; ++i) {
    const double angle =
        position * std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(n));
    const double a = x[first + i], b = x[first + i + n / 2];
    x[first + i] = a * std::cos(angle) - b * std::sin(angle);
    x[first + i + n / 2] = b * std::cos(angle) + a * std::sin(angle);
  }
}

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

}  // namespace
}  // namespace sinkscope::test
