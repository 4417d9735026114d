// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/panels/norms_panel.h"

#include <gtest/gtest.h>

#include <QComboBox>

#include "tests/support/test_application.h"
#include "views/heatmap/heatmap.h"
#include "views/theme.h"

namespace sinkscope {
namespace {

NormStrip strip(const std::string& role, const std::string& title, int n_layers, int width) {
  NormStrip made;
  made.role = role;
  made.title = title;
  std::vector<float> gains(static_cast<std::size_t>(n_layers) * width, 1.0F);
  for (int l = 0; l < n_layers; ++l) made.layers.push_back(l);
  if (role == "ln2") {
    for (int l = 1; l < n_layers; ++l) gains[l * width + 507] = 0.004F;
    gains[506] = 3;
    made.starred = {247, 507};
    made.boxes = {{2, 507, 0.004}, {0, 506, 3}};
  }
  if (role == "ln_final") made.layers = {-1};
  made.map = Grid(n_layers, width, std::move(gains));
  return made;
}

std::shared_ptr<NormsSnapshot> snapshot() {
  auto made = std::make_shared<NormsSnapshot>();
  made->title = "tiny";
  made->n_layers = 4;
  made->view_text = "effective gain";
  made->strips = {
      strip("ln1", "Attention pre-norm gain", 4, 576), strip("ln2", "FFN pre-norm gain", 4, 576),
      strip("ln_final", "Final norm gain", 1, 576), strip("q_norm", "Query norm gain", 4, 64)};
  return made;
}

class NormsPanelTest : public testing::Test {
 protected:
  NormsPanelTest() {
    test_application();
    panel_ = std::make_unique<NormsPanel>();
    panel_->setPalette(theme_palette(Theme::light));
    panel_->resize(440, 900);
    panel_->show();
  }
  QRgb cell(int strip, int row, int col) const {
    Heatmap& map = *panel_->strips()[strip];
    const QImage picture = picture_of(map);  // lays out first
    return color_at(picture, map.cellRect(row, col).center());
  }
  std::unique_ptr<NormsPanel> panel_;
};

TEST_F(NormsPanelTest, ATinyGainIsVisibleBesideALargeOne) {
  panel_->setSnapshot(snapshot());
  panel_->setRangeRequest({RangeMode::fixed, 0.01, 100, Scale::log});
  keep_picture(picture_of(*panel_), "norms_panel");
  const Colormap map = colormap("blue-orange");
  if (panel_->devicePixelRatioF() == 1) {
    EXPECT_TRUE(panel_->strips()[1]->note().startsWith("value farthest from 1 of each pixel · "));
  }
  EXPECT_EQ(cell(1, 2, 507), map.under);                              // 0.004, pooled with 1 and 1
  EXPECT_LT(color_distance(cell(1, 2, 300), map.colors[128]), 0.01);  // 1 is the neutral middle
  const OkLab warm = ok_lab(cell(1, 0, 506));                         // 3
  EXPECT_GT(warm.a, 0.02);
  EXPECT_LT(color_distance(cell(0, 2, 507), map.colors[128]),
            0.01);  // the other strip is untouched
}

TEST_F(NormsPanelTest, StarsBoxesAndRowsAreThoseOfEachStrip) {
  panel_->setSnapshot(snapshot());
  settle();
  ASSERT_EQ(panel_->strips().size(), 4u);
  std::vector<std::string> cols;
  for (const Tick& tick : panel_->strips()[1]->colTicks())
    if (tick.starred) cols.push_back(tick.label);
  EXPECT_EQ(cols, (std::vector<std::string>{"★247", "★507"}));
  ASSERT_EQ(panel_->strips()[1]->scene()->notes.size(), 2u);
  EXPECT_EQ(panel_->strips()[1]->scene()->notes[0].text, "0.004");
  EXPECT_EQ(panel_->strips()[2]->rowTicks().back().label, "final");
}

TEST_F(NormsPanelTest, StripsLineUp) {
  panel_->setSnapshot(snapshot());
  settle();
  for (const Heatmap* map : panel_->strips()) {
    EXPECT_EQ(map->plotArea().left(), panel_->strips()[0]->plotArea().left());
    EXPECT_EQ(map->plotArea().right(), panel_->strips()[0]->plotArea().right());
  }
}

TEST_F(NormsPanelTest, StripsOfOneWidthMoveTogether) {
  panel_->setSnapshot(snapshot());
  settle();
  panel_->strips()[0]->setView({1, 400, 3, 520});
  emit panel_->strips()[0]->viewChanged(panel_->strips()[0]->view());
  EXPECT_EQ(panel_->strips()[1]->view(), (CellRect{1, 400, 3, 520}));
  EXPECT_EQ(panel_->strips()[2]->view(), (CellRect{0, 400, 1, 520}));
  EXPECT_EQ(panel_->strips()[3]->view(), (CellRect{0, 0, 4, 64}));
}

TEST_F(NormsPanelTest, OneRangeCenteredAtOneForAllStrips) {
  panel_->setSnapshot(snapshot());
  const ColorScale scale = panel_->colorScale();
  EXPECT_EQ(scale.grids.size(), 4u);
  EXPECT_EQ(scale.range.center, 1.0);
  EXPECT_NEAR(scale.range.lo * scale.range.hi, 1, 1e-9);
  panel_->setRangeRequest({.mode = RangeMode::min_max, .scale = Scale::log});
  EXPECT_NEAR(panel_->colorScale().range.lo, 0.004, 1e-6);
  EXPECT_NEAR(panel_->colorScale().range.hi, 250, 1e-3);
}

TEST_F(NormsPanelTest, SaysWhatIsUnderTheCursor) {
  panel_->setSnapshot(snapshot());
  ReadOut read;
  QObject::connect(panel_.get(), &Panel::hovered, [&](const ReadOut& out) { read = out; });
  emit panel_->strips()[1]->cellHovered(2, 507);
  EXPECT_EQ(read.lines, (QStringList{"FFN pre-norm gain", "blocks.2 (3rd of 4)", "dimension 507",
                                     "|gain| = 0.004"}));
  EXPECT_EQ(read.cell.layer, 2);
  EXPECT_EQ(read.cell.dim, 507);
}

TEST_F(NormsPanelTest, AsksForTheOtherView) {
  panel_->setSnapshot(snapshot());
  std::vector<GainView> asked;
  QObject::connect(panel_.get(), &NormsPanel::viewAsked,
                   [&](GainView view) { asked.push_back(view); });
  panel_->findChild<QComboBox*>()->setCurrentIndex(1);
  EXPECT_EQ(asked, (std::vector<GainView>{GainView::over_median}));
  panel_->setSnapshot(nullptr);
  EXPECT_TRUE(panel_->colorScale().grids.empty());
  EXPECT_EQ(panel_->valuesAsText(), "");
}

}  // namespace
}  // namespace sinkscope
