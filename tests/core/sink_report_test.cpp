// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sink_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "tests/core/planted_capture.h"

namespace sinkscope {
namespace {

using Json = nlohmann::ordered_json;
using test::FakeCapture;
using test::Planted;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// run0 as planted; run1 without the massive activation.
FakeCapture two_runs() {
  FakeCapture capture;
  test::add_planted_run(capture, "run0");
  std::vector<float> calm = test::planted_stream();
  for (float& h : calm) h = std::abs(h) == 5000 ? 1 : h;
  test::add_planted_run(capture, "run1", true, calm);
  return capture;
}

FakeCapture one_run() {
  FakeCapture capture;
  test::add_planted_run(capture, "run0");
  return capture;
}

TEST(SinkReport, JsonHasTheDocumentedKeys) {
  const Json json = sink_report_json(sink_report(one_run(), {}, {}));
  EXPECT_THAT(json.dump(),
              ::testing::StartsWith(R"({"schema":"sinkscope.sinks/1","conventions":{)"));
  const Json& run = json["runs"].at(0);
  EXPECT_EQ(run["name"], "run0");
  EXPECT_EQ(run["tokens"], 12);
  for (const char* key : {"token", "text", "special", "heads", "max_score", "mean_score"}) {
    EXPECT_TRUE(run["sink_tokens"].at(0).contains(key)) << key;
  }
  const Json& attention = run["attention"];
  EXPECT_EQ(attention["layers"], (Json{0, 1}));
  EXPECT_NEAR(attention["first_token_score"]["with_row0"][1][2], 1, 1e-6);
  EXPECT_EQ(attention["first_token_score"]["without_row0"].size(), 2U);
  EXPECT_EQ(attention["first_token_score"]["without_row0"][0].size(), 3U);
  const Json& gu = attention["gu"];
  EXPECT_EQ(gu["epsilon"], 0.3);
  EXPECT_EQ(gu["key"], 0);
  EXPECT_EQ(gu["queries"], 12);
  EXPECT_EQ(gu["cells"], 6);
  EXPECT_NEAR(gu["sink_ratio"], 1.0 / 6, 1e-12);
  EXPECT_NEAR(gu["score"][1][2], 1, 1e-6);
  const Json& residual = run["residual"];
  EXPECT_EQ(residual["sites"].size(), 5U);
  EXPECT_EQ(
      residual["max_abs"][2],
      (Json{{"site", "blocks.0.hook_resid_post"}, {"value", 5000.0}, {"token", 0}, {"dim", 4}}));
  EXPECT_EQ(residual["massive"][0]["text"], "<s>");
  EXPECT_EQ(residual["kurtosis"]["pearson_tensor"].size(), 5U);
  EXPECT_EQ(residual["sorted_dims"], (Json{4, 5, 0, 1, 2, 3, 6}));
  EXPECT_EQ(residual["sorted_dims_without_first"][0], 5);
  EXPECT_GT(residual["first_permille_ratio"], 500);
  EXPECT_EQ(residual["sink_dims"], Json::array({5}));
  EXPECT_EQ(json["all"]["runs"], 1);
  EXPECT_EQ(json["findings"].size(), 3U);
}

TEST(SinkReport, OverManyRunsEveryNumberHasMeanSdMinMax) {
  const SinkReport report = sink_report(two_runs(), {"run0", "run1"}, {});
  const Json all = sink_report_json(report)["all"];
  EXPECT_EQ(all["runs"], 2);
  const Json& max_abs = all["residual"]["max_abs"];
  EXPECT_DOUBLE_EQ(max_abs["mean"][2], (5000 + 51) / 2.0);
  EXPECT_DOUBLE_EQ(max_abs["sd"][2], (5000 - 51) / 2.0);
  EXPECT_EQ(max_abs["min"][2], 51);
  EXPECT_EQ(max_abs["max"][2], 5000);
  EXPECT_EQ(all["tokens"]["mean"], 12);
  EXPECT_EQ(all["tokens"]["sd"], 0);
  EXPECT_NEAR(all["attention"]["first_token_score"]["without_row0"]["mean"][1][2], 1, 1e-6);
  EXPECT_NEAR(all["attention"]["gu"]["sink_ratio"]["mean"], 1.0 / 6, 1e-12);
  // Pooled over the positions of both runs.
  EXPECT_EQ(all["residual"]["m2"], (Json{46.0, 46.0, 46.0, 46.0, 46.0}));
  EXPECT_EQ(all["residual"]["sink_dims"], Json::array({5}));
  EXPECT_EQ(all["residual"]["m2_over_runs"]["max"][0], 46);
  EXPECT_EQ(all["residual"]["runs_with_sink_dim"], Json::parse(R"([{"dim":5,"runs":2}])"));
  EXPECT_EQ(all["residual"]["runs_with_massive_dim"], Json::parse(R"([{"dim":4,"runs":1}])"));
  EXPECT_EQ(all["runs_with_sink_token"], Json::parse(R"([{"token":0,"runs":2}])"));
}

TEST(SinkReport, NaNIsNullAndCounted) {
  FakeCapture capture;
  RunInput input;
  input.token_ids = {4};
  capture.add_run("run0", input);
  capture.facts.n_layers = 1;
  test::put_attention(capture, "run0", {0}, 1, {1.0F});
  test::put_residual(capture, "run0", 1, 2, {1, 2, 3, 4, 5, 6}, false);
  const Json json = sink_report_json(sink_report(capture, {}, {}));
  const Json& score = json["runs"][0]["attention"]["first_token_score"];
  EXPECT_TRUE(score["without_row0"][0][0].is_null());  // one token has no other rows
  EXPECT_EQ(score["with_row0"][0][0], 1.0);
  std::int64_t nulls = 0;
  const std::function<void(const Json&)> count = [&](const Json& j) {
    if (j.is_null()) ++nulls;
    if (j.is_structured()) {
      for (const Json& child : j) count(child);
    }
  };
  count(json);
  EXPECT_EQ(json["non_finite_values"], nulls);
  EXPECT_GT(nulls, 0);
}

TEST(SinkReport, EveryConventionOfTheOptionsIsNamed) {
  const SinkOptions options{.epsilon = 0.25,
                            .gu_length = 6,
                            .min_later_queries = 2,
                            .at = PositionFilter::parse("rest"),
                            .min_m2 = 17,
                            .permille = PermilleRounding::up};
  const Json c = sink_report_json(sink_report(one_run(), {}, options))["conventions"];
  EXPECT_THAT(c["sink_tokens"], HasSubstr("score > 0.25 over the first 6 positions"));
  EXPECT_THAT(c["sink_tokens"], HasSubstr("at least 2 later queries"));
  EXPECT_THAT(c["positions"], HasSubstr("--at rest"));
  EXPECT_THAT(c["sink_dims"], HasSubstr(">= 17 x"));
  EXPECT_THAT(c["first_permille_ratio"], HasSubstr("ceil"));
}

TEST(SinkReport, TextReadsFromTopToFindings) {
  const std::string text = sink_report_text(sink_report(one_run(), {}, {}));
  EXPECT_THAT(text, HasSubstr("Sinks of planted · llama · 2 layers, 3 heads, 7 dimensions"));
  EXPECT_THAT(text, HasSubstr("token 0     \"<s>\""));
  EXPECT_THAT(text, HasSubstr("blocks.1 (2nd of 2)"));
  EXPECT_THAT(text, HasSubstr("blocks.0.hook_resid_post"));
  EXPECT_THAT(text, HasSubstr("5,000.0  token 0 \"<s>\"  dim 4"));
  EXPECT_THAT(text, HasSubstr("with token 0:     4 5 0 1 2 3 6"));
  EXPECT_THAT(text, HasSubstr("pearson_tensor"));
  const auto findings = text.find("\nFindings\n");
  ASSERT_NE(findings, std::string::npos);
  EXPECT_EQ(std::count(text.begin() + static_cast<std::ptrdiff_t>(findings) + 1, text.end(), '\n'),
            4);
  EXPECT_THAT(sink_report_text(sink_report(two_runs(), {"run0", "run1"}, {})),
              HasSubstr("massive dimension 4: 1 of 2 runs"));
}

// A stranger's file, or a recording of models of several kinds.
TEST(SinkReport, RunsWithoutAttentionHaveNoPartInTheTableOfHeads) {
  FakeCapture capture;
  RunInput input;
  for (int t = 0; t < Planted::n_tokens; ++t) input.token_ids.push_back(t);
  input.token_text.assign(Planted::n_tokens, "t");
  capture.add_run("run0", input);
  test::put_residual(capture, "run0", Planted::n_layers, Planted::width, test::planted_stream(),
                     true);
  test::add_planted_run(capture, "run1");
  const std::string text = sink_report_text(sink_report(capture, {"run0", "run1"}, {}));
  EXPECT_THAT(text, HasSubstr("mean over the runs, layer by head"));
  EXPECT_THAT(text, HasSubstr("blocks.1"));
}

TEST(FieldCases, FC22_TheReportNamesTheBosPositions) {
  FakeCapture capture;
  test::add_planted_run(capture, "run0");
  const SinkReport one = sink_report(capture, {}, {});
  EXPECT_THAT(sink_report_text(one), HasSubstr("12 tokens · BOS at 0\n"));
  EXPECT_EQ(sink_report_json(one)["runs"][0]["bos_positions"], Json::array({0}));
  SinkReport two = one, none = one;
  two.runs[0].input.bos_positions = {0, 1};
  EXPECT_THAT(sink_report_text(two), HasSubstr("12 tokens · BOS at 0 and 1\n"));
  none.runs[0].input.bos_positions = {};
  EXPECT_THAT(sink_report_text(none), HasSubstr("12 tokens · no BOS\n"));
}

TEST(SinkReport, FindingsAreThreeSentencesWithTheirCriteria) {
  const auto findings = sink_findings(sink_report(one_run(), {}, {}));
  EXPECT_THAT(
      findings,
      ElementsAre(HasSubstr("Token 0 \"<s>\" is an attention sink: 1 of 6 heads (17 %)"),
                  HasSubstr("Dimension 4 is massive on token 0 \"<s>\": |h| reaches 5,000.0 at "
                            "blocks.0.hook_resid_post"),
                  HasSubstr("Dimension 5 is a residual sink: 5 is 46 times the median")));
  EXPECT_THAT(findings[0], HasSubstr("blocks.1 (2nd of 2), head 2"));
  EXPECT_THAT(findings,
              ::testing::Each(::testing::AllOf(HasSubstr("["), ::testing::EndsWith("]"))));
}

TEST(SinkReport, FindingsSayWhenThereIsNothing) {
  const SinkOptions strict{
      .epsilon = 2, .massive = {.min_abs = 1e6, .min_ratio = 1e6}, .min_m2 = 1e6};
  EXPECT_THAT(
      sink_findings(sink_report(one_run(), {}, strict)),
      ElementsAre(HasSubstr("No token is an attention sink: key 0 gets at most 1 "),
                  HasSubstr("No activation is massive: the largest |h| is 5,000.0"),
                  HasSubstr("No dimension is a residual sink: the largest, 5, is 46 times")));
}

TEST(SinkReport, FindingsSayWhenNoPositionMatches) {
  const SinkOptions nobody{.at = PositionFilter::parse("ids:900-901")};
  const SinkReport report = sink_report(one_run(), {}, nobody);
  const std::vector<std::string> findings = sink_findings(report);
  EXPECT_THAT(findings[1], HasSubstr("No massive activation can be looked for"));
  EXPECT_THAT(findings[2], HasSubstr("No residual sink can be looked for"));
  EXPECT_TRUE(report.runs[0].residual.sorted_dims.empty());
  EXPECT_TRUE(sink_report_json(report)["runs"][0]["residual"]["max_abs"][0]["value"].is_null());
  EXPECT_FALSE(sink_report_text(report).empty());
}

FakeCapture short_prompt(int n_tokens) {
  FakeCapture capture;
  RunInput input;
  for (int t = 0; t < n_tokens; ++t) input.token_ids.push_back(4 + t);
  capture.add_run("run0", input);
  capture.facts.n_layers = 1;
  std::vector<float> map, stream;  // everything goes to key 0
  for (int q = 0; q < n_tokens; ++q)
    for (int k = 0; k < n_tokens; ++k) map.push_back(static_cast<float>(k == 0));
  for (int i = 0; i < 3 * n_tokens * 2; ++i) stream.push_back(static_cast<float>(1 + i % 3));
  test::put_attention(capture, "run0", {0}, 1, map);
  test::put_residual(capture, "run0", 1, 2, stream, false);
  return capture;
}

TEST(SinkReport, APromptTooShortForSinkTokensSaysSo) {
  const SinkReport report = sink_report(short_prompt(6), {}, {});
  EXPECT_EQ(report.runs[0].attention.gu.sink_ratio.ratio, 1);
  EXPECT_THAT(sink_findings(report)[0],
              HasSubstr("No attention sink can be looked for: no key has 8 later queries in 6 "
                        "tokens (--min-queries). ["));
  EXPECT_THAT(sink_report_text(report),
              HasSubstr("  cannot be looked for: no key has 8 later queries in 6 tokens"));
  // One more than 8 tokens, or fewer queries asked for, and the sink is there.
  EXPECT_THAT(sink_findings(sink_report(short_prompt(9), {}, {}))[0],
              HasSubstr("Token 0 \"t0\" is an attention sink"));
  EXPECT_THAT(sink_findings(sink_report(short_prompt(6), {}, {.min_later_queries = 5}))[0],
              HasSubstr("Token 0 \"t0\" is an attention sink"));
}

TEST(SinkReport, OneTokenHasNoResidualSinksToLookFor) {
  EXPECT_THAT(sink_report_text(sink_report(short_prompt(1), {}, {})),
              HasSubstr("no peer-reviewed threshold exists]\n  cannot be looked for: no finite"));
}

// A stranger's counts may be as large as the type allows.
TEST(NonFiniteValues, OfBothKindsAreCountedBeyond32Bits) {
  FakeCapture capture;
  test::add_planted_run(capture, "run0", false);
  const std::string token = "stats/hook_resid_mid/token/";
  const auto dims = capture.dims("run0", token + "n_nan");
  std::vector<double> counts(static_cast<std::size_t>(dims[0] * dims[1]), 0);
  counts[3] = 2'147'483'647;
  capture.put("run0", token + "n_nan", dims, counts);
  counts[3] = 255;
  capture.put("run0", token + "n_inf", dims, counts);
  const NonFinite found = find_non_finite(capture, "run0", 99);
  EXPECT_EQ(found.count, 2'147'483'902);
  EXPECT_EQ(found.token, 3);
}

// FC-44: a value that overflowed is told by its place, and never read as "nothing there".
TEST(FieldCases, FC44_NonFiniteValuesAreNamedByTheirPlaceAndLeaveNothingRuledOut) {
  constexpr int kBadToken = 4, kBadDim = 3, kState = Planted::n_tokens * Planted::width;
  FakeCapture capture;
  std::vector<float> stream = test::planted_stream();
  stream[1 * kState + kBadToken * Planted::width + kBadDim] =
      std::numeric_limits<float>::infinity();
  for (std::size_t i = 2 * kState; i < stream.size(); ++i) stream[i] = std::nanf("");
  test::add_planted_run(capture, "run0", false, stream);
  std::vector<float> maps(test::planted_pattern().size(), std::nanf(""));
  test::put_attention(capture, "run0", {0, 1}, Planted::n_heads, maps);

  const SinkReport report = sink_report(capture, {}, {});
  const NonFinite& found = report.runs[0].residual.non_finite;
  EXPECT_EQ(found.count, 1 + 3 * kState);
  EXPECT_EQ(found.site.text(), "blocks.0.hook_resid_mid");
  EXPECT_EQ(found.token, kBadToken);
  EXPECT_EQ(found.dim, kBadDim);
  const std::string place =
      "253 values are NaN or infinite, the first at "
      "blocks.0.hook_resid_mid, token 4, dimension 3";
  const auto findings = sink_findings(report);
  EXPECT_THAT(findings[0], HasSubstr("No attention sink can be looked for: no head has a finite "
                                     "score; " +
                                     place));
  EXPECT_THAT(findings[1],
              HasSubstr("No massive activation is found, and none can be ruled out: " + place));
  EXPECT_TRUE(report.runs[0].residual.sorted_dims.empty());
  EXPECT_TRUE(report.all.residual.sorted_dims.empty());
  const std::string text = sink_report_text(report);
  EXPECT_THAT(text, HasSubstr("Not all is finite: run0: " + place));
  EXPECT_THAT(text, HasSubstr("no order: no dimension has finite values in every state"));
  const Json residual = sink_report_json(report)["runs"][0]["residual"];
  EXPECT_EQ(residual["non_finite_recorded"], 253);
  EXPECT_EQ(residual["first_non_finite"],
            (Json{{"site", "blocks.0.hook_resid_mid"}, {"token", 4}, {"dim", 3}}));
}

// Three prompts that begin with different tokens; the last is the strongest in everything.
FakeCapture three_runs() {
  FakeCapture capture;
  const char* const first_words[] = {"The", "<|im_start|>", "Once"};
  for (int i = 0; i < 3; ++i) {
    const std::string run = "run" + std::to_string(i);
    std::vector<float> stream = test::planted_stream();
    for (float& h : stream) h = h == -5000 ? -5000.0F - 100.0F * static_cast<float>(i) : h;
    std::vector<float> maps = test::planted_pattern();
    // The sink head keeps back a part of its last query, less in each run.
    const auto sink = Planted::sink_layer * Planted::n_heads + Planted::sink_head;
    const int t = Planted::n_tokens;
    maps[static_cast<std::size_t>(sink * t * t + (t - 1) * t)] =
        0.7F + 0.1F * static_cast<float>(i);
    test::add_planted_run(capture, run, false, stream, maps, first_words[i]);
  }
  return capture;
}

TEST(SinkReport, FindingsOverManyRunsQuoteTheStrongestRunAndItsOwnToken) {
  const SinkReport report = sink_report(three_runs(), {"run0", "run1", "run2"}, {});
  const auto findings = sink_findings(report);
  EXPECT_THAT(findings[0],
              HasSubstr("Position 0 (\"Once\" in run2) is an attention sink in 3 of 3 runs: 1 of 6 "
                        "heads"));
  EXPECT_THAT(findings[0], HasSubstr("(in run2), 0.992 at most"));  // (11 + 0.9) / 12
  EXPECT_THAT(findings[1],
              HasSubstr("Dimension 4 is massive in 3 of 3 runs: |h| reaches 5,200.0 at "
                        "blocks.0.hook_resid_post on token 0 \"Once\" of run2"));
  const Json all = sink_report_json(report)["all"];
  EXPECT_EQ(all["runs_with_sink_token"], Json::parse(R"([{"token":0,"runs":3}])"));
  EXPECT_EQ(all["runs_with_sink_text"],
            Json::parse(R"([{"text":"<|im_start|>","runs":1},{"text":"Once","runs":1},)"
                        R"({"text":"The","runs":1}])"));
  EXPECT_THAT(sink_report_text(report),
              HasSubstr("attention sink on a token \"Once\": 1 of 3 runs"));
}

TEST(SinkReport, CsvIsOneTableWithOneNumberARow) {
  const std::string csv = sink_report_csv(sink_report(one_run(), {}, {}));
  std::istringstream lines(csv);
  std::string line;
  int n = 0;
  while (std::getline(lines, line)) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 8) << line;
    ++n;
  }
  EXPECT_GT(n, 60);
  EXPECT_THAT(csv, HasSubstr("run,quantity,layer,head,site,token,dim,value,text\n"));
  EXPECT_THAT(csv, HasSubstr("run0,attention.gu.score,1,2,,,,1,\n"));
  EXPECT_THAT(csv, HasSubstr("run0,residual.max_abs,,,blocks.1.hook_resid_post,0,4,5000,\n"));
  EXPECT_THAT(csv, HasSubstr("run0,sink_token.heads,,,,0,,1,<s>\n"));
  EXPECT_THAT(csv, HasSubstr("run0,token_id,,,,3,,13,w3\n"));
  EXPECT_THAT(csv, HasSubstr("run0,attention.gu.epsilon,,,,,,0.3,\n"));
  EXPECT_THAT(csv, HasSubstr("run0,attention.gu.cells,,,,,,6,\n"));
  EXPECT_THAT(csv, HasSubstr("run0,residual.sorted_dims,,,,,4,0,\n"));
  EXPECT_THAT(csv, HasSubstr("run0,residual.sorted_dims,,,,,5,1,\n"));
  EXPECT_THAT(csv, HasSubstr("run0,residual.sorted_dims_without_first,,,,,5,0,\n"));
  EXPECT_THAT(csv, HasSubstr("run0,residual.outlier_feature,,,,,5,1,\n"));
  EXPECT_THAT(csv, ::testing::Not(HasSubstr("\nall,")));
}

TEST(SinkReport, CsvOfManyRunsHasWhatHoldsOverThem) {
  const std::string csv = sink_report_csv(sink_report(two_runs(), {"run0", "run1"}, {}));
  EXPECT_THAT(csv, HasSubstr("all,residual.max_abs.mean,,,blocks.0.hook_resid_post,,,2525.5,\n"));
  EXPECT_THAT(csv, HasSubstr("all,attention.gu.score.max,1,2,,,,1,\n"));
  EXPECT_THAT(csv, HasSubstr("all,residual.m2,,,blocks.0.hook_resid_post,,5,46,\n"));
  EXPECT_THAT(csv, HasSubstr("all,residual.sorted_dims_without_first,,,,,5,0,\n"));
  EXPECT_THAT(csv, HasSubstr("all,runs_with_sink_token,,,,0,,2,\n"));
  EXPECT_THAT(csv, HasSubstr("all,runs_with_sink_text,,,,,,2,<s>\n"));
  EXPECT_THAT(csv, HasSubstr("all,residual.runs_with_massive_dim,,,,,4,1,\n"));
}

TEST(SinkReport, OfAnUnfinishedCaptureReadsWholeLayersOnly) {
  FakeCapture capture = one_run();
  capture.is_complete = false;
  capture.n_layers_done = 1;
  const SinkReport report = sink_report(capture, {}, {});
  EXPECT_EQ(report.runs[0].residual.sites.size(), 3U);
  EXPECT_EQ(report.runs[0].attention.layers.size(), 1U);
  EXPECT_THAT(sink_report_text(report), HasSubstr("not complete: 1 of 2 layers"));

  capture.n_layers_done = 0;  // nothing yet: still a report
  const SinkReport empty = sink_report(capture, {}, {});
  EXPECT_THAT(
      sink_findings(empty),
      ElementsAre(HasSubstr("No attention sink can be looked for: no layer of the capture is"),
                  HasSubstr("No massive activation can be looked for: no layer"),
                  HasSubstr("No residual sink can be looked for: no layer")));
  EXPECT_THAT(sink_report_text(empty), HasSubstr("Attention sinks"));
  EXPECT_THAT(sink_report_text(empty), HasSubstr("  no whole layer yet"));
  EXPECT_THAT(sink_report_text(empty), ::testing::Not(HasSubstr("nan")));
  EXPECT_FALSE(sink_report_text(empty).empty());
  EXPECT_EQ(sink_report_json(empty)["layers_done"], 0);
}

TEST(SinkReport, RunsOfAnUnfinishedCaptureThatHaveFewerLayersAreLeftOut) {
  FakeCapture capture = two_runs();
  capture.is_complete = false;
  capture.n_layers_done = 2;
  capture.whole["run1"] = 1;
  const SinkReport report = sink_report(capture, {"run0", "run1"}, {});
  EXPECT_EQ(report.all.n_runs, 1);
  EXPECT_THAT(report.left_out, ElementsAre("run1"));
  EXPECT_EQ(sink_report_json(report)["runs_left_out"], Json::array({"run1"}));
}

TEST(SinkReport, OfARunThatIsNotThereFails) {
  EXPECT_THROW(sink_report(one_run(), {"run7"}, {}), Error);
}

}  // namespace
}  // namespace sinkscope
