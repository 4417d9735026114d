// SPDX-License-Identifier: GPL-3.0-or-later
// What ties edits to the unedited model, and twins to their runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/capture_reader.h"
#include "tests/engine/captured.h"
#include "tests/engine/what_if_support.h"

namespace sinkscope::test {
namespace {

// The largest difference of a loss under edit `a` from one under edit `b`, or of the model as it
// is.
double largest_move(const std::string& a, const std::string& b = "") {
  const auto model = open_model(random_tiny_model());
  const Evaluation got =
      evaluate(*model, {kEditedIds, {4, 4, 8}}, b.empty() ? std::vector{a} : std::vector{a, b});
  const auto& other = got.loss[b.empty() ? 0 : 2];
  double largest = 0;
  for (std::size_t r = 0; r < 2; ++r)
    for (std::size_t t = 0; t < got.loss[1][r].size(); ++t)
      largest = std::max(largest, std::abs(double{got.loss[1][r][t]} - other[r][t]));
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

// There is no block behind the last one whose input its output would be.
TEST(WhatIfIdentities, AllLayersAreThoseThatAreThere) {
  const auto halved = [](const std::string& layers) {
    return R"({"edit":"residual.set","scale":0.5,"dims":[2],"sites":["hook_resid_pre"])" + layers +
           "}";
  };
  EXPECT_EQ(largest_move(halved(""), halved(R"(,"layers":[0,1])")), 0);
  EXPECT_GT(largest_move(halved("")), 1e-6);
}

TEST(FieldCases, FC56_GatedNormStartsAsTheOriginalOrSaysThatItHalves) {
  EXPECT_EQ(largest_move(R"({"edit":"norm.replace","with":"preaffine"})"), 0);
  EXPECT_EQ(largest_move(R"({"edit":"norm.replace","with":"gatednorm"})"), 0);
  EXPECT_EQ(largest_move(R"({"edit":"norm.replace","with":"tensor_gate"})"), 0);
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
  const auto model = open_model(random_tiny_model());
  CaptureRequest request = request_for(kEditedIds);
  request.record.maps = request.record.all = true;
  RunInput twin = request.runs[0];
  twin.edit_of = 0;
  twin.what_if = R"({"edit":"attention.mask_key","keys":[0],"layers":[0]})";
  request.runs.push_back(twin);
  const auto reader = CaptureReader::open(capture(*model, request));
  ASSERT_THAT(reader->edits("run0"), ::testing::ElementsAre("run0_edit0"));
  EXPECT_EQ(reader->input("run0_edit0").what_if, twin.what_if);
  EXPECT_EQ(reader->text_attribute("run0_edit0", "", "baseline"), "/run0");
  const int T = static_cast<int>(kEditedIds.size()), H = model->spec().n_heads,
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
  ASSERT_EQ(kl.size(), kEditedIds.size());
  EXPECT_EQ(kl[0], 0);  // the first query sees nothing else
  EXPECT_GT(*std::max_element(kl.begin(), kl.end()), 1e-6);
  const auto before = reader->read_f64("run0", "logits/loss"),
             after = reader->read_f64("run0_edit0", "logits/loss"),
             delta = reader->read_f64("run0_edit0", "compare/loss_delta");
  for (std::size_t t = 0; t < delta.size(); ++t) EXPECT_NEAR(delta[t], after[t] - before[t], 1e-6);
}

// FC-58: an outlier that is cut where one looks may grow where nobody does: the twin has every tap
// that its run has, and one more table beside it.
TEST(FieldCases, FC58_EveryTapIsThereBeforeAndAfter) {
  const auto model = open_model(random_tiny_model());
  CaptureRequest request = request_for(kEditedIds);
  request.record.all = request.record.maps = true;
  RunInput twin = request.runs[0];
  twin.edit_of = 0;
  twin.what_if = R"({"edit":"residual.clip","limit":0.2,"sites":["blocks.0.hook_resid_pre"]})";
  request.runs.push_back(twin);
  const auto reader = CaptureReader::open(capture(*model, request));
  int n = 0;
  const std::function<void(const std::string&)> walk = [&](const std::string& group) {
    for (const std::string& name : reader->children("run0", group)) {
      const std::string path = group.empty() ? name : group + "/" + name;
      ASSERT_TRUE(reader->has("run0_edit0", path)) << path;
      if (!reader->is_dataset("run0", path)) {
        walk(path);
        continue;
      }
      EXPECT_EQ(reader->dims("run0_edit0", path), reader->dims("run0", path)) << path;
      ++n;
    }
  };
  walk("");
  EXPECT_GT(n, 100);
  const auto peak = [&](const std::string& run, std::int64_t layer) {
    const auto T = static_cast<std::int64_t>(kEditedIds.size());
    const auto values =
        reader->read_f64(run, "stats/hook_resid_post/token/max_abs", {layer, 0}, {1, T});
    return *std::max_element(values.begin(), values.end());
  };
  EXPECT_NE(peak("run0_edit0", 1), peak("run0", 1));  // two blocks behind the edit
}

// Query heads 0 and 1 share a kv head: scaling one of them leaves the pair without one norm.
TEST(WhatIfEdits, ValueNormsOfAGroupThatIsEditedInPart) {
  const auto model = open_model(random_tiny_model());
  CaptureRequest request = request_for(kEditedIds);
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

}  // namespace
}  // namespace sinkscope::test
