// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/error.h"
#include "core/figure/make_figure.h"
#include "core/rescale/report.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Figure probes(const std::string& table) {
  FigureRequest request;
  request.kind = "probes";
  request.inputs = {"p.json"};
  FigureInput input;
  input.name = "tiny";
  input.evidence = table;
  return make_figure(request, {input});
}

TEST(EvidenceFigures, ProbesAreBarsOnePanelAReader) {
  const Figure figure = probes(R"({"schema":"sinkscope.probe/1","probes":[
      {"reader":"FFN norms","at":"rest","mode":"zero","control":false,"delta_loss":0.079},
      {"reader":"FFN norms","at":"rest","mode":"direct","control":false,"delta_loss":-0.001},
      {"reader":"final norm","at":"rest","mode":"zero","control":false,"delta_loss":1.89},
      {"reader":"final norm","at":"first","mode":"zero","control":false,"delta_loss":null},
      {"reader":"FFN norms","at":"all","mode":"direct_const","control":true,"delta_loss":5}]})");
  ASSERT_EQ(figure.panels.size(), 3u);
  EXPECT_EQ(figure.panels[0].title, "tiny: FFN norms, positions rest");
  ASSERT_EQ(figure.panels[0].series.size(), 1u);
  EXPECT_THAT(figure.panels[0].series[0].y, ElementsAre(0.079, -0.001));
  EXPECT_THAT(figure.panels[0].x.names, ElementsAre("zero", "direct"));
  EXPECT_THAT(figure.panels[1].series[0].y, ElementsAre(1.89));
  EXPECT_TRUE(std::isnan(figure.panels[2].series[0].y[0]));
  // One axis for all, and it holds the negative bar as well.
  EXPECT_EQ(figure.panels[0].y.high, figure.panels[1].y.high);
  EXPECT_GE(figure.panels[0].y.high, 1.89);
  EXPECT_LE(figure.panels[0].y.low, -0.001);
}

TEST(EvidenceFigures, AnotherFileIsRefused) {
  for (const char* text : {"{", "[]", R"({"schema":"sinkscope.rescale/1"})",
                           R"({"schema":"sinkscope.probe/1","probes":[{"reader":3}]})", ""}) {
    try {
      probes(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("tiny: expected a table of sinkscope probe"));
    }
  }
}

// What rescale writes and reads back; every value out of place is refused by its name.
TEST(EvidenceFigures, RescaleJsonIsReadBack) {
  RescaleReport report;
  report.path = "r.h5", report.run = "run0", report.model = "m", report.queries = "all";
  report.n_layers = 3, report.n_tokens = 2, report.options.dims = {4, 6}, report.options.key = 1;
  NormEvidence e;
  e.role = "ln2", e.layer = 2, e.eps = 1e-5, e.gain_max = 3, e.dim = {4, -1};
  e.r2 = {.5, .25}, e.share_after = {.125, std::nan("")}, e.alpha = {.7, .8};
  e.elasticity = {.6, .3}, e.output_rms = {1, 2}, e.gain_dim = {.5, 3}, e.bound_1 = {2, 3};
  e.bound_5 = {4, 5}, e.lower = {.1, .2}, e.next_linear = {.01, .02};
  report.norms = {e};
  report.not_computed = {{"share after ln2", "the recorded output"}};
  report.heads = {{1, 5, {2, 3, 4}, {.1, .2, .3}, {.4, .5, .6}, {}}};
  const std::string text = rescale_json(report).dump();
  const RescaleReport again = parse_rescale_json(text, "f.json");
  nlohmann::ordered_json want = rescale_json(report), got = rescale_json(again);
  EXPECT_EQ(got.dump(), want.dump());
  EXPECT_TRUE(std::isnan(again.norms[0].share_after[1]));
  // A token without a share is no dot, and the figure says why.
  FigureRequest request;
  request.kind = "shares";
  request.inputs = {"f.json"};
  FigureInput input;
  input.name = "tiny";
  input.evidence = text;
  const Figure figure = make_figure(request, {input});
  ASSERT_EQ(figure.panels[0].series[1].name, "FFN norms");
  EXPECT_THAT(figure.panels[0].series[1].x, ElementsAre(.5));
  EXPECT_THAT(figure.panels[0].series[1].y, ElementsAre(.125));
  EXPECT_EQ(figure.panels[0].series[3].name, "heads, key 1");
  EXPECT_EQ(figure.notes[0].text, "Not computed: share after ln2 (the recorded output).");
  for (const auto& [path, bad, found] :
       std::vector<std::tuple<const char*, nlohmann::ordered_json, const char*>>{
           {"/norms/0/alpha", {1}, "1 values in \"alpha\" instead of 2"},
           {"/norms/0/role", 3, "no text in \"role\""},
           {"/norms/0/layer", 3, "layer 3"},
           {"/heads/0/layer", -1, "layer -1"},
           {"/heads/0/p/0", "x", "no number in \"p\""},
           {"/not_computed", 7, "no object in \"not_computed\""},
           {"/norms", 7, "no list in \"norms\""},
           {"/norms/0", 7, "no \"role\""},
           {"/tokens", 1e9, "no small integer in \"tokens\""},
           {"/schema", "sinkscope.probe/1", "another file"}}) {
    nlohmann::ordered_json json = want;
    json[nlohmann::ordered_json::json_pointer(path)] = bad;
    try {
      parse_rescale_json(json.dump(), "f.json");
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(found)) << path;
      const bool is_damaged = std::string(path) != "/schema";  // or another verb's
      EXPECT_EQ(error.kind(), is_damaged ? ErrorKind::corrupt : ErrorKind::invalid_argument);
    }
  }
  input.evidence = text.substr(0, text.size() / 2);
  input.model.source = "runs/f.json";
  try {
    make_figure(request, {input});
    ADD_FAILURE() << "half a file";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    EXPECT_THAT(error.what(), HasSubstr("runs/f.json: expected the evidence"));
  }
  EXPECT_THROW(parse_rescale_json("{", "f.json"), Error);
}

// Tokens whose output is not finite are neither above nor below their bound.
TEST(EvidenceFigures, ValuesThatAreNotFiniteAreCountedApart) {
  RescaleReport report;
  report.n_layers = 1, report.n_tokens = 5;
  NormEvidence e;
  e.role = "ln1", e.layer = 0, e.n_above = 1, e.n_not_finite = 2;
  e.dim.assign(5, 0);
  e.r2 = e.share_after = e.alpha = e.elasticity = std::vector<double>(5, .5);
  report.norms = {e};
  report.heads = {{0, 2, {1}, {0}, {0}, {}}};  // 0 after 0 before has no ratio
  EXPECT_THAT(rescale_text(report), ::testing::Not(HasSubstr("nan")));
  EXPECT_THAT(rescale_text(report), HasSubstr("1 of 3 norm outputs lie ABOVE"));
  EXPECT_THAT(rescale_text(report), HasSubstr("2 more are not finite"));
  report.norms[0].n_above = 0;
  EXPECT_THAT(rescale_text(report), HasSubstr("all 3 norm outputs lie below"));
}

}  // namespace
}  // namespace sinkscope
