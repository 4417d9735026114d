// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/color_bar.h"

#include <gtest/gtest.h>

#include <QComboBox>
#include <QMouseEvent>
#include <QSignalSpy>
#include <QToolButton>

#include "tests/support/test_application.h"
#include "views/heatmap/color_strip.h"
#include "views/theme.h"

namespace sinkscope {
namespace {

class ColorBarTest : public testing::Test {
 protected:
  ColorBarTest() {
    test_application();
    bar_ = std::make_unique<ColorBar>();
    bar_->setPalette(theme_palette(Theme::light));
    bar_->resize(260, 420);
    bar_->show();
    std::vector<float> values = {0, 0.1F, 0.2F, 0.3F, 0.31F, 0.32F, 1, 7, 25804.7F};
    grid_ = Grid(1, 9, values);
    set({RangeMode::fixed, 0, 1});
    QObject::connect(bar_.get(), &ColorBar::rangeRequested,
                     [this](const RangeRequest& request) { asked_.push_back(request); });
  }
  void set(const RangeRequest& request) {
    ColorBarScale scale;
    scale.request = request;
    scale.range = find_range(grid_, request);
    scale.summary = summarize({&grid_, 1}, scale.range, 10);
    scale.quantity = "attention probability";
    bar_->setScale(scale);
    settle();
  }
  void mouse(QEvent::Type type, const QPointF& at) const {
    QMouseEvent event(type, at, bar_->strip()->mapToGlobal(at), Qt::LeftButton, Qt::LeftButton,
                      Qt::NoModifier);
    QApplication::sendEvent(bar_->strip(), &event);
  }
  QComboBox* combo(int i) const { return bar_->findChildren<QComboBox*>().at(i); }

  std::unique_ptr<ColorBar> bar_;
  Grid grid_;
  std::vector<RangeRequest> asked_;
};

TEST_F(ColorBarTest, DrawsColorsTicksHistogramAndWhatLiesBeyond) {
  const ColorStrip& strip = *bar_->strip();
  const QImage picture = picture_of(*bar_->strip());
  keep_picture(picture_of(*bar_), "color_bar");
  const Colormap map = colormap("viridis");
  const QRectF colors = strip.bar();
  EXPECT_LT(color_distance(color_at(picture, {colors.center().x(), colors.bottom() - 2}),
                           map.colors.front()),
            0.02);
  EXPECT_LT(color_distance(color_at(picture, colors.center()), map.colors[128]), 0.03);
  EXPECT_EQ(color_at(picture, strip.beyond(true).boundingRect().center() + QPointF(0, 2)),
            map.over);
  // Nothing lies below the range, so that there is no lower triangle.
  EXPECT_NE(color_at(picture, strip.beyond(false).boundingRect().center() - QPointF(0, 2)),
            map.under);
  EXPECT_EQ(strip.ticks().front().label, "0.0");
  EXPECT_EQ(strip.ticks().back().label, "1.0");
  // Bins of the histogram: 0 | 0.1 | 0.2 | 0.3 0.31 0.32 | … | 1.
  EXPECT_TRUE(strip.bin(5).isEmpty());
  EXPECT_GT(strip.bin(3).width(), strip.bin(1).width());
  const QRgb paper = color_at(picture, {strip.width() - 2.0, strip.bin(1).center().y()});
  EXPECT_NE(color_at(picture, strip.bin(3).center()), paper);
  EXPECT_EQ(bar_->countsText(), "2 above · max 25,804.7 · 0 NaN");
}

TEST_F(ColorBarTest, DraggingTheUpperHandleAsksForAFixedRange) {
  const QPointF grip = bar_->strip()->handle(true).center();
  const double length = bar_->strip()->bar().height();
  mouse(QEvent::MouseButtonPress, grip);
  mouse(QEvent::MouseMove, grip + QPointF(0, length / 2));
  mouse(QEvent::MouseButtonRelease, grip + QPointF(0, length / 2));
  ASSERT_GE(asked_.size(), 2u);
  EXPECT_EQ(asked_.back().mode, RangeMode::fixed);
  EXPECT_EQ(asked_.back().lo, 0);
  EXPECT_NEAR(asked_.back().hi, 0.5, 1e-9);
}

TEST_F(ColorBarTest, HandlesNeverCross) {
  const QPointF grip = bar_->strip()->handle(false).center();
  mouse(QEvent::MouseButtonPress, grip);
  mouse(QEvent::MouseMove, grip - QPointF(0, 5000));
  EXPECT_LT(asked_.back().lo, asked_.back().hi);
  mouse(QEvent::MouseMove, grip + QPointF(0, 5000));
  EXPECT_NEAR(asked_.back().lo, -1, 1e-9);  // at most the length of the strip away
}

TEST_F(ColorBarTest, ADivergingRangeStaysCentered) {
  set({.mode = RangeMode::fixed, .lo = 0.01, .hi = 100, .scale = Scale::log, .center = 1.0});
  const QPointF grip = bar_->strip()->handle(true).center();
  mouse(QEvent::MouseButtonPress, grip);
  mouse(QEvent::MouseMove, grip + QPointF(0, bar_->strip()->bar().height() / 4));
  EXPECT_NEAR(asked_.back().hi, 10, 1e-6);
  EXPECT_NEAR(asked_.back().lo, 0.1, 1e-6);
  EXPECT_EQ(asked_.back().center, 1.0);
}

TEST_F(ColorBarTest, ChoicesAreRequests) {
  combo(0)->setCurrentIndex(1);
  EXPECT_EQ(asked_.back().mode, RangeMode::percentile);
  combo(1)->setCurrentIndex(2);
  EXPECT_EQ(asked_.back().scale, Scale::symlog);
  EXPECT_EQ(asked_.back().mode, RangeMode::percentile);
  EXPECT_TRUE(combo(2)->isHidden());  // until it is said what the pictures do
  bar_->setReduction(Reduction::from_one);
  EXPECT_FALSE(combo(2)->isHidden());
  QSignalSpy reduction(bar_.get(), &ColorBar::reductionRequested);
  combo(2)->setCurrentIndex(3);
  EXPECT_EQ(reduction.count(), 1);
  // Being told something asks for nothing.
  const std::size_t before = asked_.size();
  set({RangeMode::min_max});
  bar_->setReduction(Reduction::max_abs);
  EXPECT_EQ(asked_.size(), before);
  EXPECT_EQ(reduction.count(), 1);
}

TEST_F(ColorBarTest, FC73_OneKeyGoesThroughAllModes) {
  RangeRequest request{.mode = RangeMode::min_max};
  std::vector<std::string> seen;
  for (int i = 0; i < 5; ++i) {
    seen.push_back(range_text(request) + ' ' + std::string(scale_text(request.scale)));
    request = ColorBar::cycled(request, 1);
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"minmax linear", "percentile linear", "meansd linear",
                                            "percentile log", "percentile symlog"}));
  EXPECT_EQ(request.mode, RangeMode::min_max);
  EXPECT_EQ(ColorBar::cycled(request, -1).scale, Scale::symlog);
  EXPECT_EQ(ColorBar::cycled({RangeMode::fixed, 0, 3}, 1).mode, RangeMode::min_max);
}

TEST_F(ColorBarTest, FC78_TheLockIsShownAndDifferingRangesAreSaidInRed) {
  auto* lock = bar_->findChild<QToolButton*>();
  EXPECT_TRUE(lock->isHidden());
  bar_->setLock(ColorBar::Lock::shared);
  EXPECT_FALSE(lock->isHidden());
  EXPECT_TRUE(lock->isChecked());
  QSignalSpy asked(bar_.get(), &ColorBar::lockRequested);
  lock->click();
  ASSERT_EQ(asked.count(), 1);
  EXPECT_EQ(asked[0][0], false);
  bar_->setLock(ColorBar::Lock::each, true);
  const QImage picture = picture_of(*bar_);
  keep_picture(picture, "color_bar_differ");
  int red = 0;
  for (int y = 0; y < picture.height(); ++y)
    for (int x = 0; x < picture.width(); ++x) red += picture.pixel(x, y) == 0xFFD0342C;
  EXPECT_GT(red, 30);
}

}  // namespace
}  // namespace sinkscope
