// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/panels/residual_panel.h"

#include <gtest/gtest.h>

#include <QCheckBox>
#include <QComboBox>
#include <QSignalSpy>

#include "tests/support/test_application.h"
#include "views/heatmap/heatmap.h"
#include "views/theme.h"

namespace sinkscope {
namespace {

// 4 tokens of a model of 6 dimensions, of which 5 are shown, sorted: 3, 0, 5, 1, 4.
std::shared_ptr<ResidualSnapshot> snapshot() {
  auto made = std::make_shared<ResidualSnapshot>();
  made->title = "mean |x| over 3 block states";
  made->source_text = "first 4 of 9 tokens";
  made->order_text = "dimensions by mean |x| over all tokens and block states";
  made->map = Grid(4, 5, std::vector<float>{900, 40, 9, 2, 1,  //
                                            50,  30, 8, 3, 1,  //
                                            45,  35, 7, 2, 1,  //
                                            48,  20, 9, 4, 0});
  made->tokens = {0, 1, 2, 3};
  made->token_labels = {"The", "·in", "stru", "ment"};
  made->dims = {3, 0, 5, 1, 4};
  made->full_order = {3, 0, 5, 1, 4, 2};
  made->max_abs = {22552, 0, 3};
  made->first_permille_ratio = 94.1;
  made->first_permille_count = 1;
  return made;
}

class ResidualPanelTest : public testing::Test {
 protected:
  ResidualPanelTest() {
    test_application();
    panel_ = std::make_unique<ResidualPanel>();
    panel_->setPalette(theme_palette(Theme::light));
    panel_->resize(620, 480);
    panel_->show();
  }
  QRgb cell(int row, int col) const {
    const QImage picture = picture_of(panel_->heatmap());
    return color_at(picture, panel_->heatmap().cellRect(row, col).center());
  }
  std::unique_ptr<ResidualPanel> panel_;
};

TEST_F(ResidualPanelTest, TicksAreOriginalDimensionsAndTokens) {
  panel_->setSnapshot(snapshot());
  settle();
  keep_picture(picture_of(*panel_), "residual_panel");
  std::vector<std::string> cols, rows;
  for (const Tick& tick : panel_->heatmap().colTicks()) cols.push_back(tick.label);
  for (const Tick& tick : panel_->heatmap().rowTicks()) rows.push_back(tick.label);
  EXPECT_EQ(cols, (std::vector<std::string>{"3", "0", "5", "1", "4"}));
  EXPECT_EQ(rows, (std::vector<std::string>{"The", "in", "stru", "ment"}));
  // The box lies in the lower right corner of the map, where it covers cells of the last row.
  const QImage picture = picture_of(panel_->heatmap());
  const QPointF corner = panel_->heatmap().plotArea().bottomRight() - QPointF(12, 11);
  EXPECT_GT(qGray(color_at(picture, corner)), 200);
  EXPECT_EQ(panel_->heatmap().scene()->box,
            "Max |x| 22,552.0 (token 0, dimension 3)\nFirst 1‰ ratio 94.1 ‰ (1 of 6)");
}

TEST_F(ResidualPanelTest, ASiteIsDrawnAroundZeroAndAnAverageIsNot) {
  auto average = snapshot();
  panel_->setSnapshot(average);
  panel_->setRangeRequest({RangeMode::fixed, 0, 100});
  EXPECT_EQ(cell(0, 0), colormap("viridis").over);
  EXPECT_EQ(cell(1, 4), color_of(1, {0, 100}, colormap("viridis")));

  auto site = snapshot();
  site->request.site = "blocks.1.hook_resid_post";
  site->map = Grid(4, 5, std::vector<float>(20, 0)).with_spans({{0, 5}, {0, 5}, {0, 5}, {0, 5}});
  panel_->setSnapshot(site);
  panel_->setRangeRequest({RangeMode::fixed, -1, 2});
  EXPECT_EQ(panel_->colorScale().range.lo, -2);
  EXPECT_EQ(panel_->colorScale().colormap, "blue-orange");
  EXPECT_EQ(cell(1, 1), colormap("blue-orange").colors[128]);
  panel_->setPalette(theme_palette(Theme::dark));
  EXPECT_EQ(panel_->colorScale().colormap, "blue-orange-dark");
  keep_picture(picture_of(*panel_), "residual_panel_dark");
}

TEST_F(ResidualPanelTest, ReadsOutTokenDimensionAndValue) {
  panel_->setSnapshot(snapshot());
  std::vector<ReadOut> read;
  std::vector<CellRef> picked;
  QObject::connect(panel_.get(), &Panel::hovered, [&](const ReadOut& out) { read.push_back(out); });
  QObject::connect(panel_.get(), &Panel::picked, [&](const CellRef& c) { picked.push_back(c); });
  emit panel_->heatmap().cellHovered(1, 2);
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].lines, (QStringList{"token 1  “in”", "dimension 5", "mean |x| = 8"}));
  emit panel_->heatmap().cellPicked(0, 0);
  ASSERT_EQ(picked.size(), 1u);
  EXPECT_EQ(picked[0].dim, 3);
  EXPECT_EQ(picked[0].token, 0);
  emit panel_->heatmap().cellHovered(-1, -1);
  EXPECT_TRUE(read.back().lines.isEmpty());
}

TEST_F(ResidualPanelTest, TheSelectedDimensionIsFoundInTheOrder) {
  panel_->setSnapshot(snapshot());
  const QImage before = picture_of(panel_->heatmap());
  CellRef selection;
  selection.token = 2;
  selection.dim = 5;
  panel_->setSelection(selection);
  const QImage after = picture_of(panel_->heatmap());
  const QPointF corner = panel_->heatmap().cellRect(2, 2).topLeft();
  EXPECT_NE(color_at(after, corner), color_at(before, corner));
  const QPointF other = panel_->heatmap().cellRect(2, 1).center();
  EXPECT_EQ(color_at(after, other), color_at(before, other));
}

TEST_F(ResidualPanelTest, AKeptOrderIsTheOneOnTheScreen) {
  panel_->setSnapshot(snapshot());
  std::vector<ResidualChoice> asked;
  QObject::connect(panel_.get(), &ResidualPanel::choiceChanged,
                   [&](const ResidualChoice& choice) { asked.push_back(choice); });
  auto* order = panel_->findChildren<QComboBox*>().at(1);
  order->setCurrentIndex(1);
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].order, DimOrder::sorted_without_first);
  order->setCurrentIndex(3);
  EXPECT_EQ(asked.back().given_order, (std::vector<int>{3, 0, 5, 1, 4, 2}));
  panel_->findChild<QCheckBox*>()->setChecked(true);
  EXPECT_TRUE(asked.back().is_corner);
  EXPECT_EQ(asked.back().order, DimOrder::given);
  panel_->setChoice({});
  EXPECT_EQ(asked.size(), 3u);  // being told asks for nothing
}

TEST_F(ResidualPanelTest, CopiesWhatIsVisible) {
  panel_->setSnapshot(snapshot());
  panel_->heatmap().setView({1, 1, 3, 3});
  EXPECT_EQ(panel_->valuesAsText(), "token\t0\t5\n1\t30\t8\n2\t35\t7\n");
  panel_->setSnapshot(nullptr, {}, "run0 has no residual stream");
  EXPECT_EQ(panel_->valuesAsText(), "");
  EXPECT_TRUE(panel_->colorScale().grids.empty());
}

}  // namespace
}  // namespace sinkscope
