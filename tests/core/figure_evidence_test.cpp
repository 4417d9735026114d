// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/figure/make_figure.h"

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

}  // namespace
}  // namespace sinkscope
