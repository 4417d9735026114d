// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/heatmap.h"

#include <gtest/gtest.h>

#include <QMouseEvent>
#include <QSignalSpy>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/draw/prepared_map.h"
#include "tests/support/test_application.h"
#include "views/heatmap/token_text.h"
#include "views/theme.h"

namespace sinkscope {
namespace {

using Scene = std::shared_ptr<HeatmapScene>;

Scene scene_of(const Grid& grid, const RangeRequest& request = {.mode = RangeMode::min_max}) {
  auto scene = std::make_shared<HeatmapScene>();
  scene->pyramid = Pyramid(grid);
  scene->range = find_range(grid, request);
  return scene;
}

class HeatmapTest : public testing::Test {
 protected:
  HeatmapTest() {
    test_application();
    heatmap_ = std::make_unique<Heatmap>();
    heatmap_->setPalette(theme_palette(Theme::light));
    heatmap_->resize(520, 430);
  }

  QImage show(const Scene& scene, const QString& name = {}) {
    heatmap_->setScene(scene);
    const QImage picture = picture_of(*heatmap_);
    if (!name.isEmpty()) keep_picture(picture, name);
    return picture;
  }
  QRgb cell(const QImage& picture, int row, int col) const {
    return color_at(picture, heatmap_->cellRect(row, col).center());
  }
  QWidget* canvas() const {
    for (QWidget* child : heatmap_->findChildren<QWidget*>())
      if (child->inherits("QCustomPlot")) return child;
    return nullptr;
  }
  void send(QEvent&& event) const { QApplication::sendEvent(canvas(), &event); }
  void mouse(QEvent::Type type, const QPointF& at, Qt::MouseButtons buttons) const {
    const QPointF local = at - canvas()->pos();
    const Qt::MouseButton button =
        type == QEvent::MouseMove ? Qt::NoButton : Qt::MouseButton::LeftButton;
    send(QMouseEvent(type, local, canvas()->mapToGlobal(local), button, buttons, Qt::NoModifier));
  }
  void wheel(const QPointF& at, int steps, Qt::KeyboardModifiers keys = Qt::NoModifier) const {
    const QPointF local = at - canvas()->pos();
    send(QWheelEvent(local, canvas()->mapToGlobal(local), {}, {0, 120 * steps}, Qt::NoButton, keys,
                     Qt::NoScrollPhase, false));
  }
  static std::vector<std::string> labels(const std::vector<Tick>& ticks) {
    std::vector<std::string> texts;
    for (const Tick& tick : ticks) texts.push_back(tick.label);
    return texts;
  }

  std::unique_ptr<Heatmap> heatmap_;
};

TEST_F(HeatmapTest, EachCellHasTheColorOfItsValue) {
  const Grid grid(3, 4, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const QImage picture = show(scene_of(grid));
  const Colormap map = colormap("viridis");
  const ValueRange range{0, 11};
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 4; ++c)
      EXPECT_EQ(cell(picture, r, c), color_of(grid.at(r, c), range, map)) << r << ',' << c;
  EXPECT_EQ(labels(heatmap_->rowTicks()), (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_EQ(labels(heatmap_->colTicks()), (std::vector<std::string>{"0", "1", "2", "3"}));
  EXPECT_EQ(heatmap_->note(), "");
}

TEST_F(HeatmapTest, MaskedCellsShowThePaper) {
  const Grid grid = Grid(6, 6, std::vector<float>(36, 1.0F)).with_spans(causal_spans(6, 6));
  const QImage picture = show(scene_of(grid));
  EXPECT_EQ(cell(picture, 1, 4), theme_palette(Theme::light).color(QPalette::Base).rgb());
  EXPECT_NE(cell(picture, 4, 1), cell(picture, 1, 4));
}

TEST_F(HeatmapTest, DarkPaperIsDark) {
  heatmap_->setPalette(theme_palette(Theme::dark));
  const Grid grid = Grid(6, 6, std::vector<float>(36, 1.0F)).with_spans(causal_spans(6, 6));
  const QImage picture = show(scene_of(grid));
  EXPECT_EQ(cell(picture, 0, 5), theme_palette(Theme::dark).color(QPalette::Base).rgb());
  EXPECT_LT(qGray(color_at(picture, {2, 200})), 60);
}

TEST_F(HeatmapTest, EveryKindOfMapDraws) {
  const float nan = std::nanf("");
  const Colormap map = colormap("viridis");
  EXPECT_EQ(cell(show(scene_of(Grid(1, 1, std::vector<float>{7}))), 0, 0), map.colors[128]);
  EXPECT_EQ(cell(show(scene_of(Grid(5, 3, std::vector<float>(15, -2)))), 4, 1), map.colors[128]);
  const QImage hatched = show(scene_of(Grid(2, 3, std::vector<float>(6, nan))), "heatmap_nan");
  EXPECT_TRUE(cell(hatched, 1, 1) == map.nan || qGray(cell(hatched, 1, 1)) < qGray(map.nan));
  const QImage huge = show(scene_of(Grid(1, 3, std::vector<double>{-1.7e308, 1e300, 1.7e308})));
  EXPECT_EQ(cell(huge, 0, 0), map.colors.front());
  EXPECT_EQ(cell(huge, 0, 1), map.colors[128]);
  EXPECT_EQ(cell(huge, 0, 2), map.colors.back());
  show(scene_of(Grid()));  // empty: the placeholder
  EXPECT_TRUE(canvas()->isHidden());
  heatmap_->setScene(nullptr);
  EXPECT_TRUE(canvas()->isHidden());
  EXPECT_EQ(heatmap_->scene(), nullptr);
}

TEST_F(HeatmapTest, FC75_NanIsHatchedAndInfinitiesAreDotted) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Grid grid(2, 2, std::vector<float>{std::nanf(""), kInf, -kInf, 1});
  const QImage picture = show(scene_of(grid), "heatmap_specials");
  const Colormap map = colormap("viridis");
  // Two colors in each special cell, and which two.
  const auto colors_in = [&](int row, int col) {
    std::vector<QRgb> found;
    const QRectF rect = heatmap_->cellRect(row, col).adjusted(4, 4, -4, -4);
    for (double y = rect.top(); y < rect.top() + 24; y += 0.5)
      for (double x = rect.left(); x < rect.left() + 24; x += 0.5) {
        const QRgb color = color_at(picture, {x, y});
        if (std::find(found.begin(), found.end(), color) == found.end()) found.push_back(color);
      }
    return found;
  };
  const auto holds = [](const std::vector<QRgb>& colors, QRgb color) {
    return std::find(colors.begin(), colors.end(), color) != colors.end();
  };
  EXPECT_EQ(colors_in(0, 0).size(), 2u);
  EXPECT_TRUE(holds(colors_in(0, 0), map.nan));
  EXPECT_EQ(colors_in(0, 1).size(), 2u);
  EXPECT_TRUE(holds(colors_in(0, 1), map.colors.back()));
  EXPECT_EQ(colors_in(1, 0).size(), 2u);
  EXPECT_TRUE(holds(colors_in(1, 0), map.colors.front()));
  EXPECT_EQ(colors_in(1, 1).size(), 1u);
}

TEST_F(HeatmapTest, FC79_FramesAndRangesOfALargeMapTake33Milliseconds) {
  constexpr int kSize = 4096;
  std::vector<float> values(std::size_t{kSize} * kSize);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i * 2654435761U % 4093) / 4093;
  const PreparedMap map =
      prepare(Grid(kSize, kSize, std::move(values)).with_spans(causal_spans(kSize, kSize)));
  const Scene scene = scene_of(Grid());
  scene->pyramid = map.pyramid;
  scene->range = {0, 1};
  heatmap_->resize(1000, 800);
  show(scene);
  const auto median = [](std::vector<double> times) {
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    return times[times.size() / 2];
  };
  std::vector<double> frames, ranges;
  for (int step = 0; step < 9; ++step) {
    const double extent = kSize / std::pow(1.25, step);
    frames.push_back(thread_ms([&] {
      heatmap_->setView({kSize - extent, 0, kSize, extent});
      settle();
    }));
    RangeRequest request;
    request.mode = step % 2 == 0 ? RangeMode::percentile : RangeMode::mean_sd;
    ranges.push_back(thread_ms([&] { map.ranges.summary(map.ranges.range(request)); }));
  }
  EXPECT_LT(median(frames), 33);
  EXPECT_LT(median(ranges), 33);
}

TEST_F(HeatmapTest, FC74_OneHotCellIsVisibleAndThePoolingIsWritten) {
  constexpr int kSize = 4096, kRow = 3001, kCol = 77;
  std::vector<float> values(std::size_t{kSize} * kSize);
  values[std::size_t{kRow} * kSize + kCol] = 1;
  const Scene scene = scene_of(Grid(kSize, kSize, std::move(values)));
  show(scene);
  const QRgb hot = colormap("viridis").colors.back();
  for (int step = 0; step < 24; ++step) {
    const QImage picture = picture_of(*heatmap_);
    const QRectF rect = heatmap_->cellRect(kRow, kCol);
    bool seen = false;
    for (int y = -2; y <= 2; ++y)
      for (int x = -2; x <= 2; ++x)
        seen = seen || color_at(picture, rect.center() + QPointF(x, y)) == hot;
    EXPECT_TRUE(seen) << "step " << step;
    if (step == 0) {
      EXPECT_EQ(heatmap_->note(), "max |x| of each pixel");
    }
    wheel(rect.center(), 1);
  }
  EXPECT_LT(heatmap_->view().height(), 40);
  EXPECT_EQ(heatmap_->note(), "");
}

TEST_F(HeatmapTest, TokenLabelsThinOutAndReturn) {
  auto scene = scene_of(Grid(200, 120, std::vector<float>(200 * 120, 1.0F)));
  for (int i = 0; i < 200; ++i) scene->rows.labels.push_back("tok" + std::to_string(i));
  for (int i = 0; i < 120; ++i) scene->cols.labels.push_back("·日本" + std::to_string(i));
  scene->rows.title = "query";
  scene->cols.title = "key";
  show(scene, "heatmap_tokens");
  EXPECT_LT(heatmap_->rowTicks().size(), 40u);
  EXPECT_GT(heatmap_->rowTicks().size(), 8u);
  EXPECT_EQ(heatmap_->rowTicks().front().label, "tok0");
  EXPECT_EQ(heatmap_->rowTicks()[1].position, 10.5);
  heatmap_->setView({50, 30, 56, 36});
  EXPECT_EQ(labels(heatmap_->rowTicks()),
            (std::vector<std::string>{"tok50", "tok51", "tok52", "tok53", "tok54", "tok55"}));
  EXPECT_EQ(heatmap_->colTicks().front().label, "·日本30");
}

TEST_F(HeatmapTest, FC29_4096TokensNeverOverlapAndTheReadoutNamesThem) {
  constexpr int kMany = 4096;
  auto scene = scene_of(Grid(kMany, kMany, std::vector<float>(std::size_t{kMany} * kMany, 0.5F)));
  for (int i = 0; i < kMany; ++i) {
    scene->rows.labels.push_back("query" + std::to_string(i));
    scene->cols.labels.push_back("key" + std::to_string(i));
  }
  show(scene, "heatmap_many_tokens");
  for (const auto* ticks : {&heatmap_->rowTicks(), &heatmap_->colTicks()}) {
    ASSERT_GT(ticks->size(), 4u);
    EXPECT_LT(ticks->size(), 80u);
    // Labels are at least ten pixels apart: 4,096 cells over fewer than 1,000 pixels.
    for (std::size_t i = 1; i < ticks->size(); ++i)
      EXPECT_GT((*ticks)[i].position - (*ticks)[i - 1].position, kMany / 100.0);
  }
  heatmap_->setView({1000, 2000, 1006, 2006});
  EXPECT_EQ(heatmap_->rowTicks().front().label, "query1000");
  EXPECT_EQ(heatmap_->colTicks().back().label, "key2005");
  EXPECT_EQ(cell_name(scene->rows, 4095), "query4095");
}

TEST_F(HeatmapTest, StarredOriginalDimensionsAreTicked) {
  auto scene = scene_of(Grid(4, 576, std::vector<float>(4 * 576, 1.0F)));
  scene->cols.starred = {507, 247};
  scene->rows.indices = {0, 1, 2, -1};
  scene->notes = {{1, 507, "0.004"}, {1, 500, "7.19"}};
  scene->box = "Max activation 22,552.0\nFirst 1‰ ratio 94.1 ‰";
  scene->title = "FFN pre-norm gain";
  show(scene, "heatmap_starred");
  const std::vector<std::string> cols = labels(heatmap_->colTicks());
  EXPECT_NE(std::find(cols.begin(), cols.end(), "★507"), cols.end());
  EXPECT_NE(std::find(cols.begin(), cols.end(), "★247"), cols.end());
  EXPECT_EQ(std::find(cols.begin(), cols.end(), "500"), cols.end());  // too near to 507
  EXPECT_EQ(heatmap_->rowTicks().back().label, "final");
  EXPECT_EQ(cell_name(scene->rows, 3), "final");
}

TEST_F(HeatmapTest, HighlightedValuesHaveTheirOwnColor) {
  auto scene = scene_of(Grid(1, 3, std::vector<float>{1, 100, 101}), {RangeMode::fixed, 0, 100});
  scene->highlight = Highlight{100};
  const QImage picture = show(scene);
  EXPECT_EQ(cell(picture, 0, 2), 0xFF2E8B57);
  EXPECT_EQ(cell(picture, 0, 1), colormap("viridis").colors.back());
}

TEST_F(HeatmapTest, MouseHoversPicksDragsAndResets) {
  show(scene_of(Grid(8, 10, std::vector<float>(80, 1.0F))));
  QSignalSpy hovered(heatmap_.get(), &Heatmap::cellHovered);
  QSignalSpy picked(heatmap_.get(), &Heatmap::cellPicked);
  QSignalSpy moved(heatmap_.get(), &Heatmap::viewChanged);
  const QPointF at = heatmap_->cellRect(5, 7).center();
  mouse(QEvent::MouseMove, at, Qt::NoButton);
  ASSERT_EQ(hovered.count(), 1);
  EXPECT_EQ(hovered[0], (QVariantList{5, 7}));
  mouse(QEvent::MouseButtonPress, at, Qt::LeftButton);
  mouse(QEvent::MouseButtonRelease, at, Qt::NoButton);
  ASSERT_EQ(picked.count(), 1);
  EXPECT_EQ(picked[0], (QVariantList{5, 7}));
  send(QEvent(QEvent::Leave));
  EXPECT_EQ(hovered.last(), (QVariantList{-1, -1}));

  // The wheel keeps the cell under the cursor where it is.
  wheel(at, 2);
  EXPECT_EQ(moved.count(), 1);
  EXPECT_NEAR(heatmap_->view().height(), 8 / 1.5625, 1e-9);
  EXPECT_NEAR(heatmap_->cellRect(5, 7).center().x(), at.x(), 1e-6);
  EXPECT_NEAR(heatmap_->cellRect(5, 7).center().y(), at.y(), 1e-6);

  // Dragging moves by what the mouse moves, never beyond the data.
  const CellRect before = heatmap_->view();
  mouse(QEvent::MouseButtonPress, at, Qt::LeftButton);
  mouse(QEvent::MouseMove, at + QPointF(0, 40), Qt::LeftButton);
  EXPECT_NEAR(before.top - heatmap_->view().top,
              40 / heatmap_->plotArea().height() * before.height(), 1e-9);
  mouse(QEvent::MouseMove, at + QPointF(5000, 5000), Qt::LeftButton);
  mouse(QEvent::MouseButtonRelease, at + QPointF(5000, 5000), Qt::NoButton);
  EXPECT_EQ(heatmap_->view().top, 0);
  EXPECT_EQ(heatmap_->view().left, 0);
  EXPECT_EQ(picked.count(), 1);

  mouse(QEvent::MouseButtonDblClick, at, Qt::LeftButton);
  EXPECT_EQ(heatmap_->view(), (CellRect{0, 0, 8, 10}));
}

TEST_F(HeatmapTest, ANewSceneSaysAgainWhatIsUnderTheMouse) {
  show(scene_of(Grid(8, 10, std::vector<float>(80, 1.0F))));
  QSignalSpy hovered(heatmap_.get(), &Heatmap::cellHovered);
  mouse(QEvent::MouseMove, heatmap_->cellRect(5, 7).center(), Qt::NoButton);
  ASSERT_EQ(hovered.count(), 1);
  heatmap_->setScene(scene_of(Grid(8, 10, std::vector<float>(80, 2.0F))));
  ASSERT_EQ(hovered.count(), 2);
  EXPECT_EQ(hovered.last(), (QVariantList{5, 7}));
  heatmap_->setScene(scene_of(Grid(3, 4, std::vector<float>(12, 2.0F))));
  ASSERT_EQ(hovered.count(), 3);
  EXPECT_EQ(hovered.last(), (QVariantList{-1, -1}));
  heatmap_->setScene(nullptr);
  EXPECT_EQ(hovered.count(), 3) << "nothing was under the mouse any more";
}

TEST_F(HeatmapTest, ShiftZoomsColumnsAndCtrlRows) {
  show(scene_of(Grid(20, 30, std::vector<float>(600, 1.0F))));
  wheel(heatmap_->plotArea().center(), 1, Qt::ShiftModifier);
  EXPECT_EQ(heatmap_->view().height(), 20);
  EXPECT_NEAR(heatmap_->view().width(), 24, 1e-9);
  wheel(heatmap_->plotArea().center(), 1, Qt::ControlModifier);
  EXPECT_NEAR(heatmap_->view().height(), 16, 1e-9);
  EXPECT_NEAR(heatmap_->view().width(), 24, 1e-9);
}

TEST_F(HeatmapTest, ACursorFromOutsideDrawsACrosshair) {
  const QImage before = show(scene_of(Grid(4, 5, std::vector<float>(20, 1.0F))));
  QSignalSpy hovered(heatmap_.get(), &Heatmap::cellHovered);
  heatmap_->setCursorCell(CellAt{2, 3});
  heatmap_->setSelectedCell(CellAt{0, 1});
  const QImage after = picture_of(*heatmap_);
  keep_picture(after, "heatmap_cursor");
  const QPointF on_row(heatmap_->cellRect(2, 0).center().x() + 5,
                       std::floor(heatmap_->cellRect(2, 0).center().y()));
  bool changed = false;
  for (int y = -2; y <= 2; ++y)
    changed = changed ||
              color_at(after, on_row + QPointF(0, y)) != color_at(before, on_row + QPointF(0, y));
  EXPECT_TRUE(changed);
  EXPECT_EQ(color_at(after, heatmap_->cellRect(1, 0).center()),
            color_at(before, heatmap_->cellRect(1, 0).center()));
  EXPECT_EQ(hovered.count(), 0);
  heatmap_->setCursorCell(std::nullopt);
  heatmap_->setSelectedCell(std::nullopt);
  EXPECT_EQ(picture_of(*heatmap_), before);
}

TEST_F(HeatmapTest, ANewRangeRecolorsAndWritesItsCounts) {
  show(scene_of(Grid(1, 2, std::vector<float>{0, 50})));
  heatmap_->setRange({0, 10}, "1 above · max 50 · 0 NaN");
  const QImage picture = picture_of(*heatmap_);
  EXPECT_EQ(cell(picture, 0, 1), colormap("viridis").over);
  EXPECT_EQ(heatmap_->note(), "1 above · max 50 · 0 NaN");
  heatmap_->setColormap("gray");
  EXPECT_EQ(cell(picture_of(*heatmap_), 0, 0), colormap("gray").colors.front());
}

TEST_F(HeatmapTest, TheReductionIsChosenAndKept) {
  // 4000 columns of −3, 2, 0, 0, …: a pixel stands for about eight of them.
  std::vector<float> values(4000);
  for (int i = 0; i < 4000; i += 4) values[i] = -3;
  for (int i = 1; i < 4000; i += 4) values[i] = 2;
  const Grid grid(1, 4000, values);
  const Colormap map = colormap("viridis");
  const ValueRange range{-3, 2};
  EXPECT_EQ(cell(show(scene_of(grid)), 0, 2000), color_of(-3, range, map));
  EXPECT_EQ(heatmap_->reduction(), Reduction::max_abs);
  heatmap_->setReduction(Reduction::max);
  EXPECT_EQ(cell(picture_of(*heatmap_), 0, 2000), color_of(2, range, map));
  EXPECT_EQ(heatmap_->note(), "max of each pixel");
  show(scene_of(grid));  // a new scene is shown the same way
  EXPECT_EQ(heatmap_->note(), "max of each pixel");
  heatmap_->setReduction(Reduction::mean);
  EXPECT_LT(color_distance(cell(picture_of(*heatmap_), 0, 2000), color_of(-0.25, range, map)), 0.1);
}

TEST_F(HeatmapTest, OfALargeMapTheOldPictureStaysUntilThePyramidIsThere) {
  std::vector<float> values(std::size_t{40} * 20000, -3);
  for (std::size_t i = 1; i < values.size(); i += 2) values[i] = 2;
  const Grid grid(40, 20000, values);
  ASSERT_GT(grid.size(), Heatmap::kPooledAtOnce);
  const Colormap map = colormap("viridis");
  const ValueRange range{-3, 2};
  std::vector<Reduction> wanted;
  QObject::connect(heatmap_.get(), &Heatmap::pyramidWanted,
                   [&](const Grid& of, Reduction reduction) {
                     EXPECT_TRUE(of.same_values(grid));
                     wanted.push_back(reduction);
                   });
  show(scene_of(grid));
  heatmap_->setReduction(Reduction::max);
  heatmap_->setReduction(Reduction::mean);
  EXPECT_EQ(wanted, (std::vector<Reduction>{Reduction::max, Reduction::mean}));
  EXPECT_EQ(heatmap_->reduction(), Reduction::mean) << "what was asked for last";
  EXPECT_EQ(heatmap_->note(), "max |x| of each pixel") << "what is shown";
  EXPECT_EQ(cell(picture_of(*heatmap_), 20, 10000), color_of(-3, range, map));
  // The answer to the older request, and one about other numbers, are dropped.
  heatmap_->setPyramid(Pyramid(grid, Reduction::max));
  heatmap_->setPyramid(Pyramid(Grid(40, 20000, values), Reduction::mean));
  EXPECT_EQ(heatmap_->note(), "max |x| of each pixel");
  heatmap_->setPyramid(Pyramid(grid, Reduction::mean));
  EXPECT_EQ(heatmap_->note(), "mean of each pixel");
  EXPECT_LT(color_distance(cell(picture_of(*heatmap_), 20, 10000), color_of(-0.5, range, map)),
            0.1);
  // A new map is shown as it comes, and asked for.
  wanted.clear();
  show(scene_of(grid));
  EXPECT_EQ(wanted, std::vector<Reduction>{Reduction::mean});
}

TEST_F(HeatmapTest, SquareCellsAreSquare) {
  auto scene = scene_of(Grid(10, 20, std::vector<float>(200, 1.0F)));
  scene->square_cells = true;
  show(scene, "heatmap_square");
  const QRectF rect = heatmap_->cellRect(3, 3);
  EXPECT_NEAR(rect.width(), rect.height(), 0.5);
}

TEST(TokenText, ShowsWhatCannotBePrinted) {
  EXPECT_EQ(token_text("·The"), QStringLiteral("·The"));
  EXPECT_EQ(token_text("日本語"), QStringLiteral("日本語"));
  EXPECT_EQ(token_text("\xE4\xB8"), QStringLiteral("⟨E4 B8⟩"));
  EXPECT_EQ(token_text("a\xFFz"), QStringLiteral("a⟨FF⟩z"));
  EXPECT_EQ(token_text("\n\t\x07"), QStringLiteral("⏎⇥⟨07⟩"));
  EXPECT_EQ(token_text("👩‍👩‍👧 family", 3), QStringLiteral("👩‍👩‍👧 …"));
  EXPECT_EQ(token_text("exactly5", 8), QStringLiteral("exactly5"));
  EXPECT_EQ(token_text("exactly56", 8), QStringLiteral("exactly…"));
}

}  // namespace
}  // namespace sinkscope
