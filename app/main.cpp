// SPDX-License-Identifier: GPL-3.0-or-later
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <string>
#include <vector>

#include "app/cli/descriptor_buffer.h"
#include "app/cli/run_cli.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::ios::sync_with_stdio(false);
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  sinkscope::DescriptorBuffer standard_output(STDOUT_FILENO);
  std::ostream out(&standard_output);
  return sinkscope::run_cli(args, std::cin, out, std::cerr);
}
