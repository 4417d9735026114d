// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figure/make_figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/figure/figure_kinds.h"
#include "tests/core/planted_capture.h"

namespace sinkscope {
namespace {

using test::Planted;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kL = Planted::n_layers, kH = Planted::n_heads, kT = Planted::n_tokens,
              kD = Planted::width, kS = 2 * kL + 1;

// What a recording has beyond the planted statistics.
void add_rest(test::FakeCapture& capture, const std::string& run) {
  const std::vector<float> stream = test::planted_stream(), maps = test::planted_pattern();
  capture.put(run, "residual/window", {kS, kT, kD}, {stream.begin(), stream.end()});
  std::vector<double> mean, rest;
  for (const int site : {0, 2, 4})
    for (int d = 0; d < kD; ++d) {
      const auto at = [&](int t) {
        return std::abs(
            static_cast<double>(stream[static_cast<std::size_t>((site * kT + t) * kD + d)]));
      };
      double others = 0;
      for (int t = 1; t < kT; ++t) others += at(t);
      mean.push_back((at(0) + others) / kT);
      rest.push_back(others / (kT - 1));
    }
  capture.put(run, "residual/abs_mean", {kL + 1, kD}, mean);
  capture.put(run, "residual/abs_mean_rest", {kL + 1, kD}, rest);
  capture.put(run, "attention/thumbnail", {kL, kH, kT, kT}, {maps.begin(), maps.end()});
  // Gaps: 10 · layer + head; values: the first token 0.5, the others 2, in layer 1 doubled.
  std::vector<double> gaps, values;
  for (int layer = 0; layer < kL; ++layer)
    for (int head = 0; head < kH; ++head)
      for (int t = 0; t < kT; ++t) gaps.push_back(10 * layer + head);
  for (int layer = 0; layer < kL; ++layer)
    for (int t = 0; t < kT; ++t) values.push_back((layer + 1) * (t == 0 ? 0.5 : 2));
  capture.put(run, "attention/logit_gap", {kL, kH, kT}, gaps);
  capture.put(run, "attention/value_norm", {kL, 1, kT}, values);
}

class MakeFigure : public ::testing::Test {
 protected:
  MakeFigure() {
    for (const char* run : {"run0", "run1"}) {
      test::add_planted_run(capture_, run);
      add_rest(capture_, run);
    }
    test::put_norm(capture_, "run0", "ln1", {0, 1},
                   {1, 1, 1.5, 1, 1, 1, 1, 1, -0.004, 1.25, 8, 1, 1, 1});
    test::put_norm(capture_, "run0", "ln2", {0, 1}, {1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
    test::put_norm(capture_, "run1", "ln2", {0, 1}, {1, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  }

  std::vector<FigureInput> inputs(int n = 1) const {
    std::vector<FigureInput> all;
    for (int i = 0; i < n; ++i)
      all.push_back({n == 1 ? "tiny" : "run" + std::to_string(i),
                     &capture_,
                     "run" + std::to_string(i % 2),
                     {},
                     {}});
    return all;
  }

  Figure make(const std::vector<std::string>& words, int n = 1) const {
    std::vector<std::string> all = words;
    for (int i = 0; i < n; ++i) all.insert(all.begin() + 1, "x.h5");
    FigureRequest request = parse_figure_words(all);
    return make_figure(request, inputs(n));
  }

  Figure preset(const std::string& name, int n = 1) const {
    FigureRequest request;
    request.preset = "2601.22966/" + name;
    request.inputs.assign(static_cast<std::size_t>(n), "x.h5");
    return make_figure(request, inputs(n));
  }

  test::FakeCapture capture_;
};

std::string all_notes(const Figure& figure) {
  std::string text;
  for (const FigureNote& note : figure.notes) text += note.text + "\n";
  return text;
}

std::vector<std::string> texts(const std::vector<FigureTick>& ticks) {
  std::vector<std::string> all;
  for (const FigureTick& tick : ticks) all.push_back(tick.text);
  return all;
}

TEST_F(MakeFigure, AttentionMeanHasTheScoreOfItsRows) {
  const Figure figure = make({"attention-mean"});
  ASSERT_EQ(figure.panels.size(), 1u);
  const FigurePanel& panel = figure.panels[0];
  EXPECT_EQ(panel.title, "tiny: average attention, all 2 layers, all 3 heads");
  const Grid& map = panel.maps[0].grid;
  EXPECT_EQ(map.rows(), kT);
  // Five of six heads spread evenly, one sends everything to token 0.
  EXPECT_NEAR(map.at(3, 1), 5.0 / 6 / 4, 1e-6);
  EXPECT_FALSE(map.exists(2, 3));
  double harmonic = 0;
  for (int q = 0; q < kT; ++q) harmonic += 1.0 / (q + 1);
  const double score = (5 * harmonic / kT + 1) / 6;
  EXPECT_THAT(panel.boxes[0].lines,
              Contains(HasSubstr(std::to_string(score).substr(0, 5) + " (row 0 in)")));
  EXPECT_THAT(all_notes(figure), HasSubstr("row 0 included"));
  EXPECT_EQ(figure.width_mm, 85);
}

TEST_F(MakeFigure, AttentionHeadIsOneOfThem) {
  const Figure figure = make({"attention-head", "--layer", "1", "--head", "2", "--tokens", "5"});
  const Grid& map = figure.panels[0].maps[0].grid;
  EXPECT_EQ(map.rows(), 5);
  EXPECT_EQ(map.at(4, 0), 1);
  EXPECT_EQ(map.at(4, 1), 0);
  EXPECT_EQ(figure.panels[0].boxes[0].lines[1], "1.000 (row 0 in)");
  EXPECT_EQ(figure.colors[0].range.lo, 0);
  EXPECT_EQ(figure.colors[0].range.hi, 1);
  EXPECT_THROW(make({"attention-head", "--layer", "7"}), Error);
}

TEST_F(MakeFigure, TokenTextsStandAtTheAxesWhenAsked) {
  const Figure figure = make({"attention-mean", "--token-labels"});
  EXPECT_EQ(figure.panels[0].x.ticks[0].text, "<s>");
  EXPECT_EQ(figure.panels[0].y.ticks[3].text, "w3");
  EXPECT_TRUE(figure.panels[0].x.is_sideways);
}

TEST_F(MakeFigure, AttentionGridPutsEveryHeadInItsPlace) {
  const Figure figure = make({"attention-grid"});
  const Grid& map = figure.panels[0].maps[0].grid;
  ASSERT_EQ(map.rows(), kL * (kT + 1) - 1);
  ASSERT_EQ(map.cols(), kH * (kT + 1) - 1);
  // The sink head is layer 1, head 2: its last row sends everything to key 0.
  EXPECT_EQ(map.at((kT + 1) + kT - 1, 2 * (kT + 1)), 1);
  EXPECT_TRUE(std::isnan(map.at(kT, 0)));  // the line between layers
  EXPECT_TRUE(figure.panels[0].maps[0].nan_is_paper);
  EXPECT_THAT(texts(figure.panels[0].x.ticks), ElementsAre("0", "1", "2"));
  EXPECT_THAT(figure_csv(figure), ::testing::Not(HasSubstr("nan")));
}

TEST_F(MakeFigure, ResidualSortedNamesOriginalDimensions) {
  const Figure figure = make({"residual-sorted", "--dims", "3"});
  const FigurePanel& panel = figure.panels[0];
  EXPECT_THAT(texts(panel.x.ticks), ElementsAre("4", "5", "0"));
  EXPECT_EQ(panel.maps[0].grid.cols(), 3);
  EXPECT_NEAR(panel.maps[0].grid.at(0, 0), (2 * 5000 + 1) / 3.0, 1e-3);
  EXPECT_NEAR(panel.maps[0].grid.at(11, 1), 51, 1e-5);
  EXPECT_EQ(panel.boxes[0].lines[0], "Max activation 5,000.0");
  // Σ of the first dimension / Σ of all: 278.7 / (278.7 + 42.2 + 5).
  const double first = (2 * 5000.0 + 34) / 36, second = (1 + 11 * 46.0) / 12;
  EXPECT_EQ(panel.boxes[0].lines[1],
            "First 1‰ ratio " +
                std::to_string(std::round(10000 * first / (first + second + 5)) / 10).substr(0, 5) +
                " ‰");
  const Figure rest = make({"residual-sorted", "--order", "sorted-without-first", "--dims", "1"});
  EXPECT_THAT(texts(rest.panels[0].x.ticks), ElementsAre("5"));
}

TEST_F(MakeFigure, NormGainsHaveStarsAndSignedBoxes) {
  const Figure figure = make({"norm-gains"});
  ASSERT_EQ(figure.panels.size(), 2u);
  EXPECT_EQ(figure.panels[0].title, "tiny: Attention pre-norm gain");
  EXPECT_THAT(texts(figure.panels[0].x.ticks), ::testing::IsSupersetOf({"★1", "★3"}));
  EXPECT_EQ(figure.panels[0].boxes[0].lines[0], "-0.004");
  EXPECT_EQ(figure.panels[0].boxes[1].lines[0], "8");
  EXPECT_EQ(figure.colors[0].range.scale, Scale::log);
  EXPECT_EQ(figure.colors[0].range.center, 1);
  EXPECT_NEAR(figure.colors[0].range.lo * figure.colors[0].range.hi, 1, 1e-9);
  EXPECT_EQ(figure.colors[0].range.hi, 100);  // 1/0.004 would be farther
  EXPECT_TRUE(figure.colors[0].map.diverging);
}

TEST_F(MakeFigure, NormGainsOfAModelNeedNoCapture) {
  FigureInput model;
  model.name = "weights";
  model.model.n_layers = 2;
  model.model.d_model = 3;
  // A norm of another width comes first, and is none of the residual stream.
  model.norms = {
      {"k_norm", "rms", 1e-5, 0, {0, 1}, 2, {1, 7, 1, 1}, {1, 7, 1, 1}, {}, {}},
      {"ln1", "rms", 1e-5, 0, {0, 1}, 3, {1, 0.5F, 1, 1, 1, 4}, {1, 0.5F, 1, 1, 1, 4}, {}, {}}};
  FigureRequest request = parse_figure_words({"norm-gains", "m"});
  const Figure figure = make_figure(request, {model});
  EXPECT_EQ(figure.panels[0].maps[0].grid.at(1, 2), 4);
  request.kind = "attention-mean";
  try {
    make_figure(request, {model});
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("weights: expected a capture"));
  }
}

TEST_F(MakeFigure, SinkHeadsAndKeyMassAndGaps) {
  const Figure heads = make({"sink-heads"});
  const Grid& map = heads.panels[0].maps[0].grid;
  ASSERT_EQ(map.rows(), kH);
  ASSERT_EQ(map.cols(), kL);
  EXPECT_NEAR(map.at(Planted::sink_head, Planted::sink_layer), 1, 1e-6);
  EXPECT_LT(map.at(Planted::sink_head, 0), 0.3);
  EXPECT_THAT(all_notes(heads), HasSubstr("16.7 %, 1 of 6 heads"));

  const Figure mass = make({"key-mass"});
  const FigureSeries& mean = mass.panels[0].series[0];
  EXPECT_EQ(mean.style, FigureSeries::Style::bars);
  EXPECT_NEAR(mass.panels[0].series[1].y[0], 1, 1e-6);  // the strongest head
  EXPECT_TRUE(std::isfinite(mean.y[3]));
  EXPECT_TRUE(std::isnan(mean.y[4]));  // seen by eight queries only

  const Figure gaps = make({"logit-gap"});
  const auto& series = gaps.panels[0].series;
  EXPECT_THAT(series[0].y, ElementsAre(0, 1, 2, 10, 11));
  EXPECT_THAT(series[1].y, ElementsAre(12));
  EXPECT_NEAR(series[2].y[0], std::log(11 * 0.9 / 0.1), 1e-9);
}

TEST_F(MakeFigure, LinesOverDepthAndPosition) {
  const Figure values = make({"value-norms"});
  EXPECT_THAT(values.panels[0].series[0].y, ElementsAre(0.5, 1));
  EXPECT_THAT(values.panels[0].series[1].y, ElementsAre(2, 4));
  EXPECT_TRUE(values.panels[0].y.is_log);

  const Figure lengths = make({"length-lines"});
  ASSERT_EQ(lengths.panels[0].series.size(), 2u);
  EXPECT_NEAR(lengths.panels[0].series[0].y[4], (5.0 / 5 + 1) / 6, 1e-6);
  EXPECT_NEAR(lengths.panels[0].series[1].y[4], 1.0 / 5, 1e-12);

  const Figure depth = make({"depth-lines"});
  ASSERT_EQ(depth.panels.size(), 3u);
  EXPECT_THAT(depth.panels[0].series[0].y, ElementsAre(51, 5000, 5000));

  const Figure kurtosis = make({"kurtosis"});
  ASSERT_FALSE(kurtosis.panels[0].series.empty());
  EXPECT_EQ(kurtosis.panels[0].series[0].y.size(), 3u);
}

TEST_F(MakeFigure, ChannelTokenPicksTheStateWithTheLargestValue) {
  const Figure figure = make({"channel-token"});
  const FigurePanel& panel = figure.panels[0];
  EXPECT_THAT(panel.title, HasSubstr("blocks.0.hook_resid_post"));
  EXPECT_EQ(panel.maps[0].grid.at(0, Planted::massive_dim), 5000);
  EXPECT_EQ(panel.maps[0].grid.at(1, 0), 1);  // magnitudes
  EXPECT_EQ(panel.boxes[0].lines[0], "Max |x| 5,000.0: token 0, dim 4");
}

TEST_F(MakeFigure, InputsShareARangeUnlessEachIsAskedFor) {
  const Figure shared = make({"residual-sorted"}, 2);
  ASSERT_EQ(shared.panels.size(), 2u);
  EXPECT_EQ(shared.colors.size(), 1u);
  EXPECT_EQ(shared.n_columns, 2);
  EXPECT_EQ(shared.width_mm, 170);
  EXPECT_FALSE(shared.panels[0].has_color_bar);
  EXPECT_TRUE(shared.panels[1].has_color_bar);
  const Figure each = make({"residual-sorted", "--range", "each"}, 2);
  EXPECT_EQ(each.colors.size(), 2u);
  EXPECT_EQ(each.panels[1].maps[0].colors, 1);
  EXPECT_TRUE(std::any_of(each.notes.begin(), each.notes.end(),
                          [](const FigureNote& note) { return note.is_warning; }));
  const Figure narrow = make({"residual-sorted", "--width", "column"}, 2);
  EXPECT_EQ(narrow.n_columns, 1);
}

TEST_F(MakeFigure, RangesAndScalesAreThoseAskedFor) {
  const Figure figure =
      make({"residual-sorted", "--range", "1,40", "--scale", "log", "--colormap", "gray"});
  EXPECT_EQ(figure.colors[0].range.lo, 1);
  EXPECT_EQ(figure.colors[0].range.hi, 40);
  EXPECT_EQ(figure.colors[0].range.scale, Scale::log);
  EXPECT_EQ(figure.colors[0].map.name, "gray");
  EXPECT_THAT(all_notes(figure), HasSubstr("above"));
  const Figure lines = make({"length-lines", "--range", "0,2"});
  EXPECT_EQ(lines.panels[0].y.high, 2);
}

TEST_F(MakeFigure, CompareShowsBothAndTheirDifferenceAroundZero) {
  const Figure figure = make({"compare"}, 2);
  ASSERT_EQ(figure.panels.size(), 3u);
  EXPECT_EQ(figure.panels[0].maps[0].colors, figure.panels[1].maps[0].colors);
  EXPECT_EQ(figure.panels[2].maps[0].colors, 1);
  EXPECT_TRUE(figure.colors[1].map.diverging);
  EXPECT_EQ(figure.colors[1].range.center, 0);
  EXPECT_EQ(figure.panels[2].maps[0].grid.at(5, 2), 0);
}

TEST_F(MakeFigure, CompareTakesSeveralInputsAndAPlaceForEach) {
  const Figure heads = make({"compare", "--layers", "0,1,-1", "--heads", "2,0,-1"}, 3);
  ASSERT_EQ(heads.panels.size(), 5u);
  EXPECT_EQ(heads.panels[0].title, "L0H2");
  EXPECT_EQ(heads.panels[2].title, "all layers, all heads");
  const Grid one = make({"attention-head", "--layer", "1", "--head", "0"}).panels[0].maps[0].grid;
  EXPECT_EQ(heads.panels[1].maps[0].grid.at(5, 2), one.at(5, 2));
  EXPECT_EQ(heads.panels[3].title, "difference: L1H0 − L0H2");
  EXPECT_THROW(make({"compare", "--layers", "0,1"}, 3), Error);
  EXPECT_THROW(make({"attention-head", "--layers", "0"}), Error);
}

TEST_F(MakeFigure, CompareOfStatesIsSignedAroundZero) {
  const Figure figure =
      make({"compare", "--of", "residual-sorted", "--layers", "0,1", "--order", "natural"}, 2);
  ASSERT_EQ(figure.panels.size(), 3u);
  EXPECT_EQ(figure.panels[0].maps[0].grid.cols(), kD);
  EXPECT_EQ(figure.panels[0].x.label, "Dimension");
  EXPECT_EQ(figure.colors[0].label, "x");
  EXPECT_EQ(figure.colors[0].range.center, 0);
}

TEST_F(MakeFigure, CompareOfGainsTakesTheRoleAskedFor) {
  const Figure figure = make({"compare", "--of", "norm-gains", "--role", "ln2"}, 2);
  EXPECT_EQ(figure.panels[0].maps[0].grid.at(0, 1), 2);
  EXPECT_EQ(figure.panels[2].maps[0].grid.at(0, 1), 2);  // 4 − 2
  EXPECT_TRUE(figure.panels[0].maps[0].is_about_one);
  EXPECT_THROW(make({"compare", "--of", "norm-gains", "--role", "ln7"}, 2), Error);
}

TEST_F(MakeFigure, AViewIsAPartWithTheColorsOfTheWhole) {
  const Figure whole = make({"attention-mean"});
  const Figure part = make({"attention-mean", "--view", "3:7,1:4"});
  const Grid& map = part.panels[0].maps[0].grid;
  ASSERT_EQ(map.rows(), 4);
  ASSERT_EQ(map.cols(), 3);
  EXPECT_EQ(map.at(2, 1), whole.panels[0].maps[0].grid.at(5, 2));
  EXPECT_EQ(part.colors[0].range, whole.colors[0].range);
  EXPECT_EQ(part.panels[0].y.names, (std::vector<std::string>{"3", "4", "5", "6"}));
  EXPECT_EQ(part.panels[0].y.low, 3.5);
  EXPECT_EQ(part.panels[0].x.high, 2.5);
  EXPECT_THAT(all_notes(part), HasSubstr("rows 3 to 6, columns 1 to 3"));
  // Above the diagonal nothing is there: rows 1 and 2 of columns 2 to 3.
  const Grid corner = make({"attention-mean", "--view", "1:4,2:4"}).panels[0].maps[0].grid;
  EXPECT_FALSE(corner.exists(0, 0));
  EXPECT_TRUE(corner.exists(1, 0));
  EXPECT_FALSE(corner.exists(1, 1));
  EXPECT_THROW(make({"attention-mean", "--view", "90:99,0:2"}), Error);
  EXPECT_THROW(make({"depth-lines", "--view", "0:1,0:1"}), Error);
}

TEST_F(MakeFigure, AViewKeepsTheStarsAndBoxesInIt) {
  const Figure part = make({"norm-gains", "--view", "1:2,1:4"});
  EXPECT_THAT(texts(part.panels[0].x.ticks), Contains("★3"));
  bool has_box = false;
  for (const FigureBox& box : part.panels[0].boxes) {
    EXPECT_EQ(box.y, 0);
    has_box = has_box || box.x == 0;  // dimension 1 of layer 1
  }
  EXPECT_TRUE(has_box);
}

TEST_F(MakeFigure, PresetFigure1IsBluesWithGreenAbove100) {
  const Figure figure = preset("fig1");
  ASSERT_EQ(figure.panels.size(), 2u);
  EXPECT_EQ(figure.colors[0].map.name, "Blues");
  EXPECT_EQ(figure.colors[0].range.lo, 0);
  EXPECT_EQ(figure.colors[0].range.hi, 1);
  EXPECT_EQ(figure.panels[0].boxes[0].lines[0], "First Token Score");
  const FigureColors& states = figure.colors[1];
  EXPECT_EQ(states.above_text, ">100");
  EXPECT_NEAR(states.range.hi, 51, 1e-4);  // the largest cell that is not green
  EXPECT_EQ(color_of(3000, states.range, states.map), states.map.over);
  EXPECT_EQ(figure.panels[1].boxes[0].lines[0], "Max Activation Value: 5000.0");
  EXPECT_THAT(texts(figure.panels[1].x.ticks), ElementsAre("4", "3"));  // columns 0 and 5
  EXPECT_EQ(figure.n_columns, 1);
  EXPECT_EQ(preset("fig8").n_columns, 2);
}

TEST_F(MakeFigure, PresetFigure2SharesOneRange) {
  const Figure figure = preset("fig2", 2);
  ASSERT_EQ(figure.panels.size(), 2u);
  EXPECT_EQ(figure.colors.size(), 1u);
}

TEST_F(MakeFigure, PresetFigure5IsLinearWithStars) {
  const Figure figure = preset("fig5");
  ASSERT_EQ(figure.panels.size(), 2u);
  EXPECT_EQ(figure.panels[1].title, "FFN PreNorm Lambda");
  EXPECT_EQ(figure.colors[0].range.scale, Scale::linear);
  EXPECT_EQ(figure.colors[0].range.lo, 0);
  EXPECT_EQ(figure.colors[0].range.hi, 8);
  EXPECT_THAT(texts(figure.panels[0].x.ticks), Contains("★3"));
}

TEST_F(MakeFigure, PresetFigure6AddsTheGainsInFrontOfTheNorms) {
  EXPECT_EQ(preset("fig6").panels.size(), 2u) << "without a PreAffine as figure 5";
  test::FakeCapture& capture = capture_;
  capture.put("run0", "norm/ln1/pre_gain", {2, 7}, {1, 1, 1, 7, 1, 1, 1, 1, 0.5, 1, 1, 1, 1, 1});
  const Figure figure = preset("fig6");
  ASSERT_EQ(figure.panels.size(), 3u);
  EXPECT_EQ(figure.panels[1].title, "Attention PreNorm Lambda1");
  EXPECT_EQ(figure.panels[1].maps[0].grid.at(0, 3), 7);
  EXPECT_EQ(figure.panels[1].maps[0].grid.at(1, 1), 0.5);
  EXPECT_THAT(texts(figure.panels[1].x.ticks), Contains("★3"));
  EXPECT_EQ(preset("fig5").panels.size(), 2u);
}

TEST_F(MakeFigure, CsvHoldsEveryNumberBehindThePicture) {
  const std::string csv = figure_csv(make({"residual-sorted", "--dims", "2"}));
  EXPECT_THAT(csv, ::testing::StartsWith("panel,series,x,y,value\n"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + kT * 2);
  EXPECT_THAT(csv, HasSubstr(",map,5,11,51\n"));  // original dimension, token, value
  const std::string bars = figure_csv(make({"key-mass", "--token-labels"}));
  EXPECT_THAT(bars, HasSubstr("strongest head,<s>,,1\n"));
  const std::string map = figure_csv(make({"attention-mean"}));
  EXPECT_EQ(std::count(map.begin(), map.end(), '\n'), 1 + kT * (kT + 1) / 2);  // causal cells only
}

TEST_F(MakeFigure, EveryKindDrawsThePlantedCapture) {
  for (const FigureKind& kind : figure_kinds()) {
    const std::string name = kind.name;
    // The kinds of evidence need more than this capture holds; figure_evidence_test has them.
    if (name == "bound" || name == "shares" || name == "probes") continue;
    const int n = name == "compare" ? 2 : 1;
    const Figure figure = make({kind.name}, n);
    EXPECT_FALSE(figure.panels.empty()) << kind.name;
    for (const FigurePanel& panel : figure.panels)
      EXPECT_NE(panel.maps.empty(), panel.series.empty()) << kind.name;
    EXPECT_GT(figure_csv(figure).size(), 100u) << kind.name;
  }
}

TEST_F(MakeFigure, AnUnfinishedRecordingIsSaidBelow) {
  EXPECT_EQ(all_notes(make({"kurtosis"})).find("unfinished"), std::string::npos);
  capture_.is_complete = false;
  capture_.n_layers_done = 1;
  const Figure figure = make({"kurtosis"});
  ASSERT_FALSE(figure.notes.empty());
  EXPECT_EQ(figure.notes.back().text, "tiny: an unfinished recording, 1 of 2 layers are there.");
  EXPECT_TRUE(figure.notes.back().is_warning);
}

}  // namespace
}  // namespace sinkscope
