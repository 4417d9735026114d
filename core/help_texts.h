// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string_view>
#include <vector>

namespace sinkscope {

// What a "?" beside a term says. `formula` may be empty.
struct HelpText {
  std::string_view term;      // "sink score": how widgets name it
  std::string_view sentence;  // one, plain
  std::string_view formula;
  std::string_view source;   // paper, or "ours"
  std::string_view command;  // prints the same number
};

const std::vector<HelpText>& help_texts();
const HelpText* find_help(std::string_view term);  // null = there is none

}  // namespace sinkscope
