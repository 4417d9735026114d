// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window_request.h"

#include <cstdlib>

#include "app/cli/verbs.h"

namespace sinkscope {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::optional<WindowRequest> window_request(const std::vector<std::string>& args) {
  if (args.empty()) return WindowRequest{};
  const std::string& word = args.front();
  if (word == "view") {
    if (args.size() == 1) return WindowRequest{};
    if (args.size() == 2 && !args[1].starts_with('-')) return WindowRequest{args[1]};
    return std::nullopt;
  }
  if (args.size() > 1 || word.starts_with('-')) return std::nullopt;
  for (const Verb& verb : verbs())
    if (word == verb.name) return std::nullopt;
  return WindowRequest{word};
}

bool has_display() {
  const std::string platform = variable("QT_QPA_PLATFORM");
  if (!platform.empty()) return !platform.starts_with("offscreen") && platform != "minimal";
  return !variable("DISPLAY").empty() || !variable("WAYLAND_DISPLAY").empty();
}

}  // namespace sinkscope
