// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/draw/value_range.h"

namespace sinkscope {

using Argb = std::uint32_t;  // 0xAARRGGBB, as in QImage::Format_ARGB32; opaque or 0

// 256 colors of one perceptual ramp and what lies beside it. Sequential maps have monotone
// lightness; diverging ones are neutral in the middle and equally light at equal distance from it.
struct Colormap {
  std::string name;
  bool diverging = false;
  std::array<Argb, 256> colors{};
  Argb under = 0, over = 0;  // unlike both ends, so that clipped cells are seen
  Argb nan = 0;
  Argb plus_inf = 0, minus_inf = 0;  // the ends; the painter marks them
};

// viridis (the default), cividis, gray, Blues · blue-orange, blue-red, blue-orange-dark (its
// middle is dark, for dark windows). Throws Error{invalid_argument} listing the names.
Colormap colormap(std::string_view name);
const std::vector<std::string>& colormap_names();

// The color of a cell: `under` and `over` beyond the range.
Argb color_of(double value, const ValueRange& range, const Colormap& map);
// The color at a position of the color axis, 0..1; the ends beyond.
Argb color_at(double position, const Colormap& map);

// Perceptual coordinates (OKLab, Ottosson 2020): lightness 0..1 and two color axes. Their
// Euclidean distance is about how different two colors look.
struct OkLab {
  double l = 0, a = 0, b = 0;
};
OkLab ok_lab(Argb color);
Argb from_ok_lab(const OkLab& lab);  // out-of-gamut colors lose chroma until they fit
double color_distance(Argb a, Argb b);

// As a deuteranope sees it (Machado et al. 2009, severity 1).
Argb deuteranope(Argb color);

}  // namespace sinkscope
