// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/what_if/probe_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace sinkscope {
namespace {

using ::testing::HasSubstr;

// A table whose readers cost what is given: zero, denominator, direct, control.
ProbeTable table_of(const std::vector<std::pair<std::string, std::vector<double>>>& readers) {
  ProbeTable table;
  table.model = "tiny";
  table.dims = {23};
  table.n_tokens = 96;
  table.loss = 2.5;
  const PositionFilter at = PositionFilter::parse("ids:5-127");
  for (const auto& [name, costs] : readers) {
    const ProbeReader reader{name, {}};
    table.rows.push_back({reader, at, ProbeMode::zero, false, costs[0], .1});
    table.rows.push_back({reader, at, ProbeMode::denominator, false, costs[1], .1});
    table.rows.push_back({reader, at, ProbeMode::direct, false, costs[2], .1});
    table.rows.push_back({reader, {}, ProbeMode::direct_const, true, costs[3], .1});
  }
  return table;
}

// The table that was measured on a trained model: the same dimension, three readers, two roles.
TEST(ProbeTable, VerdictsFollowTheCosts) {
  const ProbeTable table = table_of({{"attention norms", {1.817, .053, 1.828, 1.213}},
                                     {"FFN norms", {.079, .079, 0, 0}},
                                     {"final norm", {1.889, 1.541, .183, .021}},
                                     {"constant", {1.0, .1, .9, .01}},
                                     {"two parts", {4.7, 1.5, 2.3, .02}},
                                     {"idle", {.004, .001, .002, 0}},
                                     {"together", {.5, .01, .01, 0}},
                                     {"attention norms of another seed", {2.389, 0, 2.426, .332}},
                                     {"helps when gone", {-.225, .001, .002, 0}}});
  const auto verdicts = probe_verdicts(table);
  ASSERT_EQ(verdicts.size(), 9u);
  EXPECT_EQ(verdicts[0].role, "flag");
  EXPECT_EQ(verdicts[1].role, "rescaler");
  EXPECT_EQ(verdicts[2].role, "rescaler");
  EXPECT_EQ(verdicts[3].role, "constant bias channel");
  EXPECT_EQ(verdicts[4].role, "rescaler and constant bias channel");
  EXPECT_EQ(verdicts[5].role, "none");
  EXPECT_EQ(verdicts[6].role, "both parts only together");
  EXPECT_EQ(verdicts[7].role, "flag");
  EXPECT_EQ(verdicts[8].role, "none");
  EXPECT_THAT(verdicts[8].sentence, HasSubstr("zero -0.225"));
  EXPECT_THAT(verdicts[2].sentence, HasSubstr("denominator alone +1.541"));
}

// A constant has to serve where the dimension was edited, too, not only everywhere.
TEST(ProbeTable, AConstantServesAtTheEditedPositionsToo) {
  ProbeTable table = table_of({{"final norm", {.06, .001, .0478, -.037}}});
  ProbeRow row = table.rows[2];
  row.mode = ProbeMode::direct_const;
  row.delta_loss = .0406;
  table.rows.push_back(row);
  EXPECT_EQ(probe_verdicts(table)[0].role, "flag");
  table.rows.back().delta_loss = .001;
  EXPECT_EQ(probe_verdicts(table)[0].role, "constant bias channel");
}

TEST(ProbeTable, AMeanThatIsTheValueSaysNothing) {
  ProbeTable table = table_of({{"FFN norms", {.5, .4, .01, 0}}});
  ProbeRow row = table.rows[0];
  row.mode = ProbeMode::mean;
  row.delta_loss = row.kl = 0;
  table.rows.push_back(row);
  EXPECT_THAT(probe_verdicts(table)[0].sentence, HasSubstr("its mean is its value"));
  table.rows.back().delta_loss = .3;
  EXPECT_THAT(probe_verdicts(table)[0].sentence, HasSubstr("its mean instead +0.300"));
  const PositionFilter at = table.rows[0].at;
  EXPECT_THAT(probe_text(table), ::testing::Not(HasSubstr("not measured")));
  table.single = {at};
  EXPECT_THAT(probe_text(table), HasSubstr("not measured, a mean over one position"));
  EXPECT_EQ(probe_json(table)["not_measured"].size(), 3u);
}

TEST(ProbeTable, LossesThatAreNoNumbersAreNotJudged) {
  const ProbeTable table = table_of({{"FFN norms", {std::nan(""), .4, 0, .01}}});
  EXPECT_EQ(probe_verdicts(table)[0].role, "not judged");
  ProbeTable constant = table_of({{"FFN norms", {.5, .01, .4, .01}}});
  ProbeRow row = constant.rows[2];
  row.mode = ProbeMode::direct_const;
  row.delta_loss = std::nan("");
  constant.rows.push_back(row);
  EXPECT_EQ(probe_verdicts(constant)[0].role, "not judged");
}

TEST(ProbeTable, WhatWasNotMeasuredIsNotJudged) {
  ProbeTable table = table_of({{"FFN norms", {.5, .4, 0, .01}}});
  std::erase_if(table.rows, [](const ProbeRow& row) { return row.mode == ProbeMode::denominator; });
  const auto verdicts = probe_verdicts(table);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].role, "not judged");
  EXPECT_THAT(verdicts[0].sentence, HasSubstr("denominator was not measured"));
}

TEST(ProbeTable, PlansEveryReaderPositionAndMode) {
  const auto readers = probe_readers(3, true);
  ASSERT_EQ(readers.size(), 4u + 6u);
  EXPECT_EQ(readers[9].norms, NameList{"blocks.2.ln2"});
  const auto rows = planned_probes({readers[0], readers[3]},
                                   {PositionFilter::parse("rest"), PositionFilter::parse("first")},
                                   {ProbeMode::mean, ProbeMode::clamp, ProbeMode::direct});
  ASSERT_EQ(rows.size(), 2u * (2u * 3u + 1u));
  EXPECT_TRUE(rows[6].is_control);
  EXPECT_EQ(rows[6].at.text(), "all");
  const WhatIf edits = probe_edits(rows[8], {507}, 3);
  const auto& probe = std::get<NormProbe>(edits.at(0));
  EXPECT_EQ(probe.mode, ProbeMode::clamp);
  EXPECT_EQ(probe.tau, 3);
  EXPECT_EQ(probe.norms, NameList{"ln_final"});
  EXPECT_EQ(probe.tokens.text(), "rest");
}

TEST(ProbeTable, PrintsOneTableAPositionAndOneVerdictAReader) {
  const ProbeTable table = table_of({{"FFN norms", {.079, .0787, 0, .01}}});
  const std::string text = probe_text(table);
  EXPECT_THAT(text, HasSubstr("edited positions: ids:5-127"));
  EXPECT_THAT(text, HasSubstr("+0.0787"));
  EXPECT_THAT(text, HasSubstr("FFN norms: rescaler"));
  const auto json = probe_json(table);
  EXPECT_EQ(json["schema"], "sinkscope.probe/1");
  EXPECT_EQ(json["probes"][1]["mode"], "denominator");
  EXPECT_EQ(json["probes"][1]["delta_loss"], .0787);
  EXPECT_EQ(json["verdicts"][0]["role"], "rescaler");
  EXPECT_THAT(probe_csv(table), HasSubstr("FFN norms,ids:5-127,denominator,0.0787,0.1\n"));
}

}  // namespace
}  // namespace sinkscope
