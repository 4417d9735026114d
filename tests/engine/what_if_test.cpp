// SPDX-License-Identifier: GPL-3.0-or-later
// Every kind of edit against an independent forward pass in double, and the identities that tie
// edits to the unedited model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/capture_reader.h"
#include "core/error.h"
#include "tests/engine/captured.h"
#include "tests/engine/reference_model.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/shared_files.h"
#include "tests/support/tiny_folder.h"

namespace sinkscope::test {
namespace {

using ::testing::HasSubstr;

const std::vector<int> kIds = {3, 17, 5, 30, 5, 9, 21, 2, 11};

// Random weights, so that every edit moves something by a measurable amount.
std::string tiny_model() {
  static const std::string folder = [] {
    TinyFolder tiny = tiny_folder();
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (auto& [name, tensor] : tiny.tensors)
      for (float& value : tensor.values)
        value = name.find("norm") != std::string::npos ? 1 + .3f * normal(random)
                                                       : .5f * normal(random);
    return tiny.write(scratch_folder());
  }();
  return folder;
}

Evaluation evaluate(const ModelFiles& model, const std::vector<std::vector<int>>& prompts,
                    const std::vector<std::string>& what_ifs) {
  EvaluateRequest request;
  request.device = "cpu";
  request.threads = test_threads();
  for (const auto& ids : prompts) {
    RunInput run;
    run.token_ids = ids;
    request.runs.push_back(run);
  }
  for (const std::string& text : what_ifs) request.variants.push_back(parse_what_if(text));
  Progress progress;
  return *engine().evaluate(model, request, {std::stop_token(), progress});
}

// The edited loss must be the reference's and, so that the test can fail, not the baseline's.
void expect_edit(const std::string& what_if, const ReferenceHooks& hooks) {
  const auto model = open_model(tiny_model());
  const Evaluation got = evaluate(*model, {kIds}, {what_if});
  const Row want = reference_loss(*model, kIds, hooks);
  const Row baseline = reference_loss(*model, kIds);
  double moved = 0;
  for (std::size_t t = 0; t < want.size(); ++t) {
    EXPECT_NEAR(got.loss[0][0][t], baseline[t], 1e-5) << what_if;
    EXPECT_NEAR(got.loss[1][0][t], want[t], 1e-5 * std::max(1.0, want[t])) << what_if << ' ' << t;
    moved = std::max(moved, std::abs(want[t] - baseline[t]));
  }
  EXPECT_GT(moved, 1e-4) << what_if << ": the edit changes nothing here";
}

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

// A norm whose rows are changed before, and its output after; `rows` are the edited positions.
ReferenceHooks norm_hooks(Role role, int layer, const std::function<void(Rows& x)>& before,
                          const std::function<void(const Rows& x, Rows& y)>& after) {
  ReferenceHooks hooks;
  hooks.norm = [=](Role at, int block, const Rows& x, const Row& gain, double eps) {
    Rows seen = x;
    const bool here = at == role && block == layer;
    if (here && before) before(seen);
    Rows y;
    for (const Row& row : seen) y.push_back(reference_rms_norm(row, gain, eps));
    if (here && after) after(x, y);
    return y;
  };
  return hooks;
}

double mean_square(const Row& x, int without = -1) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    sum += static_cast<int>(i) == without ? 0 : x[i] * x[i];
  return sum / static_cast<double>(x.size());
}

TEST(WhatIfEdits, NormProbes) {
  const std::string where = R"(,"dims":[4],"tokens":"rest","norms":["ln2"],"layers":[1]})";
  const auto probe = [&](const std::string& mode) {
    return R"({"edit":"norm.probe","mode":")" + mode + '"' + where;
  };
  const auto mean = [](const Rows& x) {
    double sum = 0;
    for (std::size_t t = 1; t < x.size(); ++t) sum += x[t][4];
    return sum / static_cast<double>(x.size() - 1);
  };
  const auto set = [](Rows& x, double value) {
    for (std::size_t t = 1; t < x.size(); ++t) x[t][4] = value;
  };
  expect_edit(probe("zero"), norm_hooks(Role::ln2, 1, [&](Rows& x) { set(x, 0); }, {}));
  expect_edit(probe("mean"), norm_hooks(Role::ln2, 1, [&](Rows& x) { set(x, mean(x)); }, {}));
  expect_edit(probe("direct"),
              norm_hooks(Role::ln2, 1, {}, [&](const Rows&, Rows& y) { set(y, 0); }));
  expect_edit(probe("direct_const"),
              norm_hooks(Role::ln2, 1, {}, [&](const Rows&, Rows& y) { set(y, mean(y)); }));
  expect_edit(R"({"edit":"norm.probe","mode":"clamp","tau":0.2)" + where,
              norm_hooks(Role::ln2, 1,
                         [](Rows& x) {
                           for (std::size_t t = 1; t < x.size(); ++t) {
                             const double limit = .2 * std::sqrt(mean_square(x[t], 4));
                             x[t][4] = std::clamp(x[t][4], -limit, limit);
                           }
                         },
                         {}));
  const double eps = open_model(tiny_model())->spec().norm_eps;
  expect_edit(probe("denominator"), norm_hooks(Role::ln2, 1, {}, [&](const Rows& x, Rows& y) {
                for (std::size_t t = 1; t < x.size(); ++t)
                  for (std::size_t j = 0; j < y[t].size(); ++j)
                    if (j != 4)
                      y[t][j] *=
                          std::sqrt((mean_square(x[t]) + eps) / (mean_square(x[t], 4) + eps));
              }));
  // remove_const: zero in the norm, then the output's mean in the unedited norm.
  const auto model = open_model(tiny_model());
  double output_mean = 0;
  reference_loss(*model, kIds, norm_hooks(Role::ln2, 1, {}, [&](const Rows&, Rows& y) {
    output_mean = mean(y);
  }));
  expect_edit(probe("remove_const"), norm_hooks(
                                         Role::ln2, 1, [&](Rows& x) { set(x, 0); },
                                         [&](const Rows&, Rows& y) { set(y, output_mean); }));
}

TEST(WhatIfEdits, NormReplacements) {
  const auto replaced = [](const std::function<Row(const Row&, const Row&, double)>& norm) {
    ReferenceHooks hooks;
    hooks.norm = [=](Role at, int, const Rows& x, const Row& gain, double eps) {
      Rows y;
      for (const Row& row : x)
        y.push_back(at == Role::ln1 ? norm(row, gain, eps) : reference_rms_norm(row, gain, eps));
      return y;
    };
    return hooks;
  };
  const auto edit = [](const std::string& with) {
    return R"({"edit":"norm.replace","with":")" + with + R"(","norms":["ln1"]})";
  };
  expect_edit(edit("none"), replaced([](const Row& x, const Row&, double) { return x; }));
  expect_edit(edit("layernorm"), replaced([](const Row& x, const Row& gain, double eps) {
                Row y = x;
                double mean = 0;
                for (double v : x) mean += v / static_cast<double>(x.size());
                for (double& v : y) v -= mean;
                return reference_rms_norm(y, gain, eps);
              }));
  expect_edit(edit("rmsnorm_no_gain"), replaced([](const Row& x, const Row& gain, double eps) {
                return reference_rms_norm(x, Row(gain.size(), 1.0), eps);
              }));
  expect_edit(R"({"edit":"norm.replace","with":"gatednorm","start":"paper","norms":["ln1"]})",
              replaced([](const Row& x, const Row& gain, double eps) {
                Row y = reference_rms_norm(x, gain, eps);
                for (double& v : y) v *= .5;
                return y;
              }));
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

// Losses of edits that change nothing, or the same as another edit, to the bit or nearly.
double largest_move(const std::string& a, const std::string& b = "[]") {
  const auto model = open_model(tiny_model());
  const Evaluation got = evaluate(*model, {kIds, {4, 4, 8}}, {a, b});
  double largest = 0;
  for (std::size_t r = 0; r < 2; ++r)
    for (std::size_t t = 0; t < got.loss[1][r].size(); ++t)
      largest = std::max(largest, std::abs(double{got.loss[1][r][t]} - got.loss[2][r][t]));
  return largest;
}

TEST(WhatIfIdentities, WhatChangesNothingChangesNoBit) {
  EXPECT_EQ(largest_move("[]"), 0);
  EXPECT_EQ(largest_move(R"({"edit":"residual.clip","limit":1e6})"), 0);
  EXPECT_EQ(largest_move(R"({"edit":"norm.replace","with":"preaffine"})"), 0);
  EXPECT_EQ(largest_move(R"({"edit":"norm.replace","with":"rmsnorm"})"), 0);
  EXPECT_EQ(largest_move(R"({"edit":"attention.gate","value":1})"), 0);
  EXPECT_EQ(largest_move(R"({"edit":"mlp.activation","kind":"silu"})"), 0);
}

TEST(FieldCases, FC56_GatedNormStartsAsTheOriginalOrSaysThatItHalves) {
  EXPECT_EQ(largest_move(R"({"edit":"norm.replace","with":"gatednorm"})"), 0);
  EXPECT_GT(largest_move(R"({"edit":"norm.replace","with":"gatednorm","start":"paper",
                             "norms":["ln1"]})"),
            1e-4);
}

TEST(WhatIfIdentities, SinkLogitsMeetSoftmaxAndSoftmax1) {
  const auto sink = [](const std::string& b) {
    return R"({"edit":"attention.normalizer","kind":"sink_logit","b":)" + b + "}";
  };
  const std::string softmax1 = R"({"edit":"attention.normalizer","kind":"softmax1"})";
  EXPECT_LT(largest_move(sink("-1e30")), 1e-6);
  EXPECT_LT(largest_move(sink("0"), softmax1), 1e-7);
  EXPECT_GT(largest_move(softmax1), 1e-4);
}

// The twin's maps and norms come out of the file like any run's.
TEST(WhatIfIdentities, DroppedSinkGivesTheOutputsThatTheMapsPredict) {
  const auto model = open_model(tiny_model());
  CaptureRequest request = request_for(kIds);
  request.record.maps = request.record.all = true;
  RunInput twin = request.runs[0];
  twin.edit_of = 0;
  twin.what_if = R"({"edit":"attention.mask_key","keys":[0],"layers":[0]})";
  request.runs.push_back(twin);
  const auto reader = CaptureReader::open(capture(*model, request));
  ASSERT_THAT(reader->edits("run0"), ::testing::ElementsAre("run0_edit0"));
  EXPECT_EQ(reader->input("run0_edit0").what_if, twin.what_if);
  EXPECT_EQ(reader->text_attribute("run0_edit0", "", "baseline"), "/run0");
  const int T = static_cast<int>(kIds.size()), H = model->spec().n_heads,
            d = model->spec().head_dim, G = model->spec().n_kv_heads;
  const auto p = reader->read_f64("run0", "attention/pattern", {0, 0, 0, 0}, {1, H, T, T});
  const auto q = reader->read_f64("run0_edit0", "attention/pattern", {0, 0, 0, 0}, {1, H, T, T});
  const auto v = reader->read_f64("run0", "taps/attn.hook_v/values", {0, 0, 0, 0}, {1, G, T, d});
  const auto o = reader->read_f64("run0", "taps/attn.hook_z/values", {0, 0, 0, 0}, {1, H, T, d});
  const auto without =
      reader->read_f64("run0_edit0", "taps/attn.hook_z/values", {0, 0, 0, 0}, {1, H, T, d});
  for (int h = 0; h < H; ++h)
    for (int i = 1; i < T; ++i) {
      const auto row = static_cast<std::size_t>((h * T + i) * T);
      const double ps = p[row];
      EXPECT_EQ(q[row], 0);
      // float32 p_s near 1 leaves few digits of 1 − p_s.
      const double lost = 1 / (1 - ps);
      EXPECT_NEAR(q[row + 1], p[row + 1] * lost, 1e-6 * lost);
      for (int c = 0; c < d; ++c) {
        const auto at = static_cast<std::size_t>((h * T + i) * d + c);
        const double vs = v[static_cast<std::size_t>((h / (H / G)) * T * d + c)];
        EXPECT_NEAR(without[at], (o[at] - ps * vs) * lost,
                    1e-6 * lost * std::max(1.0, std::abs(vs)))
            << h << ' ' << i << ' ' << c;
      }
    }
  // KL and loss differences stand beside the twin.
  const auto kl = reader->read_f64("run0_edit0", "compare/kl");
  ASSERT_EQ(kl.size(), kIds.size());
  EXPECT_EQ(kl[0], 0);  // the first query sees nothing else
  EXPECT_GT(*std::max_element(kl.begin(), kl.end()), 1e-6);
  const auto before = reader->read_f64("run0", "logits/loss"),
             after = reader->read_f64("run0_edit0", "logits/loss"),
             delta = reader->read_f64("run0_edit0", "compare/loss_delta");
  for (std::size_t t = 0; t < delta.size(); ++t) EXPECT_NEAR(delta[t], after[t] - before[t], 1e-6);
}

TEST(WhatIfEdits, WeightsOfAFile) {
  const auto model = open_model(tiny_model());
  const int D = model->spec().d_model;
  SafetensorsBytes file;
  std::vector<float> pre(static_cast<std::size_t>(D));
  for (int i = 0; i < D; ++i) pre[static_cast<std::size_t>(i)] = .5f + .2f * static_cast<float>(i);
  for (const char* name : {"blocks.0.ln1.pre_gain", "blocks.1.ln1.pre_gain"})
    file.floats(name, {D}, pre);
  std::vector<float> down(static_cast<std::size_t>(3 * D)), up(down.size());
  for (std::size_t i = 0; i < down.size(); ++i) {
    down[i] = .3f * std::sin(static_cast<float>(i));
    up[i] = .4f * std::cos(static_cast<float>(2 * i));
  }
  file.floats("blocks.1.ln2.gate_down", {3, D}, down);
  file.floats("blocks.1.ln2.gate_up", {D, 3}, up);
  const std::string path = scratch_folder() + "/edits.safetensors";
  file.write(path);
  ReferenceHooks hooks;
  hooks.norm = [&](Role at, int, const Rows& x, const Row& gain, double eps) {
    Rows y;
    for (Row row : x) {
      if (at == Role::ln1)
        for (std::size_t i = 0; i < row.size(); ++i) row[i] *= double{pre[i]};
      y.push_back(reference_rms_norm(row, gain, eps));
    }
    return y;
  };
  expect_edit(
      R"({"edit":"norm.replace","with":"preaffine","norms":["ln1"],"weights":")" + path + "\"}",
      hooks);
  hooks.norm = [&](Role at, int layer, const Rows& x, const Row& gain, double eps) {
    Rows out;
    for (const Row& row : x) {
      Row y = reference_rms_norm(row, gain, eps);
      if (at == Role::ln2 && layer == 1) {
        Row hidden(3, 0.0);
        for (std::size_t r = 0; r < 3; ++r) {
          for (std::size_t i = 0; i < y.size(); ++i)
            hidden[r] += double{down[r * y.size() + i]} * y[i];
          hidden[r] /= 1 + std::exp(-hidden[r]);
        }
        for (std::size_t i = 0; i < y.size(); ++i) {
          double logit = 0;
          for (std::size_t r = 0; r < 3; ++r) logit += double{up[i * 3 + r]} * hidden[r];
          y[i] /= 1 + std::exp(-logit);
        }
      }
      out.push_back(y);
    }
    return out;
  };
  expect_edit(R"({"edit":"norm.replace","with":"gatednorm","norms":["blocks.1.ln2"],"weights":")" +
                  path + "\"}",
              hooks);
}

// Query heads 0 and 1 share a kv head: scaling one of them leaves the pair without one norm.
TEST(WhatIfEdits, ValueNormsOfAGroupThatIsEditedInPart) {
  const auto model = open_model(tiny_model());
  CaptureRequest request = request_for(kIds);
  for (const char* heads : {"[1]", "[0,1]"}) {
    RunInput twin = request.runs[0];
    twin.edit_of = 0;
    twin.what_if =
        std::string(R"({"edit":"attention.value","tokens":[0],"scale":0,"heads":)") + heads + "}";
    request.runs.push_back(twin);
  }
  const auto reader = CaptureReader::open(capture(*model, request));
  const auto norm = [&](const char* run, int kv, int token) {
    return reader->read_f64(run, "attention/value_norm", {0, kv, token}, {1, 1, 1})[0];
  };
  EXPECT_TRUE(std::isnan(norm("run0_edit0", 0, 0)));
  EXPECT_EQ(norm("run0_edit1", 0, 0), 0);
  EXPECT_NEAR(norm("run0_edit0", 0, 1), norm("run0", 0, 1), 1e-6);
  EXPECT_NEAR(norm("run0_edit1", 1, 0), norm("run0", 1, 0), 1e-6);
}

TEST(WhatIfEdits, WhatCannotTakeEffectIsAnError) {
  const auto model = open_model(tiny_model());
  const auto message = [&](const std::string& what_if) {
    try {
      evaluate(*model, {kIds}, {what_if});
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
  EXPECT_THAT(message(R"({"edit":"attention.mask_key","keys":[0,99]})"), HasSubstr("no position"));
  EXPECT_THAT(message(R"({"edit":"attention.value","scale":0,"tokens":"ids:31-31"})"),
              HasSubstr("no position"));
  EXPECT_THAT(message(R"({"edit":"attention.normalizer","kind":"sink_logit","b":"checkpoint"})"),
              HasSubstr("no sink logits"));
  EXPECT_THAT(
      message(R"({"edit":"norm.replace","with":"preaffine","weights":"/no/such.safetensors"})"),
      HasSubstr("/no/such.safetensors"));
}

TEST(FieldCases, FC55_DyTIsFittedToTheNormsOwnInputsAndOutputs) {
  const auto model = open_model(tiny_model());
  // A clear difference from the baseline, but far nearer than a norm left out.
  const Evaluation got = evaluate(
      *model, {kIds},
      {R"({"edit":"norm.replace","with":"dyt"})", R"({"edit":"norm.replace","with":"none"})"});
  const auto mean = [](const std::vector<float>& kl) {
    double sum = 0;
    for (float value : kl) sum += value;
    return sum / static_cast<double>(kl.size());
  };
  EXPECT_GT(mean(got.kl[0][0]), 1e-7);
  EXPECT_LT(mean(got.kl[0][0]), mean(got.kl[1][0]));
}

}  // namespace
}  // namespace sinkscope::test
