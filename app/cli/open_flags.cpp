// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/open_flags.h"

namespace sinkscope {

void add_open_flags(CommandLine& command, OpenFlags& flags) {
  add_arch_flag(command, flags);
  command.flag("--ignore-index", flags.ignore_index,
               "read the shards that are there, not what the index claims");
}

void add_arch_flag(CommandLine& command, OpenFlags& flags) {
  command.value("--arch", flags.arch, "F.json",
                "the architecture and tensor names as this file describes them (info --arch-json)");
}

OpenOptions open_options(const OpenFlags& flags) {
  return {flags.ignore_index, flags.arch.value_or("")};
}

}  // namespace sinkscope
