// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/theme.h"

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
  for (const QPalette::ColorRole role : {QPalette::Text, QPalette::WindowText, QPalette::ButtonText,
                                         QPalette::ToolTipText}) {
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

}  // namespace sinkscope
