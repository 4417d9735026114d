// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/colormap.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

#include "core/error.h"

namespace sinkscope {

namespace {

// Control points at equal distances, joined by straight lines in OKLab.
void fill(Colormap& map, std::span<const OkLab> points) {
  const double last = static_cast<double>(points.size()) - 1;
  for (int i = 0; i < 256; ++i) {
    const double place = i / 255.0 * last;
    const auto below = static_cast<std::size_t>(std::min(std::floor(place), last - 1));
    const double t = place - static_cast<double>(below);
    const OkLab &a = points[below], &b = points[below + 1];
    map.colors[i] =
        from_ok_lab({std::lerp(a.l, b.l, t), std::lerp(a.a, b.a, t), std::lerp(a.b, b.b, t)});
  }
  map.minus_inf = map.colors.front();
  map.plus_inf = map.colors.back();
}

struct Beside {
  Argb under, over, nan;
};

Colormap sequential(std::string_view name, std::initializer_list<Argb> rgb, const Beside& beside) {
  Colormap map{
      .name = std::string(name), .under = beside.under, .over = beside.over, .nan = beside.nan};
  std::vector<OkLab> points;
  for (const Argb color : rgb) points.push_back(ok_lab(color));
  fill(map, points);
  return map;
}

// Two arms of hue (degrees) from the ends to a neutral middle, mirrored in lightness and chroma.
struct Arms {
  double middle_lightness, end_lightness, low_hue, high_hue;
};

Colormap diverging(std::string_view name, const Arms& arms, const Beside& beside) {
  Colormap map{.name = std::string(name),
               .diverging = true,
               .under = beside.under,
               .over = beside.over,
               .nan = beside.nan};
  std::vector<OkLab> points;
  for (int i = -4; i <= 4; ++i) {
    const double reach = std::abs(i) / 4.0;
    const double hue = (i < 0 ? arms.low_hue : arms.high_hue) * std::numbers::pi / 180;
    // Chroma rises to three quarters of the way and falls a little where the ends grow dark.
    const double chroma = 0.155 * std::sin(reach * 0.62 * std::numbers::pi);
    points.push_back({std::lerp(arms.middle_lightness, arms.end_lightness, reach),
                      chroma * std::cos(hue), chroma * std::sin(hue)});
  }
  fill(map, points);
  return map;
}

Colormap make(std::string_view name) {
  if (name == "viridis")
    return sequential(name,
                      {0x440154, 0x482878, 0x3e4a89, 0x31688e, 0x26828e, 0x1f9e89, 0x35b779,
                       0x6ece58, 0xb5de2b, 0xfde725},
                      {0xFFBFC4CC, 0xFFFF5A2E, 0xFF8A8A8A});
  if (name == "cividis")
    return sequential(name,
                      {0x00224e, 0x123570, 0x3b496c, 0x575d6d, 0x707173, 0x8a8678, 0xa59c74,
                       0xc3b369, 0xe1cc55, 0xfee838},
                      {0xFFCFE3FF, 0xFFFF5A2E, 0xFFB06FB0});
  if (name == "gray")
    return sequential(name, {0x0a0a0a, 0x848484, 0xf6f6f6}, {0xFF2B6CC4, 0xFFE8662A, 0xFFB06FB0});
  if (name == "Blues")
    return sequential(
        name,
        {0xf7fbff, 0xdeebf7, 0xc6dbef, 0x9ecae1, 0x6baed6, 0x4292c6, 0x2171b5, 0x08519c, 0x08306b},
        {0xFFF3D9B1, 0xFF2E8B57, 0xFF9A9A9A});
  if (name == "blue-orange")
    return diverging(name, {0.975, 0.38, 255, 52}, {0xFF0B6E5F, 0xFFC2187F, 0xFF9A9A9A});
  if (name == "blue-red")
    return diverging(name, {0.975, 0.38, 255, 25}, {0xFF1FA187, 0xFFB44FD6, 0xFF9A9A9A});
  return diverging(name, {0.24, 0.88, 240, 62}, {0xFF2FBF8F, 0xFFFF5FB0, 0xFF8A8A8A});
}

}  // namespace

const std::vector<std::string>& colormap_names() {
  static const std::vector<std::string> names = {
      "viridis", "cividis", "gray", "Blues", "blue-orange", "blue-red", "blue-orange-dark"};
  return names;
}

Colormap colormap(std::string_view name) {
  const std::vector<std::string>& names = colormap_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw Error(ErrorKind::invalid_argument,
                fmt::format("color map \"{}\" is none of {}", name, fmt::join(names, ", ")));
  return make(name);
}

Argb color_at(double position, const Colormap& map) {
  if (!(position > 0)) return map.colors.front();
  if (position >= 1) return map.colors.back();
  return map.colors[static_cast<std::size_t>(position * 256)];
}

Argb color_of(double value, const ValueRange& range, const Colormap& map) {
  switch (kind_of(value)) {
    case CellKind::nan:
      return map.nan;
    case CellKind::plus_inf:
      return map.plus_inf;
    case CellKind::minus_inf:
      return map.minus_inf;
    default:
      break;
  }
  if (value < range.lo) return map.under;
  if (value > range.hi) return map.over;
  return color_at(normalized(value, range), map);
}

}  // namespace sinkscope
