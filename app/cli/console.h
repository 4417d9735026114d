// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <iosfwd>
#include <string>

namespace sinkscope {

enum class Verbosity { quiet, normal, verbose };

// Where a command reads, prints and complains. Results go to `out`; notes, warnings, progress and
// errors go to `err`, so that a pipe carries nothing but results.
struct Console {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  Verbosity verbosity = Verbosity::normal;
  bool err_is_terminal = false;   // a person watches err: a progress bar makes sense there
  bool color = false;             // err may carry color (a terminal, and NO_COLOR is not set)
  std::ostream* bytes = nullptr;  // where data go as they are (-o -); null: to `out`

  // `out` is for texts: what a terminal would obey is escaped on the way (terminal_text.h).
  std::ostream& data() const { return bytes != nullptr ? *bytes : out; }

  // One line on err each; nothing with -q.
  void note(const std::string& sentence) const;
  void warn(const std::string& sentence) const;
  // Only with -v.
  void detail(const std::string& sentence) const;
};

// The text as one line: line breaks become spaces, other ASCII control characters '?', what else a
// terminal would obey is escaped.
std::string one_line(const std::string& text);

}  // namespace sinkscope
