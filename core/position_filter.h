// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace sinkscope {

// Which positions of a run a number is taken over.
struct PositionFilter {
  enum class Kind { all, first, rest, ids };  // rest = all but position 0; ids: by token id
  Kind kind = Kind::all;
  int id_lo = 0, id_hi = 0;  // both ends belong to it; Kind::ids only

  // "all", "first", "rest", "ids:LO-HI", "ids:N". Throws Error{invalid_argument} otherwise.
  static PositionFilter parse(const std::string& text);
  std::string text() const;  // what parse() reads

  bool matches(int position, int token_id) const;
  bool operator==(const PositionFilter&) const = default;
};

}  // namespace sinkscope
