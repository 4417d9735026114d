// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QFont>
#include <QPalette>

namespace sinkscope {

enum class Theme { light, dark };

// The palette of the whole window. Widgets that paint themselves take every color from here, so
// that switching the theme is one call.
QPalette theme_palette(Theme theme);

// What a palette is, for widgets that only see their own: dark when text is lighter than the base.
Theme theme_of(const QPalette& palette);

// Colors of what widgets paint themselves, each readable on Base.
QColor line_color(const QPalette& palette, int index = 0);  // of a curve; three, then again
QColor mark_color(const QPalette& palette);                 // what is selected
QColor muted_color(const QPalette& palette);                // captions
QColor warning_color(const QPalette& palette);              // what needs attention
QColor shade_color(const QPalette& palette, double share);  // behind a token; share 0..1
QColor text_on(const QColor& background, const QPalette& palette);
QFont caption_font(const QFont& font);  // one size smaller

}  // namespace sinkscope
