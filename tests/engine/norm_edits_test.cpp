// SPDX-License-Identifier: GPL-3.0-or-later
// Edits of norms against an independent forward pass in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/engine/captured.h"
#include "tests/engine/what_if_support.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace {

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
  expect_edit(probe("denominator"), HooksOf([&](const ModelFiles& model) {
                const double eps = model.spec().norm_eps;
                return norm_hooks(Role::ln2, 1, {}, [eps](const Rows& x, Rows& y) {
                  for (std::size_t t = 1; t < x.size(); ++t)
                    for (std::size_t j = 0; j < y[t].size(); ++j)
                      if (j != 4)
                        y[t][j] *=
                            std::sqrt((mean_square(x[t]) + eps) / (mean_square(x[t], 4) + eps));
                });
              }));
  // remove_const: zero in the norm, then the output's mean in the unedited norm.
  expect_edit(probe("remove_const"), HooksOf([&](const ModelFiles& model) {
                double output_mean = 0;
                reference_loss(model, kEditedIds,
                               norm_hooks(Role::ln2, 1, {},
                                          [&](const Rows&, Rows& y) { output_mean = mean(y); }));
                return norm_hooks(
                    Role::ln2, 1, [=](Rows& x) { set(x, 0); },
                    [=](const Rows&, Rows& y) { set(y, output_mean); });
              }));
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
  for (const char* with : {"gatednorm", "tensor_gate"})
    expect_edit(std::string(R"({"edit":"norm.replace","norms":["ln1"],"start":"paper","with":")") +
                    with + "\"}",
                replaced([](const Row& x, const Row& gain, double eps) {
                  Row y = reference_rms_norm(x, gain, eps);
                  for (double& v : y) v *= .5;
                  return y;
                }));
}

// A model without norms in front of its halves: those behind them, what they read and put out.
TEST(WhatIfEdits, NormsBehindTheHalves) {
  ReferenceHooks every;
  every.norm = [](Role, int, const Rows& x, const Row& gain, double eps) {
    Rows y;
    for (const Row& row : x) y.push_back(reference_rms_norm(row, Row(gain.size(), 1.0), eps));
    return y;
  };
  expect_edit_on("olmo2", {R"({"edit":"norm.replace","with":"rmsnorm_no_gain"})", every});
  ReferenceHooks one;
  one.norm = [](Role at, int layer, const Rows& x, const Row& gain, double eps) {
    Rows y;
    for (const Row& row : x)
      y.push_back(at == Role::ln2_post && layer == 1 ? row : reference_rms_norm(row, gain, eps));
    return y;
  };
  expect_edit_on("olmo2",
                 {R"({"edit":"norm.replace","with":"none","norms":["blocks.1.ln2_post"]})", one});
  expect_edit_on("olmo2", {R"({"edit":"norm.probe","mode":"mean","dims":[4],"tokens":"rest",
                      "norms":["ln1_post"],"layers":[2]})",
                           norm_hooks(Role::ln1_post, 2,
                                      [](Rows& x) {
                                        double sum = 0;
                                        for (std::size_t t = 1; t < x.size(); ++t) sum += x[t][4];
                                        for (std::size_t t = 1; t < x.size(); ++t)
                                          x[t][4] = sum / static_cast<double>(x.size() - 1);
                                      },
                                      {})});
}

// A file of weights that no two places share, and where it lies.
struct WeightFile {
  SafetensorsBytes bytes;
  std::string path = scratch_folder() + "/edits.safetensors";

  std::vector<float> add(const std::string& name, const std::vector<std::int64_t>& shape,
                         double frequency, double size, double offset = 0) {
    std::int64_t n = 1;
    for (std::int64_t dim : shape) n *= dim;
    std::vector<float> values(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] =
          static_cast<float>(offset + size * std::sin(frequency * static_cast<double>(i) + 1));
    bytes.floats(name, shape, values);
    return values;
  }
};

std::string replace_with(const std::string& with, const std::string& norm, WeightFile& file) {
  file.bytes.write(file.path);
  return R"({"edit":"norm.replace","with":")" + with + R"(","norms":[")" + norm +
         R"("],"weights":")" + file.path + "\"}";
}

TEST(WhatIfEdits, PreAffineOfAFile) {
  expect_edits_of([](const ModelFiles& model) {
    WeightFile file;
    std::vector<Row> pre;
    for (int layer = 0; layer < model.spec().n_layers; ++layer) {
      const auto values = file.add("blocks." + std::to_string(layer) + ".ln1.pre_gain",
                                   {model.spec().d_model}, .7 + layer, .6, 1.2);
      pre.emplace_back(values.begin(), values.end());
    }
    ReferenceHooks hooks;
    hooks.norm = [=](Role at, int layer, const Rows& x, const Row& gain, double eps) {
      Rows y;
      for (Row row : x) {
        if (at == Role::ln1)
          for (std::size_t i = 0; i < row.size(); ++i)
            row[i] *= pre[static_cast<std::size_t>(layer)][i];
        y.push_back(reference_rms_norm(row, gain, eps));
      }
      return y;
    };
    return EditCase{replace_with("preaffine", "ln1", file), hooks};
  });
}

TEST(WhatIfEdits, PreAffineOfOneDimension) {
  expect_edits_of([](const ModelFiles& model) {
    const int dim = model.spec().d_model - 2;
    ReferenceHooks hooks;
    hooks.norm = [=](Role at, int layer, const Rows& x, const Row& gain, double eps) {
      Rows y;
      for (Row row : x) {
        if (at == Role::ln2 && layer == 1) row[static_cast<std::size_t>(dim)] *= 3.5;
        y.push_back(reference_rms_norm(row, gain, eps));
      }
      return y;
    };
    return EditCase{R"({"edit":"norm.replace","with":"preaffine","lambda":3.5,"dims":[)" +
                        std::to_string(dim) + R"(],"norms":["ln2"],"layers":[1]})",
                    hooks};
  });
}

// y ⊙ σ(W_up swish(W_down y)) at blocks.1.ln2; `n_gates` rows of W_up, one for all dimensions or
// one each.
EditCase gated_norm(const ModelFiles& model, const std::string& with, std::int64_t n_gates) {
  const auto D = static_cast<std::size_t>(model.spec().d_model);
  WeightFile file;
  const auto down = file.add("blocks.1.ln2.gate_down", {3, model.spec().d_model}, 1.1, .3);
  const auto up = file.add("blocks.1.ln2.gate_up", {n_gates, 3}, 2.3, .8);
  ReferenceHooks hooks;
  hooks.norm = [=](Role at, int layer, const Rows& x, const Row& gain, double eps) {
    Rows out;
    for (const Row& row : x) {
      Row y = reference_rms_norm(row, gain, eps);
      if (at == Role::ln2 && layer == 1) {
        Row hidden(3, 0.0);
        for (std::size_t r = 0; r < 3; ++r) {
          for (std::size_t i = 0; i < D; ++i) hidden[r] += double{down[r * D + i]} * y[i];
          hidden[r] /= 1 + std::exp(-hidden[r]);
        }
        for (std::size_t i = 0; i < D; ++i) {
          const std::size_t gate = n_gates == 1 ? 0 : i;
          double logit = 0;
          for (std::size_t r = 0; r < 3; ++r) logit += double{up[gate * 3 + r]} * hidden[r];
          y[i] /= 1 + std::exp(-logit);
        }
      }
      out.push_back(y);
    }
    return out;
  };
  return {replace_with(with, "blocks.1.ln2", file), hooks};
}

TEST(WhatIfEdits, GatedNormOfAFile) {
  expect_edits_of(
      [](const ModelFiles& model) { return gated_norm(model, "gatednorm", model.spec().d_model); });
}

TEST(WhatIfEdits, TensorGateOfAFile) {
  expect_edits_of([](const ModelFiles& model) { return gated_norm(model, "tensor_gate", 1); });
}

// z ⊙ σ(W_g n1): one gate a head, or one an element.
EditCase attention_gate(const ModelFiles& model, int width) {
  const int H = model.spec().n_heads, D = model.spec().d_model;
  WeightFile file;
  std::vector<Row> gates;
  for (int layer = 0; layer < model.spec().n_layers; ++layer) {
    const auto values =
        file.add("blocks." + std::to_string(layer) + ".attn.gate", {H * width, D}, .9 + layer, .5);
    gates.emplace_back(values.begin(), values.end());
  }
  file.bytes.write(file.path);
  ReferenceHooks hooks;
  hooks.z = [=](int layer, int head, const Rows& n1, Rows& z) {
    if (head != 1 && head != 2) return;
    for (std::size_t t = 0; t < z.size(); ++t)
      for (std::size_t c = 0; c < z[t].size(); ++c) {
        const std::size_t row = static_cast<std::size_t>(head * width) + (width == 1 ? 0 : c);
        double logit = 0;
        for (std::size_t i = 0; i < n1[t].size(); ++i)
          logit += gates[static_cast<std::size_t>(layer)][row * n1[t].size() + i] * n1[t][i];
        z[t][c] /= 1 + std::exp(-logit);
      }
  };
  return {R"({"edit":"attention.gate","heads":[1,2],"weights":")" + file.path + "\"}", hooks};
}

// FC-61: which variant it is follows from the row count, and rows are heads first, then elements.
TEST(FieldCases, FC61_AttentionGatesAreToldApartByTheirRows) {
  expect_edits_of([](const ModelFiles& model) { return attention_gate(model, 1); });
  expect_edits_of(
      [](const ModelFiles& model) { return attention_gate(model, model.spec().head_dim); });
  const auto model = open_model(random_tiny_model());
  EXPECT_THROW(evaluate(*model, {kEditedIds}, {attention_gate(*model, 2).what_if}), Error);
}

// Σ γ² (tanh(αx) − x/rms)² over all rows, in double.
double dyt_distance(const Rows& x, const Row& gain, double eps, double alpha) {
  double sum = 0;
  for (const Row& row : x) {
    const Row normed = reference_rms_norm(row, Row(row.size(), 1.0), eps);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const double d = gain[i] * (std::tanh(alpha * row[i]) - normed[i]);
      sum += d * d;
    }
  }
  return sum;
}

// By ternary search: slow, and another method than the engine's.
double dyt_alpha(const Rows& x, const Row& gain, double eps) {
  double low = std::log(1e-5), high = std::log(1e3);
  for (int step = 0; step < 100; ++step) {
    const double a = low + (high - low) / 3, b = high - (high - low) / 3;
    if (dyt_distance(x, gain, eps, std::exp(a)) < dyt_distance(x, gain, eps, std::exp(b)))
      high = b;
    else
      low = a;
  }
  return std::exp((low + high) / 2);
}

TEST(FieldCases, FC55_DyTsAlphaIsTheLeastSquaresFitOfTheLayersOwnPairs) {
  ReferenceHooks hooks;
  hooks.norm = [](Role, int, const Rows& x, const Row& gain, double eps) {
    const double alpha = dyt_alpha(x, gain, eps);
    Rows y = x;
    for (Row& row : y)
      for (std::size_t i = 0; i < row.size(); ++i) row[i] = gain[i] * std::tanh(alpha * row[i]);
    return y;
  };
  expect_edit(R"({"edit":"norm.replace","with":"dyt"})", hooks);
}

TEST(FieldCases, FC55_DyTIsFittedToTheNormsOwnInputsAndOutputs) {
  const auto model = open_model(random_tiny_model());
  // A clear difference from the baseline, but far nearer than a norm left out.
  const Evaluation got = evaluate(
      *model, {kEditedIds},
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
