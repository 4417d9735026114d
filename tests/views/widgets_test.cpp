// SPDX-License-Identifier: GPL-3.0-or-later
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QSignalSpy>
#include <QTest>
#include <cmath>

#include "core/help_texts.h"
#include "tests/support/test_application.h"
#include "views/heatmap/heatmap.h"
#include "views/panels/overview_panel.h"
#include "views/theme.h"
#include "views/widgets/head_squares.h"
#include "views/widgets/help_button.h"
#include "views/widgets/key_mass_strip.h"
#include "views/widgets/layer_slider.h"
#include "views/widgets/pin_table.h"
#include "views/widgets/token_strip.h"

namespace sinkscope {
namespace {

TEST(LayerSlider, PixelsAreLayers) {
  EXPECT_EQ(cell_at(0, 100, 4), 0);
  EXPECT_EQ(cell_at(24.9, 100, 4), 0);
  EXPECT_EQ(cell_at(25, 100, 4), 1);
  EXPECT_EQ(cell_at(250, 100, 4), 3) << "clamped";
  EXPECT_EQ(cell_at(-5, 100, 4), 0);
  EXPECT_EQ(cell_at(5, 100, 0), -1);
}

TEST(HeadSquares, LayoutFitsManyHeadsAndFindsThem) {
  const SquareLayout few = square_layout(220, 9);
  EXPECT_EQ(few.side, 18);
  EXPECT_EQ(few.rows, 1);
  EXPECT_EQ(few.at(2 * 22 + 5, 5, 9), 2);
  EXPECT_EQ(few.at(2 * 22 + 19, 5, 9), -1) << "the gap";
  const SquareLayout many = square_layout(220, 128);
  EXPECT_LE(many.rows, 6);
  EXPECT_LE(many.left(127) + many.side, 220);
  EXPECT_EQ(many.at(many.left(127) + 1, many.top(127) + 1, 128), 127);
}

TEST(TokenStrip, ShowsReadableTokensAndShadesThem) {
  test_application();
  TokenStrip strip;
  strip.setPalette(theme_palette(Theme::light));
  strip.resize(200, 160);
  strip.show();
  strip.setTokens({"<s>", "·keeper", "漢字", "⟨E6 88⟩", "·😀", "↵", "·end"}, {1, 2, 3, 4, 5, 6, 7});
  strip.setShades({1, 0, 0, 0, 0, 0, 0.5});
  EXPECT_EQ(strip.count(), 7);
  EXPECT_EQ(strip.tokenText(1), QStringLiteral("keeper"));
  EXPECT_EQ(strip.tokenText(2), QStringLiteral("漢字"));
  EXPECT_GT(strip.tokenRect(6).top(), strip.tokenRect(5).top()) << "↵ ends the line";
  const QImage picture = strip.viewport()->grab().toImage();
  const double ratio = picture.devicePixelRatio();
  const auto color = [&](int token) {
    const QPointF at = strip.tokenRect(token).topLeft() + QPointF(3, 2);
    return picture.pixelColor((at * ratio).toPoint());
  };
  EXPECT_EQ(color(0), shade_color(strip.palette(), 1));
  EXPECT_EQ(color(1), shade_color(strip.palette(), 0));
  QSignalSpy picked(&strip, &TokenStrip::tokenPicked);
  QTest::mouseClick(strip.viewport(), Qt::LeftButton, {}, strip.tokenRect(3).center().toPoint());
  ASSERT_EQ(picked.size(), 1);
  EXPECT_EQ(picked[0][0].toInt(), 3);
}

TEST(KeyMassStrip, BarsFollowTheMapsColumns) {
  test_application();
  KeyMassStrip strip;
  strip.resize(300, 60);
  strip.setValues({8, 4, 0, 2});
  strip.setColumns(50, 250, 0, 4);
  EXPECT_DOUBLE_EQ(strip.barRect(1).left(), 100);
  EXPECT_DOUBLE_EQ(strip.barRect(1).right(), 150);
  EXPECT_DOUBLE_EQ(strip.barRect(1).height() * 2, strip.barRect(0).height());
  strip.setColumns(50, 250, 1, 3);  // zoomed in: the highest of what is seen fills the strip
  EXPECT_TRUE(strip.barRect(0).isEmpty());
  EXPECT_DOUBLE_EQ(strip.barRect(1).left(), 50);
  EXPECT_GT(strip.barRect(1).height(), 40);
}

TEST(PinTable, IsAProperModelAndCopiesAsText) {
  PinTable pins;
  const QAbstractItemModelTester tester(&pins,
                                        QAbstractItemModelTester::FailureReportingMode::Fatal);
  const PinnedCell peak{PinnedCell::Quantity::residual, {-1, -1, -1, -1, 0, 507}, "blocks.11"};
  const PinnedCell sink{PinnedCell::Quantity::score, {15, 5, -1, -1, -1, -1}};
  pins.add({peak, "L11 t0 d507", "22,552.0", "A"});
  pins.add({sink, "L15H5 sink score", "0.36", "A"});
  pins.add({sink, "L15H5 sink score", "0.37", "B"});
  EXPECT_EQ(pins.rowCount(), 2) << "the same cell is one pin";
  EXPECT_EQ(pins.data(pins.index(1, 2)).toString(), QStringLiteral("0.37"));
  // The runs say what they have there.
  pins.setValues({"A", "B", "C"}, {sink, peak}, {{"0.36", "0.37", ""}, {"22,552.0", "7", "8"}});
  EXPECT_EQ(pins.columnCount(), 4);
  EXPECT_EQ(pins.headerData(3, Qt::Horizontal, Qt::DisplayRole).toString(), QStringLiteral("C"));
  EXPECT_EQ(pins.asText(), QStringLiteral("cell\tA\tB\tC\nL11 t0 d507\t22,552.0\t7\t8\n"
                                          "L15H5 sink score\t0.36\t0.37\t\n"));
  EXPECT_TRUE(pins.removeRows(0, 1));
  EXPECT_EQ(pins.rowCount(), 1);
  EXPECT_FALSE(pins.removeRows(1, 1));
}

TEST(HelpTexts, EveryTermHasASentenceASourceAndACommand) {
  ASSERT_GE(help_texts().size(), 10U);
  for (const HelpText& help : help_texts()) {
    EXPECT_TRUE(help.sentence.ends_with('.')) << help.term;
    EXPECT_FALSE(help.source.empty()) << help.term;
    EXPECT_TRUE(help.command.starts_with("sinkscope ")) << help.term;
    EXPECT_TRUE(help_html(help.term).contains(QStringLiteral("<code>"))) << help.term;
  }
  EXPECT_EQ(find_help("no such term"), nullptr);
}

TEST(OverviewPanel, DrawsEachHeadInTheColorOfItsScore) {
  test_application();
  auto snapshot = std::make_shared<OverviewSnapshot>();
  snapshot->layers = {0, 2, 5};
  snapshot->n_heads = 2;
  snapshot->gu = Grid(2, 3, std::vector<double>{0, 0.5, 1, 0.25, 0.75, 0});
  snapshot->with_row0 = snapshot->without_row0 = snapshot->gu;
  OverviewPanel panel;
  panel.resize(700, 560);
  panel.show();
  panel.setSnapshot(snapshot);
  settle();
  const QImage picture = picture_of(panel.heatmap());
  const Colormap colors = colormap("viridis");
  for (int row = 0; row < 2; ++row)
    for (int col = 0; col < 3; ++col)
      EXPECT_EQ(color_at(picture, panel.heatmap().cellRect(row, col).center()),
                color_at(snapshot->gu.at(row, col), colors))
          << row << ", " << col;
  std::vector<std::string> layers;
  for (const Tick& tick : panel.heatmap().colTicks()) layers.push_back(tick.label);
  EXPECT_EQ(layers, (std::vector<std::string>{"0", "2", "5"})) << "block indices, not places";
  EXPECT_EQ(panel.valuesAsText(),
            QStringLiteral("head\tL0\tL2\tL5\n0\t0\t0.5\t1\n1\t0.25\t0.75\t0\n"));
}

// Mechanisms stand behind the scores in the choice of maps; a capture without them takes them back.
TEST(OverviewPanel, ShowsWhatAModelHasBeyondScores) {
  test_application();
  auto snapshot = std::make_shared<OverviewSnapshot>();
  snapshot->layers = {0, 1, 2};
  snapshot->n_heads = 2;
  snapshot->gu = snapshot->with_row0 = snapshot->without_row0 =
      Grid(2, 3, std::vector<double>{0, 0.5, 1, 0.25, 0.75, 0});
  MechanismMap depth{"Depth weights", "mean weight of each sum", "sum", "read by", {}, {}, {}, {}};
  depth.values = Grid(3, 2, std::vector<double>{0.25, 0.5, std::nan(""), 0.125, 0.75, 0.375});
  depth.layers = {1, -1};
  depth.row_labels = {"embedding", "sum 1", "newest sum"};
  depth.col_labels = {"L1 attn", "final"};
  depth.has_heads = false;
  MechanismMap states{"State of linear attention", "norm", "head", "layer", {}, {2}, {}, {}};
  states.values = Grid(2, 1, std::vector<double>{3, 12});
  states.is_share = false;
  snapshot->mechanisms = {depth, states};
  OverviewPanel panel;
  panel.resize(700, 560);
  panel.show();
  panel.setSnapshot(snapshot);
  ASSERT_EQ(panel.mapChoice().count(), 5);
  panel.mapChoice().setCurrentIndex(3);
  settle();
  const QImage picture = picture_of(panel.heatmap());
  const Colormap colors = colormap("viridis");
  EXPECT_EQ(color_at(picture, panel.heatmap().cellRect(2, 0).center()), color_at(0.75, colors));
  EXPECT_EQ(color_at(picture, panel.heatmap().cellRect(0, 1).center()), color_at(0.5, colors));
  EXPECT_EQ(panel.valuesAsText(),
            QStringLiteral("sum\tL1 attn\tfinal\nembedding\t0.25\t0.5\nsum 1\t\t0.125\n"
                           "newest sum\t0.75\t0.375\n"));
  keep_picture(picture_of(panel), "overview_depth");
  // What is exported is what is shown; which score is, the session says.
  const auto shown = panel.figureRequest();
  ASSERT_TRUE(shown.has_value());
  EXPECT_EQ(shown->kind, "sink-heads");
  EXPECT_EQ(shown->score, "Depth weights");
  EXPECT_EQ(shown->range->hi, 1);
  panel.mapChoice().setCurrentIndex(1);
  EXPECT_FALSE(panel.figureRequest().has_value());
  panel.mapChoice().setCurrentIndex(4);
  EXPECT_EQ(panel.colorScale().range.hi, 12) << "no share: its own range";
  panel.setSelection({.layer = 2, .head = 1});
  auto plain = std::make_shared<OverviewSnapshot>(*snapshot);
  plain->mechanisms.clear();
  panel.setSnapshot(plain);
  EXPECT_EQ(panel.mapChoice().count(), 3);
  EXPECT_EQ(panel.mapChoice().currentIndex(), 0);
}

}  // namespace
}  // namespace sinkscope
