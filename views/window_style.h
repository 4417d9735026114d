// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

class QStyle;

namespace sinkscope {

// The style of the whole window: Qt's Fusion, whose check boxes have an outline that is seen on a
// dark palette as well. The application owns it.
QStyle* window_style();

}  // namespace sinkscope
