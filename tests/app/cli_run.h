// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

namespace sinkscope::test {

// What one command line left behind.
struct CliRun {
  int code = -1;
  std::string out, err;
};

// Runs the command line inside this process.
CliRun cli(const std::vector<std::string>& args, const std::string& standard_input = "");

// Runs a bash script in `folder`, in which `sinkscope` is the built program.
CliRun shell(const std::string& script, const std::string& folder = ".");

// Path of the built program.
std::string program_path();

// Writes a small file and returns its path.
std::string write_file(const std::string& folder, const std::string& name,
                       const std::string& content);
std::string read_file(const std::string& path);

int n_lines(const std::string& text);

}  // namespace sinkscope::test
