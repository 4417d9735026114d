// SPDX-License-Identifier: GPL-3.0-or-later
// Edits of the stream, of attention and of the MLP against an independent forward pass in double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "tests/engine/captured.h"
#include "tests/engine/what_if_support.h"

namespace sinkscope::test {
namespace {

using ::testing::HasSubstr;

TEST(WhatIfEdits, ResidualClip) {
  ReferenceHooks hooks;
  hooks.residual = [](Site site, int layer, Rows& x) {
    if (site != Site::resid_post || layer != 0) return;
    for (std::size_t t = 1; t < x.size(); ++t)
      for (double& h : x[t]) h = std::clamp(h, -.3, .3);
  };
  expect_edit(R"({"edit":"residual.clip","limit":0.3,"sites":["hook_resid_post"],"layers":[0],
                  "tokens":"rest"})",
              hooks);
}

TEST(WhatIfEdits, ResidPreOfALaterBlockIsThePostOfTheOneBefore) {
  ReferenceHooks hooks;
  hooks.residual = [](Site site, int layer, Rows& x) {
    if (site == Site::resid_post && layer == 0)
      for (Row& row : x) row[2] *= 3;
  };
  expect_edit(R"({"edit":"residual.set","scale":3,"dims":[2],"sites":["blocks.1.hook_resid_pre"]})",
              hooks);
}

TEST(WhatIfEdits, ResidualSetToAValueAndToItsMean) {
  ReferenceHooks hooks;
  hooks.residual = [](Site site, int layer, Rows& x) {
    if (site == Site::resid_mid && layer == 1) x[0][3] = x[0][5] = 2.5;
  };
  expect_edit(R"({"edit":"residual.set","value":2.5,"dims":[3,5],"tokens":"first",
                  "sites":["blocks.1.hook_resid_mid"]})",
              hooks);
  hooks.residual = [](Site site, int layer, Rows& x) {
    if (site != Site::resid_pre || layer != 0) return;
    double sum = 0;
    for (const Row& row : x) sum += row[1];
    for (Row& row : x) row[1] = sum / static_cast<double>(x.size());
  };
  expect_edit(R"({"edit":"residual.set","value":"mean","dims":[1],
                  "sites":["blocks.0.hook_resid_pre"]})",
              hooks);
}

TEST(WhatIfEdits, AttentionNormalizers) {
  const auto swapped = [](const Normalizer& normalizer) {
    ReferenceHooks hooks;
    hooks.weights = [=](int layer, int head, int, const Row& scores) {
      return layer == 1 && (head == 1 || head == 3) ? normalize(normalizer, scores).p
                                                    : reference_softmax(scores);
    };
    return hooks;
  };
  for (const char* kind : {"softmax1", "sparsemax", "entmax15", "sigmoid"})
    expect_edit(std::string(R"({"edit":"attention.normalizer","kind":")") + kind +
                    R"(","layers":[1],"heads":[1,3]})",
                swapped({*normalizer_named(kind)}));
  expect_edit(R"({"edit":"attention.normalizer","kind":"clipped","gamma":-0.05,"zeta":1.01,
                  "layers":[1],"heads":[1,3]})",
              swapped({.kind = NormalizerKind::clipped, .gamma = -.05, .zeta = 1.01}));
  ReferenceHooks sinks;
  sinks.weights = [](int layer, int head, int, const Row& scores) {
    const double b = head == 1 ? .5 : -1.25;
    return layer == 1 && (head == 1 || head == 3)
               ? normalize({.kind = NormalizerKind::sink_logit, .sink_logit = b}, scores).p
               : reference_softmax(scores);
  };
  expect_edit(R"({"edit":"attention.normalizer","kind":"sink_logit","b":[0.5,-1.25],
                  "layers":[1],"heads":[1,3]})",
              sinks);
}

TEST(WhatIfEdits, MaskedKeysValuesGatesAndActivations) {
  ReferenceHooks hooks;
  hooks.weights = [](int, int head, int i, const Row& scores) {
    Row p = reference_softmax(scores);
    if (head != 2) return p;
    for (int key : {0, 3})
      if (key < i) p[static_cast<std::size_t>(key)] = 0;  // its own query keeps it
    return p;
  };
  expect_edit(R"({"edit":"attention.mask_key","keys":[0,3],"heads":[2],"renormalize":false})",
              hooks);
  hooks.weights = [](int, int head, int i, const Row& scores) {
    Row seen = scores;
    if (head == 2 && i > 0) seen[0] = -1e300;
    return reference_softmax(seen);
  };
  expect_edit(R"({"edit":"attention.mask_key","keys":[0],"heads":[2]})", hooks);
  ReferenceHooks values;
  values.values = [](int layer, int head, Rows& v) {
    if (layer == 0 && head == 3)
      for (double& x : v[0]) x *= -2;
  };
  expect_edit(R"({"edit":"attention.value","tokens":[0],"scale":-2,"layers":[0],"heads":[3]})",
              values);
  ReferenceHooks gate;
  gate.z = [](int, int head, const Rows&, Rows& z) {
    if (head == 1)
      for (Row& row : z)
        for (double& x : row) x *= .25;
  };
  expect_edit(R"({"edit":"attention.gate","value":0.25,"heads":[1]})", gate);
  const std::vector<std::pair<std::string, std::function<double(double)>>> activations = {
      {"sigmoid", [](double g) { return 1 / (1 + std::exp(-g)); }},
      {"relu", [](double g) { return std::max(0.0, g); }},
      {"gelu", [](double g) { return .5 * g * (1 + std::erf(g / std::sqrt(2.0))); }}};
  for (const auto& [kind, function] : activations) {
    ReferenceHooks act;
    act.activation = function;
    expect_edit(R"({"edit":"mlp.activation","kind":")" + kind + "\"}", act);
  }
}

TEST(WhatIfEdits, WhatCannotTakeEffectIsAnError) {
  const auto model = open_model(random_tiny_model());
  const auto message = [&](const std::string& what_if) {
    try {
      evaluate(*model, {kEditedIds}, {what_if});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    ADD_FAILURE() << "accepted " << what_if;
    return std::string();
  };
  EXPECT_THAT(message(R"({"edit":"residual.clip","limit":1,"layers":[2]})"),
              HasSubstr("2 does not exist"));
  EXPECT_THAT(message(R"({"edit":"residual.clip","limit":1,"sites":["hook_mlp_out"]})"),
              HasSubstr("hook_mlp_out"));
  EXPECT_THAT(message(R"({"edit":"norm.probe","mode":"zero","dims":[8]})"), HasSubstr("dims"));
  EXPECT_THAT(message(R"({"edit":"norm.probe","mode":"zero","dims":[1],"norms":["ln3"]})"),
              HasSubstr("ln3"));
  EXPECT_THAT(message(R"({"edit":"attention.gate","value":0,"heads":[4]})"), HasSubstr("heads"));
  EXPECT_THAT(message(R"({"edit":"residual.clip","limit":1,"layers":[0],
                          "sites":["blocks.1.hook_resid_post"]})"),
              HasSubstr("no place in common"));
  EXPECT_THAT(message(R"({"edit":"norm.probe","mode":"zero","dims":[1],"layers":[0],
                          "norms":["blocks.1.ln1"]})"),
              HasSubstr("no place in common"));
  EXPECT_THAT(message(R"({"edit":"attention.mask_key","keys":[0,99]})"),
              HasSubstr("key 99 is in no prompt"));
  const std::string last = std::to_string(kEditedIds.size() - 1);
  EXPECT_THAT(message(R"({"edit":"attention.mask_key","keys":[)" + last + "]}"),
              HasSubstr("key " + last + " is seen by no other query"));
  EXPECT_THAT(message(R"({"edit":"attention.value","scale":0,"tokens":[0,99]})"),
              HasSubstr("position 99 is in no prompt"));
  EXPECT_THAT(message(R"([{"edit":"attention.mask_key","keys":[0],"heads":[1,3]},
                          {"edit":"attention.mask_key","keys":[1],"heads":[3],
                           "renormalize":false}])"),
              HasSubstr("layer 0, head 3"));
  EXPECT_THAT(message(R"({"edit":"residual.set","value":"mean","dims":[2],"tokens":"first"})"),
              HasSubstr("a single position"));
  EXPECT_THAT(message(R"({"edit":"residual.clip","limit":1,"layers":[0],
                          "sites":["blocks.0.hook_resid_post","blocks.1.hook_resid_post"]})"),
              HasSubstr("blocks.1.hook_resid_post"));
  EXPECT_THAT(message(R"({"edit":"norm.probe","mode":"zero","dims":[1],"layers":[0],
                          "norms":["ln_final"]})"),
              HasSubstr("layer 0"));
  EXPECT_THAT(message(R"({"edit":"attention.value","scale":0,"tokens":"ids:31-31"})"),
              HasSubstr("no position"));
  EXPECT_THAT(message(R"({"edit":"attention.normalizer","kind":"sink_logit","b":"checkpoint"})"),
              HasSubstr("no sink logits"));
  EXPECT_THAT(
      message(R"({"edit":"norm.replace","with":"preaffine","weights":"/no/such.safetensors"})"),
      HasSubstr("/no/such.safetensors"));
}

}  // namespace
}  // namespace sinkscope::test
