// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window_request.h"

#include <cstdlib>
#include <string_view>

#include "app/cli/verbs.h"

namespace sinkscope {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Takes the flag and its value out of the words; "" where it is not there, or has no value.
std::string take_arch(std::vector<std::string>& words) {
  constexpr std::string_view kFlag = "--arch", kJoined = "--arch=";
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (word->starts_with(kJoined)) {
      std::string value = word->substr(kJoined.size());
      if (!value.empty()) words.erase(word);
      return value;
    }
    if (*word == kFlag && word + 1 != words.end()) {
      std::string value = word[1];
      words.erase(word, word + 2);
      return value;
    }
  }
  return "";
}

}  // namespace

std::optional<WindowRequest> window_request(const std::vector<std::string>& args) {
  std::vector<std::string> words = args;
  WindowRequest request;
  request.arch_file = take_arch(words);
  const bool is_view = !words.empty() && words.front() == "view";
  if (is_view) words.erase(words.begin());
  if (words.empty()) return request.arch_file.empty() ? std::optional(request) : std::nullopt;
  if (words.size() > 1 || words.front().starts_with('-')) return std::nullopt;
  for (const Verb& verb : verbs())
    if (!is_view && words.front() == verb.name) return std::nullopt;
  request.path = words.front();
  return request;
}

bool has_display() {
  const std::string platform = variable("QT_QPA_PLATFORM");
  if (!platform.empty()) return !platform.starts_with("offscreen") && platform != "minimal";
  return !variable("DISPLAY").empty() || !variable("WAYLAND_DISPLAY").empty();
}

}  // namespace sinkscope
