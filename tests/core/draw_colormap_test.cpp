// SPDX-License-Identifier: GPL-3.0-or-later
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/draw/colormap.h"
#include "core/error.h"

namespace sinkscope {
namespace {

double lightness(Argb color) { return ok_lab(color).l; }

TEST(OkLab, HasTheCoordinatesOfItsDefinition) {
  EXPECT_NEAR(ok_lab(0xFFFFFFFF).l, 1, 1e-6);
  EXPECT_NEAR(ok_lab(0xFF000000).l, 0, 1e-6);
  const OkLab red = ok_lab(0xFFFF0000);
  EXPECT_NEAR(red.l, 0.62796, 1e-4);
  EXPECT_NEAR(red.a, 0.22486, 1e-4);
  EXPECT_NEAR(red.b, 0.12585, 1e-4);
  for (const Argb color : {0xFF440154u, 0xFF123456u, 0xFFFFFFFFu, 0xFF00FF00u})
    EXPECT_EQ(from_ok_lab(ok_lab(color)), color);
}

TEST(Colormap, SequentialLightnessIsMonotone) {
  for (const char* name : {"viridis", "cividis", "gray", "Blues"}) {
    const Colormap map = colormap(name);
    EXPECT_FALSE(map.diverging);
    const double sign = lightness(map.colors[255]) > lightness(map.colors[0]) ? 1 : -1;
    // Rounding to 8 bits costs a little; over eight steps the direction shows.
    for (int i = 0; i + 8 < 256; ++i)
      EXPECT_GT(sign * (lightness(map.colors[i + 8]) - lightness(map.colors[i])), 0)
          << name << ' ' << i;
  }
}

TEST(Colormap, DivergingLightnessIsSymmetric) {
  for (const char* name : {"blue-orange", "blue-red", "blue-orange-dark"}) {
    const Colormap map = colormap(name);
    EXPECT_TRUE(map.diverging);
    for (int i = 0; i < 128; ++i)
      EXPECT_NEAR(lightness(map.colors[i]), lightness(map.colors[255 - i]), 0.01) << name << i;
    const OkLab middle = ok_lab(map.colors[128]);
    EXPECT_LT(std::hypot(middle.a, middle.b), 0.01) << name;
  }
}

TEST(Colormap, StepsAreEvenToTheEye) {
  for (const std::string& name : colormap_names()) {
    const Colormap map = colormap(name);
    double least = 1, most = 0;
    for (int i = 0; i + 16 < 256; i += 16) {
      const double step = color_distance(map.colors[i], map.colors[i + 16]);
      least = std::min(least, step);
      most = std::max(most, step);
    }
    EXPECT_GT(least, 0.012) << name;
    EXPECT_LT(most / least, 6) << name;
  }
}

TEST(Colormap, OutOfRangeColorsAreUnlikeBothEnds) {
  for (const std::string& name : colormap_names()) {
    const Colormap map = colormap(name);
    for (const Argb outside : {map.under, map.over, map.nan})
      for (const Argb end : {map.colors.front(), map.colors.back()}) {
        EXPECT_GT(color_distance(outside, end), 0.1) << name;
        EXPECT_GT(color_distance(deuteranope(outside), deuteranope(end)), 0.08) << name;
      }
    EXPECT_GT(color_distance(map.under, map.over), 0.1) << name;
    EXPECT_EQ(map.plus_inf, map.colors.back());
    EXPECT_EQ(map.minus_inf, map.colors.front());
  }
}

TEST(Colormap, StaysReadableWithDeuteranopia) {
  for (const std::string& name : colormap_names()) {
    const Colormap map = colormap(name);
    double least = 1;
    for (int i = 0; i < 256; i += 32)
      for (int j = i + 64; j < 256; j += 32)
        least =
            std::min(least, color_distance(deuteranope(map.colors[i]), deuteranope(map.colors[j])));
    EXPECT_GT(least, 0.05) << name;
  }
}

TEST(Colormap, EndsAreTheKnownOnes) {
  EXPECT_EQ(colormap("viridis").colors.front(), 0xFF440154u);
  EXPECT_EQ(colormap("viridis").colors.back(), 0xFFFDE725u);
  EXPECT_EQ(colormap("Blues").colors.front(), 0xFFF7FBFFu);
  EXPECT_EQ(colormap("Blues").colors.back(), 0xFF08306Bu);
}

TEST(Colormap, UnknownNamesListTheKnown) {
  try {
    colormap("jet");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("cividis"), std::string::npos);
  }
}

}  // namespace
}  // namespace sinkscope
