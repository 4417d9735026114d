// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPalette>

namespace sinkscope {

enum class Theme { light, dark };

// The palette of the whole window. Widgets that paint themselves take every color from here, so
// that switching the theme is one call.
QPalette theme_palette(Theme theme);

// What a palette is, for widgets that only see their own: dark when text is lighter than the base.
Theme theme_of(const QPalette& palette);

}  // namespace sinkscope
