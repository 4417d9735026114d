// SPDX-License-Identifier: GPL-3.0-or-later
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "app/cli/descriptor_buffer.h"
#include "app/cli/run_cli.h"
#include "capture/engine.h"
#ifdef SINKSCOPE_WITH_GUI
#include "app/gui/window_main.h"
#endif

namespace {

int run(const std::vector<std::string>& args, [[maybe_unused]] int argc,
        [[maybe_unused]] char** argv) {
#ifdef SINKSCOPE_WITH_GUI
  const auto window = sinkscope::window_request(args);
  if (window && sinkscope::has_display()) return sinkscope::run_window(argc, argv, *window);
#endif
  sinkscope::DescriptorBuffer standard_output(STDOUT_FILENO);
  std::ostream out(&standard_output);
  return sinkscope::run_cli(args, std::cin, out, std::cerr);
}

// Verbs that look at files only, and the window's absence of one, never load LibTorch.
bool may_run_a_model(const std::vector<std::string>& args) {
  static const std::set<std::string> never = {"info",   "norms",  "tokenize",  "dump", "rescale",
                                              "figure", "--help", "--version", "-h"};
  return args.empty() || !never.contains(args.front());
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  if (may_run_a_model(args)) sinkscope::restart_with_impatient_threads(argv);
  std::signal(SIGPIPE, SIG_IGN);
  std::ios::sync_with_stdio(false);
  const int code = run(args, argc, argv);
  // Every file is closed by now. LibTorch would spend another tenth of a second on taking its
  // operator tables apart before the memory goes back to the system anyway.
  if (sinkscope::engine_is_loaded()) {
    std::cerr.flush();
    std::_Exit(code);
  }
  return code;
}
