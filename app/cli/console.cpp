// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/console.h"

#include <ostream>

#include "app/cli/terminal_text.h"

namespace sinkscope {

void Console::note(const std::string& sentence) const {
  if (verbosity != Verbosity::quiet) err << one_line(sentence) << '\n';
}

void Console::warn(const std::string& sentence) const {
  if (verbosity == Verbosity::quiet) return;
  err << (color ? "\033[33mwarning:\033[0m " : "warning: ") << one_line(sentence) << '\n';
}

void Console::detail(const std::string& sentence) const {
  if (verbosity == Verbosity::verbose) err << one_line(sentence) << '\n';
}

std::string one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool is_control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (c == '\n' || c == '\r') {
      if (!line.empty() && line.back() != ' ') line += ' ';
    } else {
      line += is_control ? '?' : c;
    }
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return terminal_text(line);
}

}  // namespace sinkscope
