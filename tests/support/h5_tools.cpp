// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/h5_tools.h"

#include <sys/wait.h>

#include <cstdio>
#include <stdexcept>

namespace sinkscope::test {

Printed run_command(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  Printed printed;
  char buffer[4096];
  std::size_t n = 0;
  while ((n = fread(buffer, 1, sizeof buffer, pipe)) > 0) printed.text.append(buffer, n);
  const int status = pclose(pipe);
  printed.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return printed;
}

bool has_command(const std::string& name) { return run_command("command -v " + name).status == 0; }

std::string dump_of(const std::string& file) {
  const Printed printed = run_command("h5dump -p '" + file + "'");
  if (printed.status != 0) throw std::runtime_error("h5dump " + file + ": " + printed.text);
  return printed.text.substr(printed.text.find('\n'));
}

double dumped_number(const std::string& file, const std::string& dataset,
                     const std::string& index) {
  bool is_digit = false;
  std::string count;
  for (const char c : index + ",") {
    if (c == ',' && is_digit) count += count.empty() ? "1" : ",1";
    is_digit = c != ',';
  }
  const Printed printed = run_command("h5dump -y -m %.17g -d '" + dataset + "' -s '" + index +
                                      "' -c '" + count + "' '" + file + "'");
  const auto data = printed.text.find("DATA {");
  if (printed.status != 0 || data == std::string::npos) {
    throw std::runtime_error("h5dump " + dataset + ": " + printed.text);
  }
  return std::stod(printed.text.substr(data + 6));
}

}  // namespace sinkscope::test
