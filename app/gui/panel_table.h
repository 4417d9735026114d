// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <vector>

#include "app/gui/session.h"

namespace sinkscope {

class Panel;

// One panel of the window. A new one is a file pair in views/panels, a function that binds it to
// the session, and one line in panel_table().
struct PanelEntry {
  const char* id;                 // "attention": in settings, and as the name of its tab
  const char* title;              // "Attention"
  std::vector<Picture> pictures;  // what is read while the panel is seen
  Panel* (*make)(Session& session, QWidget* parent);
  QString (*obstacle)(const Session& session);  // why it has nothing to show; empty = it has
};

const std::vector<PanelEntry>& panel_table();

}  // namespace sinkscope
