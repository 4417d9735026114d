// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFont>

namespace sinkscope {

// The one font of figures, DejaVu Sans, loaded by file so that a figure looks the same on every
// display. Needs a QGuiApplication; any thread. Throws Error{not_found} naming the package when the
// file is not there.
QFont figure_font(double point_size);

}  // namespace sinkscope
