// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/error.h"
#include "core/snapshot/preview_snapshot.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;

WhatIf edits(const std::string& text) { return parse_what_if(text); }

// The vector of science's A.1: h = (12, 3, 4), gains (.1, 1, .8), no ε; four tokens, the last one
// without an outlier.
NormInput small_norm() {
  NormInput norm;
  norm.role = "ln2";
  norm.layer = 3;
  norm.sites = {"blocks.3.hook_resid_mid"};
  norm.gain = {0.1F, 1.0F, 0.8F};
  norm.token_ids = {7, 8, 9, 8};
  norm.x.resize(4, 3);
  norm.x << 12, 3, 4, 12, 3, 4, -24, 6, 8, 1, 3, 4;
  return norm;
}

TEST(NormPreview, AsItIsGivesTheKnownOutput) {
  const MatrixF y = norm_output(small_norm());
  EXPECT_NEAR(y(0, 0), 0.159882, 1e-6);
  EXPECT_NEAR(y(0, 1), 0.399704, 1e-6);
  EXPECT_NEAR(y(0, 2), 0.426351, 1e-6);
  EXPECT_NEAR(row_rms(y)[0], 0.349810, 1e-6);
}

TEST(NormPreview, ClippingAt4MakesTheOthersGrowByTheKnownFactor) {
  const NormInput norm = small_norm();
  const MatrixF y = norm_output(norm);
  const MatrixF clipped =
      previewed_norm(norm, edits(R"({"edit":"residual.clip","limit":4,"tokens":"first"})"));
  EXPECT_NEAR(clipped(0, 1) / y(0, 1), 2.030259, 1e-6);
  EXPECT_NEAR(clipped(0, 2) / y(0, 2), 2.030259, 1e-6);
  EXPECT_EQ(clipped.bottomRows(3), y.bottomRows(3)) << "other tokens are not edited";
}

TEST(NormPreview, ProbesPartTheOutlierFromTheOthers) {
  const NormInput norm = small_norm();
  const MatrixF y = norm_output(norm);
  const auto probed = [&](const char* mode) {
    return previewed_norm(
        norm, edits(std::string(R"({"edit":"norm.probe","dims":[0],"mode":")") + mode + R"("})"));
  };
  const double growth = 13.0 / 5.0;  // 1/α
  const MatrixF zero = probed("zero");
  EXPECT_EQ(zero(0, 0), 0);
  EXPECT_NEAR(zero(0, 1) / y(0, 1), growth, 1e-6);
  const MatrixF denominator = probed("denominator");
  EXPECT_EQ(denominator(0, 0), y(0, 0));
  EXPECT_NEAR(denominator(2, 2) / y(2, 2), growth, 1e-6);
  const MatrixF direct = probed("direct");
  EXPECT_EQ(direct(0, 0), 0);
  EXPECT_EQ(direct.rightCols(2), y.rightCols(2));
  // E y_0 over all four tokens.
  const MatrixF constant = probed("direct_const");
  EXPECT_NEAR(constant(1, 0), y.col(0).mean(), 1e-6);
  const MatrixF both = probed("remove_const");
  EXPECT_NEAR(both(1, 0), y.col(0).mean(), 1e-6);
  EXPECT_NEAR(both(1, 1), zero(1, 1), 1e-7);
  // E x_0 = (12 + 12 − 24 + 1) / 4.
  const MatrixF mean = probed("mean");
  const double x0 = 0.25;
  EXPECT_NEAR(mean(0, 1), 3 / std::sqrt((x0 * x0 + 25) / 3), 1e-6);
}

TEST(NormPreview, AClampIsMeasuredInTheOthersRms) {
  const NormInput norm = small_norm();
  const MatrixF y =
      previewed_norm(norm, edits(R"({"edit":"norm.probe","mode":"clamp","tau":0.5,"dims":[0]})"));
  const double limit = 0.5 * std::sqrt(25.0 / 3);
  EXPECT_NEAR(y(0, 0), 0.1 * limit / std::sqrt((limit * limit + 25) / 3), 1e-6);
  EXPECT_NEAR(y(2, 0), -0.1 * 2 * limit / std::sqrt((4 * limit * limit + 100) / 3), 1e-6);
}

TEST(NormPreview, MeansOfTheStreamAreOverTheEditedTokens) {
  const NormInput norm = small_norm();
  const MatrixF y = previewed_norm(
      norm, edits(R"({"edit":"residual.set","value":"mean","dims":[0],"tokens":"rest"})"));
  const double mean = (12.0 - 24 + 1) / 3;
  EXPECT_NEAR(y(3, 1), 3 / std::sqrt((mean * mean + 25) / 3), 1e-6);
  EXPECT_EQ(y.row(0), norm_output(norm).row(0));
}

TEST(NormPreview, AStateOfTwoNamesIsEditedOnceAndInTheOrderOfTheEdits) {
  NormInput norm = small_norm();
  norm.role = "ln1";
  norm.sites = {"blocks.2.hook_resid_post", "blocks.3.hook_resid_pre"};
  NormInput halved = norm;
  halved.x.col(0) *= 0.5F;
  EXPECT_EQ(previewed_norm(norm, edits(R"({"edit":"residual.set","scale":0.5,"dims":[0],
                                           "sites":["hook_resid_pre","hook_resid_post"]})")),
            norm_output(halved));
  // 12 and −24 become 6 and −12, then 6 and −10.
  halved.x(2, 0) = -10;
  EXPECT_EQ(previewed_norm(norm, edits(R"([{"edit":"residual.set","scale":0.5,"dims":[0],
                                            "sites":["hook_resid_pre"]},
                                           {"edit":"residual.clip","limit":10,
                                            "sites":["hook_resid_post"]}])")),
            norm_output(halved));
}

TEST(NormPreview, WhatChangesNothingIsTheSameBitForBit) {
  const NormInput norm = small_norm();
  const MatrixF y = norm_output(norm);
  for (const char* text : {R"([])", R"({"edit":"residual.clip","limit":24})",
                           R"({"edit":"norm.replace","with":"gatednorm"})",
                           R"({"edit":"norm.replace","with":"preaffine"})",
                           R"({"edit":"norm.replace","with":"rmsnorm"})",
                           R"({"edit":"residual.clip","limit":1,"layers":[2]})",
                           R"({"edit":"residual.clip","limit":1,"sites":["hook_resid_post"]})",
                           R"({"edit":"norm.probe","mode":"zero","dims":[0],"norms":["ln1"]})"})
    EXPECT_EQ(previewed_norm(norm, edits(text)), y) << text;
  const MatrixF halved =
      previewed_norm(norm, edits(R"({"edit":"norm.replace","with":"gatednorm","start":"paper"})"));
  EXPECT_EQ(halved, MatrixF(y * 0.5F));
}

TEST(NormPreview, APreAffineIsPartOfWhatTheNormSees) {
  NormInput norm = small_norm();
  const MatrixF y = norm_output(norm);
  norm.pre_gain = {12, 1, 1};
  norm.x.col(0) /= 12;
  EXPECT_TRUE(norm_output(norm).isApprox(y, 1e-6F));
}

TEST(NormPreview, APreAffineOfOneDimensionChangesTheOthersByTheRootMeanSquareAlone) {
  NormInput norm = small_norm();
  const MatrixF y = norm_output(norm);
  const char* const edit = R"({"edit":"norm.replace","with":"preaffine","lambda":0.5,"dims":[0]})";
  // h = (12, 3, 4): 169 becomes 36 + 25.
  const MatrixF halved = previewed_norm(norm, edits(edit));
  EXPECT_NEAR(halved(0, 1) / y(0, 1), std::sqrt(169.0 / 61), 1e-6);
  EXPECT_NEAR(halved(0, 0) / y(0, 0), 0.5 * std::sqrt(169.0 / 61), 1e-6);
  // In place of the model's own: what is recorded is x, the norm reads (6, 3, 4) again.
  norm.pre_gain = {12, 1, 1};
  norm.x.col(0) /= 12;
  EXPECT_NEAR(previewed_norm(norm, edits(edit))(0, 1), 3 / std::sqrt((0.25 + 25) / 3), 1e-6);
  // Before the probes, which see what the norm is given.
  norm = small_norm();
  WhatIf both = edits(edit);
  both.push_back(edits(R"({"edit":"norm.probe","mode":"zero","dims":[0]})").front());
  EXPECT_NEAR(previewed_norm(norm, both)(0, 1), 3 / std::sqrt(25.0 / 3), 1e-6);
}

TEST(NormPreview, SaysWhatNeedsARerun) {
  for (const char* text :
       {R"({"edit":"norm.replace","with":"dyt"})",
        R"({"edit":"norm.replace","with":"preaffine","weights":"F.safetensors"})"}) {
    try {
      previewed_norm(small_norm(), edits(text));
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
      EXPECT_THAT(error.what(), HasSubstr("rerun"));
    }
  }
}

// Random causal scores of 37 tokens, key 0 strong; the head as a capture holds it.
class HeadPreviewTest : public ::testing::Test {
 protected:
  static constexpr int kTokens = 37;

  HeadPreviewTest() {
    std::mt19937 random(5);
    std::normal_distribution<double> normal(0, 2);
    head_.layer = 2;
    head_.head = 1;
    head_.seq_len = kTokens;
    head_.pattern = MatrixF::Zero(kTokens, kTokens);
    for (int q = 0; q < kTokens; ++q) {
      std::vector<double> row;
      for (int k = 0; k <= q; ++k) row.push_back(normal(random) + (k == 0 ? 5 : 0));
      const NormalizedRow p = normalize({}, row);
      for (int k = 0; k <= q; ++k) head_.pattern(q, k) = static_cast<float>(p.p[k]);
      head_.lse.push_back(log_sum_exp(row));
      head_.null.push_back(0);
      scores_.push_back(row);
    }
  }
  void expect_as_the_reference(const HeadPreview& found, const Normalizer& normalizer,
                               const std::vector<std::vector<double>>& scores) {
    for (int q = 0; q < kTokens; ++q) {
      const NormalizedRow row = normalize(normalizer, scores[static_cast<std::size_t>(q)]);
      for (int k = 0; k <= q; ++k)
        EXPECT_NEAR(found.pattern(q, k), row.p[static_cast<std::size_t>(k)],
                    2e-7 + 2e-6 * row.p[static_cast<std::size_t>(k)])
            << name_of(normalizer.kind) << ", query " << q << ", key " << k;
      EXPECT_NEAR(found.null[static_cast<std::size_t>(q)], row.null_mass, 2e-6);
      for (int k = q + 1; k < kTokens; ++k) ASSERT_EQ(found.pattern(q, k), 0);
    }
  }

  HeadInput head_;
  std::vector<std::vector<double>> scores_;
};

TEST_F(HeadPreviewTest, EveryNormalizerIsThatOfTheReference) {
  for (const NormalizerFacts& facts : normalizers()) {
    AttentionNormalizer edit;
    edit.normalizer.kind = facts.kind;
    if (facts.kind == NormalizerKind::sink_logit) edit.normalizer.sink_logit = -1.5;
    if (facts.kind == NormalizerKind::clipped) edit.normalizer.gamma = -0.03;
    if (facts.kind == NormalizerKind::clipped) edit.normalizer.zeta = 1.1;
    expect_as_the_reference(previewed_head(head_, {edit}), edit.normalizer, scores_);
  }
}

TEST_F(HeadPreviewTest, DroppedKeysShareTheirMassOrLoseIt) {
  auto without = scores_;
  for (int q = 1; q < kTokens; ++q) without[static_cast<std::size_t>(q)][0] = -HUGE_VAL;
  const WhatIf shared = edits(R"({"edit":"attention.mask_key","keys":[0]})");
  expect_as_the_reference(previewed_head(head_, shared), {}, without);
  EXPECT_EQ(previewed_head(head_, shared).pattern(0, 0), 1) << "a query keeps its own key";
  // softmax1 over what is left.
  WhatIf both = shared;
  both.push_back(edits(R"({"edit":"attention.normalizer","kind":"softmax1"})").front());
  expect_as_the_reference(previewed_head(head_, both), {NormalizerKind::softmax1}, without);
  const HeadPreview lost = previewed_head(
      head_, edits(R"({"edit":"attention.mask_key","keys":[0],"renormalize":false})"));
  EXPECT_NEAR(lost.null[9], head_.pattern(9, 0), 1e-7);
  EXPECT_EQ(lost.pattern(9, 4), head_.pattern(9, 4));
}

TEST_F(HeadPreviewTest, OtherHeadsAndLayersAreLeftAlone) {
  for (const char* text : {R"({"edit":"attention.normalizer","kind":"sigmoid","heads":[0,2]})",
                           R"({"edit":"attention.normalizer","kind":"sigmoid","layers":[1]})",
                           R"({"edit":"attention.value","scale":0,"tokens":[0]})"})
    EXPECT_EQ(previewed_head(head_, edits(text)).pattern, head_.pattern) << text;
}

TEST_F(HeadPreviewTest, ValuesAndGatesScaleWhatTheHeadAddsUp) {
  for (int k = 0; k < kTokens; ++k) {
    head_.value_norm.push_back(0.25F + 0.5F * static_cast<float>(k));
    head_.token_ids.push_back(100 + k);
  }
  const auto lengths = [&](const char* text) {
    return addend_lengths(head_, edits(text), head_.pattern);
  };
  const MatrixF as_it_is = lengths("[]");
  EXPECT_FLOAT_EQ(as_it_is(9, 4), head_.pattern(9, 4) * 2.25F);
  const MatrixF scaled =
      lengths(R"({"edit":"attention.value","scale":-2,"tokens":"ids:103-104","heads":[1]})");
  EXPECT_FLOAT_EQ(scaled(9, 4), 2 * as_it_is(9, 4));
  EXPECT_EQ(scaled(9, 5), as_it_is(9, 5));
  const MatrixF gated = lengths(R"([{"edit":"attention.gate","value":0.25,"layers":[2]},
                                    {"edit":"attention.value","scale":0,"tokens":[0]}])");
  EXPECT_FLOAT_EQ(gated(9, 4), 0.25F * as_it_is(9, 4));
  EXPECT_EQ(gated(9, 0), 0);
  EXPECT_EQ(lengths(R"({"edit":"attention.gate","value":0.25,"heads":[0]})"), as_it_is);

  PreviewInput input;
  input.facts.model.n_layers = 4;
  input.facts.input.token_ids = head_.token_ids;
  input.facts.input.token_text.assign(kTokens, "a");
  input.before = head_.pattern;
  input.input = head_;
  // With another normalizer beside it: the weights are those after it.
  const WhatIf both = edits(R"([{"edit":"attention.normalizer","kind":"softmax1"},
                                {"edit":"attention.gate","value":0.5}])");
  const PreviewSnapshot shown = preview(input, both);
  EXPECT_TRUE(shown.is_touched);
  EXPECT_THAT(shown.title, HasSubstr("weight times length of the value"));
  EXPECT_FLOAT_EQ(static_cast<float>(shown.maps.sides[0].map.at(9, 4)), as_it_is(9, 4));
  EXPECT_FLOAT_EQ(static_cast<float>(shown.maps.sides[1].map.at(9, 4)),
                  0.5F * previewed_head(head_, both).pattern(9, 4) * 2.25F);
  EXPECT_EQ(shown.line_after.size(), std::size_t{kTokens});
  EXPECT_THAT(preview(input, edits(R"({"edit":"mlp.activation","kind":"relu"})")).text,
              HasSubstr("not in this preview, which keeps the recorded input: mlp.activation"));
  for (const char* text : {R"({"edit":"attention.gate","weights":"F.safetensors"})",
                           R"({"edit":"attention.value","scale":0})"}) {
    if (std::string(text).find("scale") != std::string::npos) head_.value_norm.clear();
    try {
      lengths(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
      EXPECT_THAT(error.what(), HasSubstr("rerun"));
    }
  }
}

TEST_F(HeadPreviewTest, APictureIsPooledAndItsDifferenceIsThatOfTheValues) {
  PreviewInput input;
  input.facts.model.n_layers = 4;
  input.facts.input.token_ids.assign(kTokens, 1);
  input.facts.input.token_text.assign(kTokens, "a");
  input.before = head_.pattern;
  input.input = head_;
  const WhatIf what_if = edits(R"({"edit":"attention.normalizer","kind":"softmax1"})");
  const PreviewSnapshot shown = preview(input, what_if);
  EXPECT_TRUE(shown.is_touched);
  EXPECT_EQ(shown.title, "blocks.2 (3rd of 4), head 1: attention");
  ASSERT_EQ(shown.maps.sides.size(), 2U);
  ASSERT_EQ(shown.maps.differences.size(), 1U);
  const Grid& difference = shown.maps.differences[0].map;
  EXPECT_EQ(difference.rows(), kTokens);
  EXPECT_FALSE(difference.exists(3, 4));
  EXPECT_FLOAT_EQ(static_cast<float>(difference.at(9, 0)),
                  static_cast<float>(shown.maps.sides[1].map.at(9, 0)) -
                      static_cast<float>(shown.maps.sides[0].map.at(9, 0)));
  EXPECT_THAT(preview(input, {}).text, HasSubstr("none of the edits touches this place"));
}

TEST(PreviewSnapshot, LargeMapsShowTheLargestMagnitudeOfEachCell) {
  NormInput norm;
  norm.role = "ln1";
  norm.layer = 0;
  norm.sites = {"blocks.0.hook_resid_pre"};
  norm.gain.assign(700, 1);
  norm.token_ids.assign(300, 1);
  norm.x = MatrixF::Constant(300, 700, 0.1F);
  norm.x(299, 699) = -50;
  PreviewInput input;
  input.facts.model.n_layers = 4;
  input.facts.input.token_ids = norm.token_ids;
  input.facts.input.token_text.assign(300, "a");
  input.before = norm_output(norm);
  input.input = norm;
  const PreviewSnapshot shown = preview(input, edits(R"({"edit":"residual.clip","limit":1})"));
  const Grid& before = shown.maps.sides[0].map;
  EXPECT_EQ(before.rows(), 100);
  EXPECT_EQ(before.cols(), 234);
  EXPECT_FLOAT_EQ(static_cast<float>(before.at(99, 233)), input.before(299, 699));
  EXPECT_LT(before.at(99, 233), 0);
  EXPECT_EQ(shown.maps.sides[0].rows.back(), 297);
  EXPECT_EQ(shown.line_before.size(), 300U);
  ASSERT_FALSE(shown.maps.notes.empty());
  EXPECT_THAT(shown.maps.notes.front(), HasSubstr("3 × 3"));
}

TEST(PreviewPlace, IsWhatTheEditChanges) {
  const auto place = [](const char* text) {
    return preview_place(parse_what_if(text).front(), "run0", 4, 2);
  };
  EXPECT_EQ(place(R"({"edit":"attention.normalizer","kind":"softmax1"})"),
            (PreviewPlace{"run0", "", 4, 2}));
  EXPECT_EQ(place(R"({"edit":"residual.clip","limit":1})"), (PreviewPlace{"run0", "ln2", 4, 0}));
  EXPECT_EQ(place(R"({"edit":"norm.replace","with":"none","norms":["blocks.4.ln1"]})"),
            (PreviewPlace{"run0", "ln1", 4, 0}));
}

}  // namespace
}  // namespace sinkscope
