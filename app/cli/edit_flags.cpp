// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/edit_flags.h"

#include <fmt/format.h>

#include "app/cli/prompts.h"
#include "core/error.h"

namespace sinkscope {

WhatIf read_edits(const std::vector<std::string>& flags, Console& console) {
  WhatIf all;
  for (const std::string& flag : flags) {
    const auto first = flag.find_first_not_of(" \t\n");
    const bool is_json = first != std::string::npos && (flag[first] == '{' || flag[first] == '[');
    try {
      for (Edit& edit : parse_what_if(is_json ? flag : read_whole(flag, console)))
        all.push_back(std::move(edit));
    } catch (const Error& error) {
      if (is_json || error.kind() != ErrorKind::invalid_argument) throw;
      throw Error(error.kind(), fmt::format("{}: {}", flag, error.what()));
    }
  }
  return all;
}

}  // namespace sinkscope
