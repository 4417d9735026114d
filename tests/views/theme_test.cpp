// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/theme.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace sinkscope {
namespace {

TEST(Theme, EachPaletteIsRecognizedAndReadable) {
  for (const Theme theme : {Theme::light, Theme::dark}) {
    const QPalette palette = theme_palette(theme);
    EXPECT_EQ(theme_of(palette), theme);
    const int contrast = std::abs(palette.color(QPalette::Text).lightness() -
                                  palette.color(QPalette::Base).lightness());
    EXPECT_GT(contrast, 150);
  }
}

}  // namespace
}  // namespace sinkscope
