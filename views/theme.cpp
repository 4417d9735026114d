// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/theme.h"

#include <algorithm>
#include <cmath>

namespace sinkscope {

QPalette theme_palette(Theme theme) {
  const bool dark = theme == Theme::dark;
  const QColor window = dark ? QColor(32, 33, 36) : QColor(240, 240, 240);
  const QColor base = dark ? QColor(24, 25, 27) : QColor(255, 255, 255);
  const QColor text = dark ? QColor(226, 227, 229) : QColor(28, 29, 31);
  const QColor muted = dark ? QColor(140, 143, 148) : QColor(110, 113, 118);
  const QColor accent = dark ? QColor(110, 168, 254) : QColor(31, 95, 168);
  QPalette palette(dark ? QColor(54, 56, 60) : QColor(236, 236, 236), window);
  palette.setColor(QPalette::Base, base);
  palette.setColor(QPalette::AlternateBase, window);
  for (const QPalette::ColorRole role :
       {QPalette::Text, QPalette::WindowText, QPalette::ButtonText, QPalette::ToolTipText}) {
    palette.setColor(role, text);
    palette.setColor(QPalette::Disabled, role, muted);
  }
  palette.setColor(QPalette::PlaceholderText, muted);
  palette.setColor(QPalette::ToolTipBase, base);
  palette.setColor(QPalette::Highlight, accent);
  palette.setColor(QPalette::HighlightedText, dark ? QColor(16, 17, 19) : QColor(255, 255, 255));
  palette.setColor(QPalette::Link, accent);
  return palette;
}

Theme theme_of(const QPalette& palette) {
  return palette.color(QPalette::Text).lightness() > palette.color(QPalette::Base).lightness()
             ? Theme::dark
             : Theme::light;
}

QColor line_color(const QPalette& palette, int index) {
  const bool dark = theme_of(palette) == Theme::dark;
  switch (index % 3) {
    case 1:
      return dark ? QColor(255, 167, 89) : QColor(201, 88, 10);
    case 2:
      return dark ? QColor(124, 205, 164) : QColor(26, 127, 90);
    default:
      return dark ? QColor(126, 180, 255) : QColor(31, 95, 168);
  }
}

QColor mark_color(const QPalette& palette) {
  return theme_of(palette) == Theme::dark ? QColor(255, 138, 76) : QColor(208, 78, 12);
}

QColor muted_color(const QPalette& palette) { return palette.color(QPalette::PlaceholderText); }

QColor warning_color(const QPalette& palette) {
  return theme_of(palette) == Theme::dark ? QColor(255, 120, 110) : QColor(178, 34, 24);
}

// A square root, as most tokens receive little: what is small must still be seen.
QColor shade_color(const QPalette& palette, double share) {
  const QColor base = palette.color(QPalette::Base);
  const QColor full =
      theme_of(palette) == Theme::dark ? QColor(46, 104, 178) : QColor(96, 165, 224);
  const double t = std::sqrt(std::clamp(share, 0.0, 1.0));
  const auto mix = [&](int a, int b) { return static_cast<int>(std::lround(a + t * (b - a))); };
  return QColor(mix(base.red(), full.red()), mix(base.green(), full.green()),
                mix(base.blue(), full.blue()));
}

QColor text_on(const QColor& background, const QPalette& palette) {
  const QColor text = palette.color(QPalette::Text);
  const QColor base = palette.color(QPalette::Base);
  const int light = background.lightness();
  return std::abs(text.lightness() - light) >= std::abs(base.lightness() - light) ? text : base;
}

QFont caption_font(const QFont& font) {
  QFont small = font;
  if (font.pointSizeF() > 0)
    small.setPointSizeF(font.pointSizeF() * 0.86);
  else
    small.setPixelSize(std::max(1, font.pixelSize() * 86 / 100));
  return small;
}

}  // namespace sinkscope
