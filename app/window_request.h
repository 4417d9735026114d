// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sinkscope {

// What the window was started for.
struct WindowRequest {
  std::string path;       // a capture or a model; "" = nothing yet
  std::string arch_file;  // describes the model; "" = it says itself what it is
  bool operator==(const WindowRequest&) const = default;
};

// Arguments (without the program's name) that mean the window: none, "view", "view PATH", or "PATH"
// that is no verb; a path may have "--arch F.json" or "--arch=F.json" beside it. nullopt = they are
// the command line's.
std::optional<WindowRequest> window_request(const std::vector<std::string>& args);

// Whether there is a display to open a window on: DISPLAY or WAYLAND_DISPLAY is set, or
// QT_QPA_PLATFORM names a platform that people can see.
bool has_display();

}  // namespace sinkscope
