// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>

#include "app/cli/command_line.h"
#include "capture/checkpoint/checkpoint.h"

namespace sinkscope {

// How a model is opened; the same for every verb that opens one.
struct OpenFlags {
  bool ignore_index = false;
  std::optional<std::string> arch;
};
void add_open_flags(CommandLine& command, OpenFlags& flags);
void add_arch_flag(CommandLine& command, OpenFlags& flags);  // --arch alone
OpenOptions open_options(const OpenFlags& flags);

}  // namespace sinkscope
