// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/command_line.h"
#include "app/cli/open_flags.h"
#include "app/cli/run_cli.h"
#include "app/cli/verbs.h"
#include "app/gui_module.h"
#include "core/error.h"

namespace sinkscope {

// The window itself is opened by main() before any of this (app/gui_module.h); who comes here
// asked for help, wrote something wrong, or cannot have a window.
int run_view(const std::vector<std::string>& args, Console& console) {
  std::string path;
  OpenFlags opening;
  CommandLine command("view", "Opens the window on a capture or a model.");
  command.positional("FILE|MODEL", path, "RUN.h5, RUN.h5::run3, Hugging Face folder, GGUF file",
                     CommandLine::Need::optional);
  add_arch_flag(command, opening);
  if (!command.parse(args, console)) return kExitDone;
  if (opening.arch && path.empty())
    throw Error(ErrorKind::invalid_argument,
                "view: --arch describes a model: expected FILE|MODEL beside it");
  if (!has_gui()) throw Error(ErrorKind::unsupported, "view: this program was built without Qt");
  throw Error(ErrorKind::unsupported,
              "view: no display here (DISPLAY and WAYLAND_DISPLAY are not set); sinkscope "
              "FILE|MODEL says in words what it is, sinkscope figure draws without a display");
}

}  // namespace sinkscope
