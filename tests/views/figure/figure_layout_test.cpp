// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/figure_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/views/figure/hand_made.h"
#include "views/figure/text_ruler.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;

TEST(FigureLayout, CoordinatesAreLinearOrLogarithmicBetweenTheEnds) {
  FigureAxis axis;
  axis.low = 4.5;
  axis.high = -0.5;
  EXPECT_DOUBLE_EQ(place_on(axis, 0, 100, 50), 55);
  axis.low = 1;
  axis.high = 100;
  axis.is_log = true;
  EXPECT_DOUBLE_EQ(place_on(axis, 10, 0, 40), 20);
}

TEST(FigureLayout, TicksThinOutAndStarredOnesStay) {
  const std::vector<double> centers = {0, 10, 20, 30, 40};
  const std::vector<double> lengths(5, 8);
  const std::vector<bool> plain(5, false);
  EXPECT_THAT(ticks_that_fit(centers, lengths, plain, 1), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(ticks_that_fit(centers, lengths, plain, 4), ElementsAre(0, 2, 4));
  EXPECT_THAT(ticks_that_fit(centers, lengths, {false, true, false, false, false}, 4),
              ElementsAre(1, 3));
}

TEST(FigureLayout, NothingOverlapsAndEverythingLiesOnThePage) {
  const Figure figure = test::map_figure();
  const FigureLayout layout = lay_out(figure);
  EXPECT_EQ(layout.size.width(), 241);  // 85 mm
  const PanelPlace& place = layout.panels.front();
  EXPECT_GT(place.plot.left(), 20);
  EXPECT_NEAR(place.plot.height() / place.plot.width(), 5.0 / 7, 1e-9);
  EXPECT_GT(place.bar.left(), place.plot.right());
  EXPECT_LT(place.bar.right(), layout.size.width() - 10);  // its tick labels have room
  EXPECT_GT(place.x_label_top, place.plot.bottom());
  EXPECT_GT(layout.notes_top, place.x_label_top + figure.font_pt);
  EXPECT_GT(layout.size.height(), layout.notes_top + figure.font_pt);
  EXPECT_LT(place.title.y(), place.plot.top());
  EXPECT_GT(place.title.y(), figure.font_pt);
  EXPECT_EQ(place.x_ticks.size(), 4u);
  EXPECT_EQ(place.y_ticks.size(), 3u);
}

TEST(FigureLayout, PanelsOfAColumnLineUp) {
  Figure figure = test::line_figure();
  const FigureLayout stacked = lay_out(figure);
  EXPECT_EQ(stacked.panels[0].plot.left(), stacked.panels[1].plot.left());
  EXPECT_GT(stacked.panels[1].plot.top(), stacked.panels[0].x_label_top);
  EXPECT_THAT(stacked.panels[0].legend, ElementsAre(ElementsAre(0, 1)));
  figure.n_columns = 2;
  const FigureLayout beside = lay_out(figure);
  EXPECT_EQ(beside.panels[0].plot.width(), beside.panels[1].plot.width());
  EXPECT_GT(beside.panels[1].plot.left(), beside.panels[0].plot.right());
}

TEST(FigureLayout, PanelsWithoutRoomAreRefused) {
  Figure figure = test::line_figure();
  figure.n_columns = 2;
  figure.width_mm = 25;
  try {
    lay_out(figure);
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("25 mm"));
  }
}

TEST(TextRuler, WrapsAtSpaces) {
  const TextRuler ruler(7);
  const double room = ruler.width("one two ");
  EXPECT_THAT(ruler.wrapped("one two three", 7, room),
              ElementsAre(QString("one two"), QString("three")));
  EXPECT_TRUE(ruler.wrapped("", 7, room).empty());
  EXPECT_NEAR(ruler.width("one", 14), 2 * ruler.width("one", 7), 0.2);
}

}  // namespace
}  // namespace sinkscope
