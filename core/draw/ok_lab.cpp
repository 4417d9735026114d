// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>
#include <cmath>

#include "core/draw/colormap.h"

namespace sinkscope {

namespace {

using Rgb = std::array<double, 3>;  // linear light, 0..1

double to_linear(double s) { return s <= 0.04045 ? s / 12.92 : std::pow((s + 0.055) / 1.055, 2.4); }
double to_srgb(double l) {
  return l <= 0.0031308 ? 12.92 * l : 1.055 * std::pow(l, 1 / 2.4) - 0.055;
}

Rgb linear_rgb(Argb color) {
  Rgb rgb;
  for (int i = 0; i < 3; ++i) rgb[i] = to_linear(((color >> (16 - 8 * i)) & 0xFF) / 255.0);
  return rgb;
}

Argb opaque(const Rgb& rgb) {
  Argb color = 0xFF;
  for (const double channel : rgb) {
    const double s = to_srgb(std::clamp(channel, 0.0, 1.0));
    color = color << 8 | static_cast<Argb>(std::lround(255 * s));
  }
  return color;
}

bool in_gamut(const Rgb& rgb) {
  return std::all_of(rgb.begin(), rgb.end(), [](double c) { return c > -1e-4 && c < 1 + 1e-4; });
}

// Matrices: Björn Ottosson, "A perceptual color space for image processing", 2020.
Rgb rgb_of(const OkLab& lab) {
  const double l = std::pow(lab.l + 0.3963377774 * lab.a + 0.2158037573 * lab.b, 3);
  const double m = std::pow(lab.l - 0.1055613458 * lab.a - 0.0638541728 * lab.b, 3);
  const double s = std::pow(lab.l - 0.0894841775 * lab.a - 1.2914855480 * lab.b, 3);
  return {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
          -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
}

}  // namespace

OkLab ok_lab(Argb color) {
  const auto [r, g, b] = linear_rgb(color);
  const double l = std::cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const double m = std::cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const double s = std::cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return {0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
          1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
          0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

Argb from_ok_lab(const OkLab& lab) {
  Rgb rgb = rgb_of(lab);
  if (in_gamut(rgb)) return opaque(rgb);
  double inside = 0, outside = 1;
  for (int i = 0; i < 20; ++i) {
    const double chroma = (inside + outside) / 2;
    rgb = rgb_of({lab.l, chroma * lab.a, chroma * lab.b});
    (in_gamut(rgb) ? inside : outside) = chroma;
  }
  return opaque(rgb_of({lab.l, inside * lab.a, inside * lab.b}));
}

double color_distance(Argb a, Argb b) {
  const OkLab p = ok_lab(a), q = ok_lab(b);
  return std::hypot(p.l - q.l, p.a - q.a, p.b - q.b);
}

Argb deuteranope(Argb color) {
  const auto [r, g, b] = linear_rgb(color);
  return opaque({0.367322 * r + 0.860646 * g - 0.227968 * b,
                 0.280085 * r + 0.672501 * g + 0.047413 * b,
                 -0.011820 * r + 0.042940 * g + 0.968881 * b});
}

}  // namespace sinkscope
