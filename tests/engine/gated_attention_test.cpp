// SPDX-License-Identifier: GPL-3.0-or-later
// Gates of attention's output, in every way in which they are packed, against the equations in
// float64 on a model whose gates lie apart.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "capture/checkpoint/absorb.h"
#include "capture/checkpoint/arch_file.h"
#include "core/capture_reader.h"
#include "core/mechanisms.h"
#include "core/rescale/report.h"
#include "tests/engine/captured.h"
#include "tests/engine/reference_model.h"
#include "tests/support/h5_reference.h"
#include "tests/support/shared_files.h"
#include "tests/support/tiny_folder.h"

namespace sinkscope::test {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// 6 heads of 4 over 2 key heads, width 10: no two of the sizes that meet are equal.
constexpr int kHeads = 6, kKvHeads = 2, kDim = 4, kWidth = 10, kMlp = 14, kVocab = 23, kLayers = 2,
              kGroup = kHeads / kKvHeads;
const std::vector<int> kIds = {3, 17, 5, 5, 22, 0, 9, 11, 1};

enum class Place { beside_each_head, beside_each_group, apart };

struct Variant {
  const char* name;
  AttnGate gate;
  Place place;
  bool has_biases;
  int gate_dim() const { return gate == AttnGate::headwise ? 1 : kDim; }
};

// The same numbers for every variant: queries, gates and the rest under a seed of their own.
std::vector<float> numbers(const std::string& name, std::int64_t n, double size) {
  std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(name)));
  std::normal_distribution<double> normal(0, size);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& value : values) value = static_cast<float>(normal(random));
  return values;
}

std::vector<float> query_rows(int layer) {
  return numbers(fmt::format("q{}", layer), kHeads * kDim * kWidth, 0.4);
}
std::vector<float> gate_rows(int layer, const Variant& v) {
  return numbers(fmt::format("gate{}", layer), kHeads * v.gate_dim() * kWidth, 0.7);
}
std::vector<float> query_bias(int layer) {
  return numbers(fmt::format("qb{}", layer), kHeads * kDim, 0.3);
}
std::vector<float> gate_bias(int layer, const Variant& v) {
  return numbers(fmt::format("gb{}", layer), kHeads * v.gate_dim(), 0.9);
}

// Queries and gates as that packing has them; `width` values a row.
std::vector<float> packed_rows(const std::vector<float>& q, const std::vector<float>& gate,
                               const Variant& v, int width) {
  std::vector<float> all;
  const auto append = [&](const std::vector<float>& from, int begin, int n) {
    all.insert(all.end(), from.begin() + begin * width, from.begin() + (begin + n) * width);
  };
  const int each = v.place == Place::beside_each_group ? kGroup : 1;
  for (int head = 0; head < kHeads; head += each) {
    append(q, head * kDim, each * kDim);
    append(gate, head * v.gate_dim(), each * v.gate_dim());
  }
  return all;
}

void put(TinyFolder& folder, const std::string& name, const std::vector<std::int64_t>& shape,
         std::vector<float> values) {
  folder.tensors[name] = {shape, std::move(values)};
}

// Without gates: what they multiply is then up to the test.
TinyFolder plain_folder(bool has_biases) {
  TinyFolder folder;
  folder.config = {{"model_type", "qwen3"},
                   {"num_hidden_layers", kLayers},
                   {"hidden_size", kWidth},
                   {"num_attention_heads", kHeads},
                   {"num_key_value_heads", kKvHeads},
                   {"head_dim", kDim},
                   {"intermediate_size", kMlp},
                   {"vocab_size", kVocab},
                   {"max_position_embeddings", 64},
                   {"rms_norm_eps", 0.003},
                   {"rope_theta", 500.0},
                   {"tie_word_embeddings", false},
                   {"qkv_bias", has_biases}};
  const auto add = [&](const std::string& name, const std::vector<std::int64_t>& shape,
                       double size) {
    std::int64_t n = 1;
    for (const std::int64_t dim : shape) n *= dim;
    put(folder, name, shape, numbers(name, n, size));
  };
  add("model.embed_tokens.weight", {kVocab, kWidth}, 1);
  add("model.norm.weight", {kWidth}, 1);
  add("lm_head.weight", {kVocab, kWidth}, 0.5);
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string block = fmt::format("model.layers.{}.", layer),
                      attention = block + "self_attn.";
    add(block + "input_layernorm.weight", {kWidth}, 1);
    put(folder, attention + "q_proj.weight", {kHeads * kDim, kWidth}, query_rows(layer));
    add(attention + "k_proj.weight", {kKvHeads * kDim, kWidth}, 0.4);
    add(attention + "v_proj.weight", {kKvHeads * kDim, kWidth}, 0.4);
    add(attention + "o_proj.weight", {kWidth, kHeads * kDim}, 0.4);
    if (has_biases) {
      put(folder, attention + "q_proj.bias", {kHeads * kDim}, query_bias(layer));
      add(attention + "k_proj.bias", {kKvHeads * kDim}, 0.3);
      add(attention + "v_proj.bias", {kKvHeads * kDim}, 0.3);
      add(attention + "o_proj.bias", {kWidth}, 0.3);
    }
    add(attention + "q_norm.weight", {kDim}, 1);
    add(attention + "k_norm.weight", {kDim}, 1);
    add(block + "post_attention_layernorm.weight", {kWidth}, 1);
    add(block + "mlp.gate_proj.weight", {kMlp, kWidth}, 0.4);
    add(block + "mlp.up_proj.weight", {kMlp, kWidth}, 0.4);
    add(block + "mlp.down_proj.weight", {kWidth, kMlp}, 0.4);
  }
  return folder;
}

TinyFolder gated_folder(const Variant& v) {
  TinyFolder folder = plain_folder(v.has_biases);
  folder.config["headwise_attn_output_gate"] = v.gate == AttnGate::headwise;
  folder.config["elementwise_attn_output_gate"] = v.gate == AttnGate::elementwise;
  const int gates = kHeads * v.gate_dim();
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string attention = fmt::format("model.layers.{}.self_attn.", layer);
    if (v.place == Place::apart) {
      put(folder, attention + "gate_proj.weight", {gates, kWidth}, gate_rows(layer, v));
      if (v.has_biases) put(folder, attention + "gate_proj.bias", {gates}, gate_bias(layer, v));
      continue;
    }
    put(folder, attention + "q_proj.weight", {kHeads * kDim + gates, kWidth},
        packed_rows(query_rows(layer), gate_rows(layer, v), v, kWidth));
    if (v.has_biases)
      put(folder, attention + "q_proj.bias", {kHeads * kDim + gates},
          packed_rows(query_bias(layer), gate_bias(layer, v), v, 1));
  }
  return folder;
}

// The plain model's own description, with the gates added as they lie.
std::string description(const std::string& plain, const Variant& v) {
  json arch = json::parse(arch_to_json(*open_model(plain)).dump());
  arch["spec"]["attn_gate"] = v.gate == AttnGate::headwise ? "headwise" : "elementwise";
  const bool apart = v.place == Place::apart;
  const std::string from =
      std::string("model.layers.{layer}.self_attn.") + (apart ? "gate" : "q") + "_proj.";
  arch["roles"]["attn_gate"] = from + "weight";
  if (v.has_biases) arch["roles"]["attn_gate_bias"] = from + "bias";
  for (const char* role : {"q", "attn_gate", "q_bias", "attn_gate_bias"})
    if (!apart && arch["roles"].contains(role))
      arch["packing"][role] =
          v.place == Place::beside_each_group ? "query_gate_by_group" : "query_gate_by_head";
  const std::string path = scratch_folder() + "/arch.json";
  std::ofstream(path) << arch;
  return path;
}

std::unique_ptr<ModelFiles> gated_model(const Variant& v) {
  const std::string folder = gated_folder(v).write(scratch_folder());
  if (v.place == Place::beside_each_group) return open_model(folder);  // config.json says it
  const std::string plain = plain_folder(v.has_biases).write(scratch_folder());
  return open_model(folder, {.arch_file = description(plain, v)});
}

// σ(W n + b) of head h, [T][gate_dim], in float64.
Rows gates_of(const Rows& n1, int layer, int head, const Variant& v) {
  const std::vector<float> weights = gate_rows(layer, v), bias = gate_bias(layer, v);
  Rows gates;
  for (const Row& n : n1) {
    Row& row = gates.emplace_back();
    for (int g = 0; g < v.gate_dim(); ++g) {
      const int line = head * v.gate_dim() + g;
      double sum = v.has_biases ? bias[static_cast<std::size_t>(line)] : 0;
      for (int i = 0; i < kWidth; ++i)
        sum +=
            weights[static_cast<std::size_t>(line * kWidth + i)] * n[static_cast<std::size_t>(i)];
      row.push_back(1 / (1 + std::exp(-sum)));
    }
  }
  return gates;
}

class GatedAttention : public ::testing::TestWithParam<Variant> {};

TEST_P(GatedAttention, EqualsTheEquationsInFloat64WithBothBodies) {
  const Variant& v = GetParam();
  const auto model = gated_model(v);
  ASSERT_THAT(model->obstacles(), IsEmpty());
  const auto plain = open_model(plain_folder(v.has_biases).write(scratch_folder()));
  ASSERT_THAT(plain->obstacles(), IsEmpty());
  // [layer][head][T][gate_dim]
  std::vector<std::vector<Rows>> gates(kLayers, std::vector<Rows>(kHeads));
  ReferenceHooks hooks;
  hooks.z = [&](int layer, int head, const Rows& n1, Rows& z) {
    const Rows share = gates[static_cast<std::size_t>(layer)][static_cast<std::size_t>(head)] =
        gates_of(n1, layer, head, v);
    for (std::size_t t = 0; t < z.size(); ++t)
      for (std::size_t d = 0; d < z[t].size(); ++d) z[t][d] *= share[t][d % share[t].size()];
  };
  const Row want = reference_loss(*plain, kIds, hooks);
  for (const char* kernel : {"fused", "reference"}) {
    CaptureRequest request = request_for(kIds);
    request.kernel = kernel;
    request.record.sites = {"attn.hook_gate"};
    const std::string path = capture(*model, request);
    const H5Reference got(path);
    const std::vector<float> loss = got.floats("/run0/logits/loss");
    for (std::size_t t = 0; t < want.size(); ++t) EXPECT_NEAR(loss[t], want[t], 1e-5) << t;

    const std::string tap = "/run0/taps/attn.hook_gate/values";
    const auto T = static_cast<std::int64_t>(kIds.size());
    EXPECT_EQ(got.dims(tap), (std::vector<std::int64_t>{kLayers, kHeads, T, v.gate_dim()}));
    const std::vector<float> values = got.floats(tap);
    const auto mechanisms = read_mechanisms(*CaptureReader::open(path), "run0", kLayers);
    std::size_t at = 0;
    for (int layer = 0; layer < kLayers; ++layer)
      for (int head = 0; head < kHeads; ++head) {
        double sum = 0;
        for (const Row& row :
             gates[static_cast<std::size_t>(layer)][static_cast<std::size_t>(head)])
          for (const double share : row) {
            EXPECT_NEAR(values[at++], share, 1e-5) << layer << " " << head;
            sum += share;
          }
        EXPECT_NEAR(mechanisms.attn_gate(layer, head), sum / static_cast<double>(T * v.gate_dim()),
                    1e-5);
      }
    EXPECT_EQ(at, values.size());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Packings, GatedAttention,
    ::testing::Values(
        Variant{"heads_by_group", AttnGate::headwise, Place::beside_each_group, false},
        Variant{"channels_by_group", AttnGate::elementwise, Place::beside_each_group, false},
        Variant{"heads_by_group_biased", AttnGate::headwise, Place::beside_each_group, true},
        Variant{"channels_by_group_biased", AttnGate::elementwise, Place::beside_each_group, true},
        Variant{"heads_by_head", AttnGate::headwise, Place::beside_each_head, true},
        Variant{"channels_by_head", AttnGate::elementwise, Place::beside_each_head, true},
        Variant{"heads_apart", AttnGate::headwise, Place::apart, false},
        Variant{"channels_apart", AttnGate::elementwise, Place::apart, true}),
    [](const auto& test) { return std::string(test.param.name); });

// The order of the packing counts, not only the number of rows.
TEST(GatedAttention, AnotherPackingOfAsManyRowsIsAnotherModel) {
  const auto loss_of = [](Place place) {
    const Variant v{"", AttnGate::headwise, place, false};
    const std::string folder =
        gated_folder({"", AttnGate::headwise, Place::beside_each_group, false})
            .write(scratch_folder());
    const std::string plain = plain_folder(false).write(scratch_folder());
    const auto model = open_model(folder, {.arch_file = description(plain, v)});
    return H5Reference(capture(*model, request_for(kIds))).floats("/run0/logits/loss");
  };
  EXPECT_GT(std::fabs(loss_of(Place::beside_each_head)[3] - loss_of(Place::beside_each_group)[3]),
            1e-3);
}

// A gate a head is a gate a channel whose rows of a head are equal, for whatever is made of it.
TEST(GatedAttention, AGateAHeadIsAGateAChannelOfEqualRows) {
  const Variant heads{"", AttnGate::headwise, Place::apart, false},
      channels{"", AttnGate::elementwise, Place::apart, false};
  const std::string plain = plain_folder(false).write(scratch_folder());
  TinyFolder repeated = gated_folder(channels);
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::vector<float> rows = gate_rows(layer, heads);
    std::vector<float>& all =
        repeated.tensors[fmt::format("model.layers.{}.self_attn.gate_proj.weight", layer)].values;
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = rows[i / (kWidth * kDim) * kWidth + i % kWidth];
  }
  const auto a = gated_model(heads);
  const auto b =
      open_model(repeated.write(scratch_folder()), {.arch_file = description(plain, channels)});
  std::vector<RescaleReport> reports;
  for (const ModelFiles* model : {a.get(), b.get()}) {
    CaptureRequest request = request_for(kIds);
    request.record.maps = request.record.all = true;
    const auto reader = CaptureReader::open(capture(*model, request));
    const WeightRows weights = [model](const std::string& which, int layer,
                                       const std::function<void(const MatrixF&)>& visit) {
      if (which != "o") return;
      MatrixF rows(model->rows(Role::o, layer), model->cols(Role::o, layer));
      model->read_rows(Role::o, layer, 0, rows.rows(), rows.data());
      visit(rows);
    };
    reports.push_back(rescale_report(*reader, "run0", {}, weights));
  }
  ASSERT_EQ(reports[0].heads.size(), static_cast<std::size_t>(kLayers * kHeads));
  for (std::size_t i = 0; i < reports[0].heads.size(); ++i) {
    const auto &x = reports[0].heads[i].through_o, &y = reports[1].heads[i].through_o;
    ASSERT_EQ(x.size(), kIds.size() - 1);
    for (std::size_t q = 0; q < x.size(); ++q) EXPECT_NEAR(x[q], y[q], 1e-5 * std::max(1.0, y[q]));
  }
}

TEST(GatedAttention, AModelDescribesItsOwnGates) {
  const Variant v{"", AttnGate::headwise, Place::beside_each_group, true};
  const std::string folder = gated_folder(v).write(scratch_folder());
  const auto model = open_model(folder);
  const std::string path = scratch_folder() + "/arch.json";
  std::ofstream(path) << arch_to_json(*model);
  const auto again = open_model(folder, {.arch_file = path});
  ASSERT_THAT(again->obstacles(), IsEmpty());
  EXPECT_EQ(model->spec(), again->spec());
  EXPECT_EQ(
      first_difference(capture(*model, request_for(kIds)), capture(*again, request_for(kIds))), "");
}

// What absorption writes has the gates too: the same model.
TEST(GatedAttention, AbsorptionKeepsTheGates) {
  const Variant v{"", AttnGate::headwise, Place::beside_each_group, true};
  const auto model = gated_model(v);
  const std::string folder = scratch_folder() + "/absorbed";
  ASSERT_TRUE(write_absorbed(*model, {{3}, {4.0}, false}, folder, {}));
  const auto absorbed = open_model(folder);
  ASSERT_THAT(absorbed->obstacles(), IsEmpty());
  const auto loss_of = [](const ModelFiles& m) {
    return H5Reference(capture(m, request_for(kIds))).floats("/run0/logits/loss");
  };
  const std::vector<float> a = loss_of(*model), b = loss_of(*absorbed);
  for (std::size_t t = 0; t < a.size(); ++t) EXPECT_NEAR(a[t], b[t], 1e-4);
}

// Rows that fit no gate, and gates that nothing announces.
TEST(GatedAttention, RowsThatDoNotFitAreRefusedWithBothNumbers) {
  const Variant heads{"", AttnGate::headwise, Place::beside_each_group, false};
  const auto obstacles = [&](const std::function<void(TinyFolder&)>& bend) {
    TinyFolder folder = gated_folder(heads);
    bend(folder);
    return open_model(folder.write(scratch_folder()))->obstacles();
  };
  EXPECT_THAT(obstacles([](TinyFolder& f) { f.config.erase("headwise_attn_output_gate"); }),
              Contains(::testing::AllOf(
                  HasSubstr("q_proj.weight has shape [30, 10], expected [24, 10]"),
                  HasSubstr("a gate for each head"), HasSubstr("headwise_attn_output_gate"))));
  EXPECT_THAT(obstacles([](TinyFolder& f) {
                f.config["headwise_attn_output_gate"] = false;
                f.config["elementwise_attn_output_gate"] = true;
              }),
              Contains(::testing::AllOf(HasSubstr("has shape [30, 10], expected [48, 10]"),
                                        HasSubstr("a gate for each head"))));
  EXPECT_THAT(obstacles([](TinyFolder& f) {
                put(f, "model.layers.1.self_attn.q_proj.weight", {29, kWidth},
                    numbers("odd", 29 * kWidth, 1));
              }),
              Contains(HasSubstr("layers.1.self_attn.q_proj.weight has shape [29, 10], expected "
                                 "[30, 10]")));
}

}  // namespace
}  // namespace sinkscope::test
