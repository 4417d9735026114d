// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "app/cli/console.h"

namespace sinkscope {

// The verbs of the command line, one file each. Every one takes the arguments behind its name and
// returns the exit code of what it did; what fails is thrown as Error.
int run_info(const std::vector<std::string>& args, Console& console);
int run_norms(const std::vector<std::string>& args, Console& console);
int run_tokenize(const std::vector<std::string>& args, Console& console);
int run_capture(const std::vector<std::string>& args, Console& console);
int run_batch(const std::vector<std::string>& args, Console& console);
int run_compare(const std::vector<std::string>& args, Console& console);
int run_sinks(const std::vector<std::string>& args, Console& console);
int run_absorb(const std::vector<std::string>& args, Console& console);
int run_rescale(const std::vector<std::string>& args, Console& console);
int run_whatif(const std::vector<std::string>& args, Console& console);
int run_probe(const std::vector<std::string>& args, Console& console);
int run_repair(const std::vector<std::string>& args, Console& console);
int run_dump(const std::vector<std::string>& args, Console& console);
int run_view(const std::vector<std::string>& args, Console& console);
int run_figure(const std::vector<std::string>& args, Console& console);

// `sinkscope FILE|MODEL` without a verb: what it is, in short, and the next command. `arch_file`
// describes the model; "" = it says itself what it is.
int run_look(const std::string& path, const std::string& arch_file, Console& console);

struct Verb {
  const char* name;
  const char* usage;    // "MODEL … -o RUN.h5"
  const char* summary;  // one line of the overview
  int (*run)(const std::vector<std::string>& args, Console& console);
};

const std::vector<Verb>& verbs();

}  // namespace sinkscope
