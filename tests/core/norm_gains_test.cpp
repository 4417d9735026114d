// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/norm_gains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace sinkscope {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Two layers, five dimensions, zero-centered storage: effective = raw + 1.
NormFacts ffn_norms() {
  NormFacts n;
  n.role = "ln2";
  n.kind = "rms";
  n.eps = 1e-5;
  n.offset = 1;
  n.layers = {4, 7};
  n.width = 5;
  n.gain = {1.0F, 0.25F, 3.0F, 1.1F,    0.9F,  //
            1.0F, 0.9F,  1.2F, -0.001F, 1.05F};
  for (const float g : n.gain) n.gain_raw.push_back(g - 1);
  return n;
}

TEST(NormGains, NameTheExtremesOfEachNorm) {
  const NormRoleGains role = norm_gains({ffn_norms()}).at(0);
  ASSERT_EQ(role.norms.size(), 2U);
  EXPECT_EQ(role.norms[0].layer, 4);
  EXPECT_EQ(role.norms[0].min.dim, 1);
  EXPECT_FLOAT_EQ(static_cast<float>(role.norms[0].min.raw), -0.75F);
  EXPECT_EQ(role.norms[0].max.dim, 2);
  EXPECT_EQ(role.norms[0].max.value, 3);
  EXPECT_EQ(role.norms[0].median, 1);
  EXPECT_EQ(role.norms[1].min.dim, 3);
}

TEST(NormGains, StarTheDimensionsFarthestFrom1OnALogScale) {
  const NormRoleGains role = norm_gains({ffn_norms()}, {.n_starred = 3}).at(0);
  ASSERT_EQ(role.starred.size(), 3U);
  EXPECT_EQ(role.starred[0].dim, 3);  // |−0.001|: its size counts, not its sign
  EXPECT_EQ(role.starred[0].layer, 7);
  EXPECT_EQ(role.starred[1].dim, 1);  // 1/4 is farther than 3
  EXPECT_EQ(role.starred[1].layer, 4);
  EXPECT_EQ(role.starred[2].dim, 2);
  EXPECT_EQ(role.starred[2].value, 3);
}

TEST(NormGains, StarAgainstTheMedianWhereGainsSitElsewhere) {
  NormFacts n = ffn_norms();
  // All of layer 4 is near 0.02 but for dimension 0.
  n.gain = {1.0F, 0.02F, 0.021F, 0.019F, 0.02F,  //
            1.0F, 0.9F,  1.2F,   1.0F,   1.05F};
  const NormRoleGains role = norm_gains({n}, {.n_starred = 1}).at(0);
  EXPECT_EQ(role.starred.at(0).dim, 3);
  EXPECT_EQ(role.starred_from_median.at(0).dim, 0);
}

TEST(NormGains, ZeroDeviatesWithoutBoundAndNaNIsCountedApart) {
  NormFacts n = ffn_norms();
  n.gain[2] = 0;
  n.gain[6] = std::numeric_limits<float>::quiet_NaN();
  const NormRoleGains role = norm_gains({n}, {.n_starred = 1}).at(0);
  EXPECT_EQ(role.starred.at(0).dim, 2);
  EXPECT_EQ(role.norms[0].n_zero, 1);
  EXPECT_EQ(role.norms[1].n_non_finite, 1);
  EXPECT_EQ(role.norms[1].max.dim, 2);
}

TEST(NormGains, PlainNormsHaveNoStars) {
  NormFacts n = ffn_norms();
  n.gain.assign(10, 1.0F);
  EXPECT_TRUE(norm_gains({n}).at(0).starred.empty());
}

TEST(NormGains, RefuseAShapeThatIsNotTheirs) {
  NormFacts n = ffn_norms();
  n.gain_raw.pop_back();
  try {
    norm_gains({n});
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
    EXPECT_THAT(e.what(), HasSubstr("ln2: expected 2 x 5 gains, found 9"));
  }
}

TEST(NormGains, JsonStartsWithItsSchemaAndNamesItsConventions) {
  const auto json = norm_gains_json(norm_gains({ffn_norms()}));
  EXPECT_THAT(json.dump(),
              ::testing::StartsWith(R"({"schema":"sinkscope.norms/1","conventions":{)"));
  const auto& role = json["norms"][0];
  EXPECT_EQ(role["role"], "ln2");
  EXPECT_EQ(role["layers"], (nlohmann::ordered_json{4, 7}));
  EXPECT_EQ(role["starred"][0]["dim"], 3);
  EXPECT_EQ(role["starred"][0]["layer"], 7);
  EXPECT_EQ(role["min"][0]["dim"], 1);
  EXPECT_EQ(json["non_finite_values"], 0);
}

TEST(NormGains, TextAndCsvCarryTheSameValues) {
  const auto roles = norm_gains({ffn_norms()});
  const std::string text = norm_gains_text(roles, 8);
  EXPECT_THAT(text, HasSubstr("ln2  rms norm, eps 1e-05, stored gain + 1, 5 gains"));
  EXPECT_THAT(text, HasSubstr("★ dim 3"));
  EXPECT_THAT(text, HasSubstr("  in blocks."));
  NormFacts final_norm = ffn_norms();
  final_norm.layers.assign(final_norm.layers.size(), -1);
  EXPECT_THAT(norm_gains_text(norm_gains({final_norm}), 8),
              AllOf(HasSubstr("  after the last block"), Not(HasSubstr("in after"))));
  EXPECT_THAT(text, HasSubstr("blocks.7 (8th of 8)"));
  const std::string csv = norm_gains_csv(roles);
  EXPECT_THAT(csv, HasSubstr("role,layer,median,min,min_dim,min_raw,max,max_dim,max_raw\n"));
  EXPECT_THAT(csv, HasSubstr("ln2,4,1,0.25,1,-0.75,3,2,2\n"));
}

}  // namespace
}  // namespace sinkscope
