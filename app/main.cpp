// SPDX-License-Identifier: GPL-3.0-or-later
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "app/cli/descriptor_buffer.h"
#include "app/cli/run_cli.h"
#include "app/gui_module.h"
#include "capture/engine.h"
#include "core/error.h"

namespace {

// Every file is closed by now. LibTorch would spend another tenth of a second on taking its
// operator tables apart before the memory goes back to the system anyway.
[[noreturn]] void leave(int code) {
  std::cerr.flush();
  std::_Exit(code);
}

int open_window(int argc, char** argv, const sinkscope::WindowRequest& request) {
  try {
    return sinkscope::load_gui().run_window(argc, argv, request);
  } catch (const sinkscope::Error& error) {  // the module is not there
    std::cerr << "sinkscope: " << error.what() << '\n';
    return sinkscope::kExitUnsupported;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of its write
  std::ios::sync_with_stdio(false);
  const auto window = sinkscope::window_request(args);
  if (window && sinkscope::has_gui() && sinkscope::has_display())
    leave(open_window(argc, argv, *window));
  sinkscope::DescriptorBuffer standard_output(STDOUT_FILENO);
  std::ostream out(&standard_output);
  const int code = sinkscope::run_cli(args, std::cin, out, std::cerr);
  if (sinkscope::engine_is_loaded()) leave(code);
  return code;
}
