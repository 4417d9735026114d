// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli_run.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "app/cli/run_cli.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {

namespace fs = std::filesystem;

CliRun cli(const std::vector<std::string>& args, const std::string& standard_input) {
  std::istringstream in(standard_input);
  std::ostringstream out, err;
  CliRun run;
  run.code = run_cli(args, in, out, err);
  run.out = out.str();
  run.err = err.str();
  return run;
}

std::string program_path() { return std::string(SINKSCOPE_BINARY_DIR) + "/bin/sinkscope"; }

CliRun shell(const std::string& script, const std::string& folder) {
  const std::string scratch = scratch_folder();
  const std::string bin = fs::path(program_path()).parent_path().string();
  write_file(scratch, "script",
             "PATH=\"" + bin + ":$PATH\"\ncd '" + folder + "'\n" + script + "\n");
  const std::string line =
      "bash '" + scratch + "/script' >'" + scratch + "/out' 2>'" + scratch + "/err' </dev/null";
  const int status = std::system(line.c_str());
  CliRun run;
  run.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  run.out = read_file(scratch + "/out");
  run.err = read_file(scratch + "/err");
  return run;
}

std::string write_file(const std::string& folder, const std::string& name,
                       const std::string& content) {
  const std::string path = (fs::path(folder) / name).string();
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int n_lines(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace sinkscope::test
