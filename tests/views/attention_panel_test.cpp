// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/panels/attention_panel.h"

#include <gtest/gtest.h>

#include <QLabel>

#include "tests/support/test_application.h"
#include "views/heatmap/heatmap.h"
#include "views/theme.h"
#include "views/widgets/key_mass_strip.h"
#include "views/widgets/thumbnail_grid.h"

namespace sinkscope {
namespace {

constexpr int kT = 6;

// Query q gives key 0 a half (query 0 all) and shares the rest among the others.
float weight(int q, int k) {
  if (k > q) return 0;
  if (q == 0) return 1;
  return k == 0 ? 0.5F : 0.5F / static_cast<float>(q);
}

std::shared_ptr<AttentionSnapshot> one_head() {
  auto snapshot = std::make_shared<AttentionSnapshot>();
  snapshot->request.run = "run0";
  snapshot->request.layers = {15};
  snapshot->request.heads = {5};
  snapshot->title = "blocks.15 (16th of 30), head 5";
  snapshot->source_text = "recorded map";
  std::vector<float> values;
  for (int q = 0; q < kT; ++q)
    for (int k = 0; k < kT; ++k) values.push_back(weight(q, k));
  snapshot->map = Grid(kT, kT, std::move(values)).with_spans(causal_spans(kT, kT));
  for (int t = 0; t < kT; ++t) {
    const std::string text = t == 3 ? "\xE6\x97\xA5" : "·w" + std::to_string(t);
    snapshot->queries.push_back(t);
    snapshot->query_labels.push_back(text);
    snapshot->facts.input.token_text.push_back(text);
    snapshot->facts.input.token_ids.push_back(t);
    double mass = 0;
    for (int q = t; q < kT; ++q) mass += weight(q, t);
    snapshot->key_mass.push_back(mass);
    snapshot->visible.push_back(kT - t);
  }
  snapshot->keys = snapshot->queries;
  snapshot->key_labels = snapshot->query_labels;
  return snapshot;
}

class AttentionPanelTest : public testing::Test {
 protected:
  AttentionPanelTest() {
    test_application();
    panel_ = std::make_unique<AttentionPanel>();
    panel_->setPalette(theme_palette(Theme::light));
    panel_->resize(760, 640);
    panel_->show();
  }
  QRgb cell(int row, int col) {
    const QImage picture = picture_of(panel_->heatmap());
    return color_at(picture, panel_->heatmap().cellRect(row, col).center());
  }
  std::unique_ptr<AttentionPanel> panel_;
};

TEST_F(AttentionPanelTest, DrawsEachProbabilityAndNothingAboveTheDiagonal) {
  panel_->setSnapshot(one_head());
  panel_->setRangeRequest({RangeMode::fixed, 0, 1, Scale::linear, {}});
  settle();
  const ValueRange range{0, 1};
  const Colormap colors = colormap("viridis");
  EXPECT_EQ(cell(4, 0), color_of(0.5, range, colors));
  EXPECT_EQ(cell(4, 2), color_of(0.125, range, colors));
  EXPECT_EQ(cell(0, 0), color_of(1, range, colors));
  EXPECT_EQ(cell(2, 4), theme_palette(Theme::light).color(QPalette::Base).rgb());
  std::vector<std::string> rows;
  for (const Tick& tick : panel_->heatmap().rowTicks()) rows.push_back(tick.label);
  EXPECT_EQ(rows, (std::vector<std::string>{"w0", "w1", "w2", "\xE6\x97\xA5", "w4", "w5"}));
  EXPECT_TRUE(panel_->heatmap().note().contains("max 1"));
  keep_picture(picture_of(*panel_), "attention_panel");
}

TEST_F(AttentionPanelTest, SaysWhatIsUnderTheCursorAndWhatAPinWouldFollow) {
  panel_->setSnapshot(one_head());
  std::vector<ReadOut> read;
  QObject::connect(panel_.get(), &Panel::hovered, [&](const ReadOut& out) { read.push_back(out); });
  emit panel_->heatmap().cellHovered(4, 3);
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].lines[0], QStringLiteral("query 4  “w4”"));
  EXPECT_EQ(read[0].lines[1], QStringLiteral("key 3  “日”"));
  EXPECT_EQ(read[0].lines[2], QStringLiteral("p = 0.125"));
  EXPECT_EQ(read[0].place, QStringLiteral("L15H5 · q4 k3"));
  EXPECT_EQ(read[0].pin.quantity, PinnedCell::Quantity::attention);
  EXPECT_EQ(read[0].pin.cell.layer, 15);
  EXPECT_EQ(read[0].pin.cell.key, 3);
  emit panel_->heatmap().cellHovered(1, 3);
  EXPECT_TRUE(read[1].lines.isEmpty()) << "masked";
  panel_->setPins({{-1, -1, 4, 3, -1, -1}, {2, 1, -1, -1, -1, -1}});
  EXPECT_EQ(panel_->heatmap().pinnedCells(), (std::vector<CellAt>{{4, 3}}));
}

TEST_F(AttentionPanelTest, TheStripBelowShowsTheMassOfEachKey) {
  panel_->setSnapshot(one_head());
  settle();
  const QRectF first = panel_->keyMass().barRect(0), second = panel_->keyMass().barRect(1);
  // Key 0 gets 1 + 5·½, key 1 ½·(1 + ½ + ⅓ + ¼ + ⅕).
  EXPECT_NEAR(second.height() / first.height(), 0.5 * (1 + 1 / 2. + 1 / 3. + 1 / 4. + 1 / 5.) / 3.5,
              0.03);
  panel_->setSnapshot(nullptr, {}, "the map asked for is not recorded");
  EXPECT_TRUE(panel_->colorScale().grids.empty());
  bool says = false;
  for (const QLabel* label : panel_->findChildren<QLabel*>())
    says = says || label->text() == "the map asked for is not recorded";
  EXPECT_TRUE(says);
}

TEST_F(AttentionPanelTest, AllHeadsStandInAGridAndAClickGoesToOne) {
  constexpr int kLayers = 3, kHeads = 4, kSide = 2;
  auto thumbnails = std::make_shared<ThumbnailSnapshot>();
  thumbnails->layers = {0, 2, 5};
  thumbnails->n_heads = kHeads;
  thumbnails->side = kSide;
  std::vector<float> values;
  for (int tile = 0; tile < kLayers * kHeads; ++tile)
    for (const float v : {static_cast<float>(tile) / 11, 0.0F, 0.25F, 0.5F}) values.push_back(v);
  thumbnails->values = std::make_shared<const std::vector<float>>(values);
  thumbnails->all = Grid(kLayers * kHeads * kSide, kSide, values);
  thumbnails->scores = Grid(kLayers, kHeads, std::vector<double>(kLayers * kHeads, 0.75));
  panel_->setSnapshot(one_head());
  panel_->setThumbnails(thumbnails);
  AttentionChoice grid;
  grid.is_grid = true;
  panel_->setChoice(grid);
  panel_->setRangeRequest({RangeMode::fixed, 0, 1, Scale::linear, {}});
  settle();
  const QImage picture = picture_of(const_cast<ThumbnailGrid&>(panel_->grid()));
  const auto corner = [&](int slot, int head) {
    const QRectF tile = panel_->grid().tileRect(slot, head);
    return color_at(picture, tile.topLeft() + QPointF(tile.width(), tile.height()) / 4);
  };
  const Colormap colors = colormap("viridis");
  for (const auto& [slot, head] : {std::pair(0, 0), std::pair(1, 2), std::pair(2, 3)})
    EXPECT_LT(color_distance(corner(slot, head), color_at((slot * kHeads + head) / 11.0, colors)),
              0.01)
        << slot << ", " << head;
  std::vector<CellRef> picked;
  QObject::connect(panel_.get(), &Panel::picked, [&](const CellRef& c) { picked.push_back(c); });
  emit const_cast<ThumbnailGrid&>(panel_->grid()).headPicked(2, 1);
  ASSERT_EQ(picked.size(), 1U);
  EXPECT_EQ(picked[0].layer, 5);
  EXPECT_EQ(picked[0].head, 1);
  EXPECT_FALSE(panel_->choice().is_grid) << "that head is shown";
}

TEST_F(AttentionPanelTest, FC79_ThumbnailsOf1024HeadsPaintWithin200Milliseconds) {
  constexpr int kLayers = 32, kHeads = 32, kSide = 64;
  auto thumbnails = std::make_shared<ThumbnailSnapshot>();
  for (int layer = 0; layer < kLayers; ++layer) thumbnails->layers.push_back(layer);
  thumbnails->n_heads = kHeads;
  thumbnails->side = kSide;
  std::vector<float> values(std::size_t{kLayers} * kHeads * kSide * kSide);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i * 2654435761U % 1000) / 1000;
  thumbnails->values = std::make_shared<const std::vector<float>>(std::move(values));
  std::vector<CellSpan> spans;
  for (int row = 0; row < kLayers * kHeads * kSide; ++row) spans.push_back({0, row % kSide + 1});
  thumbnails->all =
      Grid(kLayers * kHeads * kSide, kSide, thumbnails->values).with_spans(std::move(spans));
  thumbnails->scores = Grid(kLayers, kHeads, std::vector<double>(kLayers * kHeads, 0.5));
  const RangeFinder ranges({thumbnails->all});  // the reading thread's work
  AttentionChoice grid;
  grid.is_grid = true;
  panel_->setChoice(grid);
  settle();
  EXPECT_LT(thread_ms([&] {
              panel_->setThumbnails(thumbnails, ranges);
              settle();
              panel_->grab();
            }),
            200);
}

}  // namespace
}  // namespace sinkscope
