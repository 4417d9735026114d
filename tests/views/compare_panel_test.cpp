// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/panels/compare_panel.h"

#include <gtest/gtest.h>

#include <QToolButton>

#include "tests/support/test_application.h"
#include "views/heatmap/color_strip.h"
#include "views/heatmap/heatmap.h"
#include "views/panels/compare_link.h"
#include "views/theme.h"

namespace sinkscope {
namespace {

std::vector<int> count_up(int n) {
  std::vector<int> numbers;
  for (int i = 0; i < n; ++i) numbers.push_back(i);
  return numbers;
}

// An attention map of n tokens with `mass` on key 0 and the rest spread evenly.
CompareSide attention_side(const std::string& title, int n, float mass) {
  CompareSide side;
  side.kind = MapKind::attention;
  side.title = title;
  std::vector<float> p(static_cast<std::size_t>(n) * n);
  for (int q = 0; q < n; ++q)
    for (int k = 0; k <= q; ++k)
      p[q * n + k] = q == 0 ? 1 : k == 0 ? mass : (1 - mass) / static_cast<float>(q);
  side.map = Grid(n, n, std::move(p)).with_spans(causal_spans(n, n));
  side.rows = side.cols = count_up(n);
  return side;
}

CompareSide residual_side(const std::string& title, float largest) {
  CompareSide side;
  side.kind = MapKind::residual;
  side.title = title;
  side.map = Grid(3, 4, std::vector<float>{largest, 1, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0});
  side.rows = count_up(3);
  side.cols = {507, 3, 2, 8};
  return side;
}

class ComparePanelTest : public testing::Test {
 protected:
  ComparePanelTest() {
    test_application();
    panel_ = std::make_unique<ComparePanel>();
    panel_->setPalette(theme_palette(Theme::light));
    panel_->resize(820, 700);
    panel_->show();
  }
  void show(std::vector<CompareSide> sides) {
    panel_->setSnapshot(std::make_shared<const CompareSnapshot>(compare(std::move(sides))));
    settle();
  }
  QRgb cell(std::size_t map, int row, int col) const {
    const QImage picture = picture_of(*panel_->maps()[map]);
    return color_at(picture, panel_->maps()[map]->cellRect(row, col).center());
  }
  std::unique_ptr<ComparePanel> panel_;
};

TEST_F(ComparePanelTest, FC78_SidesShareOneRangeUntilTheLockIsOpened) {
  show({residual_side("layer 0", 1), residual_side("layer 11", 7200)});
  panel_->setRangeRequest({.mode = RangeMode::min_max});
  const Colormap map = colormap("viridis");
  // The same value has the same color on both sides, and only one side has the top.
  EXPECT_EQ(cell(0, 0, 1), cell(1, 0, 1));
  EXPECT_EQ(cell(0, 0, 0), map.colors.front());
  EXPECT_EQ(cell(1, 0, 0), map.colors.back());
  EXPECT_EQ(panel_->colorScale().grids.size(), 2u);
  const auto red = [&] {
    const QImage picture = picture_of(*panel_);
    int n = 0;
    for (int y = 0; y < picture.height(); ++y)
      for (int x = 0; x < picture.width(); ++x) n += picture.pixel(x, y) == 0xFFD0342C;
    return n;
  };
  EXPECT_EQ(red(), 0);
  panel_->findChild<QToolButton*>()->click();
  EXPECT_FALSE(panel_->isShared());
  EXPECT_EQ(cell(0, 0, 0), map.colors.back());
  EXPECT_EQ(cell(1, 0, 0), map.colors.back());
  EXPECT_GT(red(), 30);
  keep_picture(picture_of(*panel_), "compare_unlocked");
}

TEST_F(ComparePanelTest, TheDifferenceIsCenteredAtZero) {
  show({attention_side("L3H1", 12, 0.2F), attention_side("L15H5", 12, 0.9F)});
  keep_picture(picture_of(*panel_), "compare_attention");
  ASSERT_EQ(panel_->maps().size(), 3u);
  EXPECT_NEAR(panel_->maps()[0]->width(), panel_->maps()[1]->width(), 2);
  const ValueRange& range = panel_->differenceStrip().range();
  EXPECT_EQ(range.lo, -range.hi);
  EXPECT_EQ(range.center, 0.0);
  const OkLab sink = ok_lab(cell(2, 9, 0)), rest = ok_lab(cell(2, 9, 5));
  EXPECT_GT(sink.b, 0.02);   // more in B: orange
  EXPECT_LT(rest.b, -0.01);  // less: blue
  EXPECT_LT(color_distance(cell(2, 0, 0), colormap("blue-orange").colors[128]), 0.01);
  emit const_cast<ColorStrip&>(panel_->differenceStrip()).rangeDragged(-0.1, 0.1);
  EXPECT_EQ(range.hi, 0.1);
  EXPECT_EQ(cell(2, 9, 0), colormap("blue-orange").over);
  EXPECT_EQ(cell(2, 2, 8), theme_palette(Theme::light).color(QPalette::Base).rgb());
}

TEST_F(ComparePanelTest, UnequalShapesAreSaidAndLinkedByPosition) {
  show({attention_side("short", 6, 0.5F), attention_side("long", 12, 0.5F)});
  EXPECT_FALSE(panel_->notesText().isEmpty());
  EXPECT_EQ(panel_->maps()[2]->scene()->grid().rows(), 6);
  panel_->maps()[1]->setView({2, 1, 6, 5});
  emit panel_->maps()[1]->viewChanged(panel_->maps()[1]->view());
  EXPECT_EQ(panel_->maps()[0]->view(), (CellRect{2, 1, 6, 5}));
  EXPECT_EQ(panel_->maps()[2]->view(), (CellRect{2, 1, 6, 5}));
  std::vector<ReadOut> read;
  QObject::connect(panel_.get(), &Panel::hovered, [&](const ReadOut& out) { read.push_back(out); });
  emit panel_->maps()[1]->cellHovered(4, 0);
  ASSERT_EQ(read.back().lines.size(), 4);
  EXPECT_EQ(read.back().lines[0], "query 4, key 0");
  EXPECT_EQ(read.back().lines[1], "short: 0.5");
  EXPECT_EQ(read.back().lines[2], "long: 0.5");
  emit panel_->maps()[1]->cellHovered(9, 0);
  EXPECT_EQ(read.back().lines[1], "short: not there");
}

TEST_F(ComparePanelTest, PicksWhatTheCellStandsFor) {
  show({residual_side("a", 4), residual_side("b", 5), residual_side("c", 6)});
  keep_picture(picture_of(*panel_), "compare_three");
  EXPECT_EQ(panel_->maps().size(), 5u);
  std::vector<CellRef> picked;
  QObject::connect(panel_.get(), &Panel::picked, [&](const CellRef& c) { picked.push_back(c); });
  emit panel_->maps()[3]->cellPicked(2, 0);
  ASSERT_EQ(picked.size(), 1u);
  EXPECT_EQ(picked[0].token, 2);
  EXPECT_EQ(picked[0].dim, 507);
  const QString text = panel_->valuesAsText();
  EXPECT_TRUE(text.startsWith("a\ntoken\t507\t3\t2\t8\n0\t4\t1\t0\t1\n"));
}

TEST_F(ComparePanelTest, ShowsWhyThereIsNothing) {
  show({residual_side("a", 4), residual_side("b", 5)});
  panel_->setSnapshot(nullptr, "b.h5 has no residual stream");
  EXPECT_TRUE(panel_->maps()[0]->isHidden());
  EXPECT_TRUE(panel_->colorScale().grids.empty());
}

TEST(CompareLink, FollowsTheNumbersBehindTheCells) {
  EXPECT_EQ(linked_place(2.5, {5, 3, 9}, {5, 3, 9}), 2.5);
  EXPECT_EQ(linked_place(2.5, {0, 1, 2, 3}, {0, 2, 4}), 1.25);  // two positions a cell
  EXPECT_EQ(linked_place(1.0, {4, 5, 6}, {0, 1, 2, 3, 4, 5, 6}), 5.0);
  EXPECT_EQ(linked_place(1.0, {3, 1, 2}, {1, 2, 3}), std::nullopt);
  EXPECT_EQ(linked_cell(1, {507, 3}, {1, 2, 3}), 2);
  EXPECT_EQ(linked_cell(0, {507, 3}, {1, 2, 3}), -1);
}

}  // namespace
}  // namespace sinkscope
