// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace sinkscope::test {

// What a shell command prints (both streams), and its exit status.
struct Printed {
  std::string text;
  int status = -1;
};
Printed run_command(const std::string& command);

bool has_command(const std::string& name);

// A file as `h5dump` prints it: everything in it (types, shapes, attributes, values) and nothing of
// its name.
std::string dump_of(const std::string& file);

// One number of a dataset, as `h5dump` reads it. `index` is "1,0,3".
double dumped_number(const std::string& file, const std::string& dataset, const std::string& index);

}  // namespace sinkscope::test

// Skips the test with a sentence when hdf5-tools are not installed; fails instead where CI=true.
#define SINKSCOPE_REQUIRE_H5DUMP()                                                       \
  if (!::sinkscope::test::has_command("h5dump")) {                                       \
    const char* ci = std::getenv("CI");                                                  \
    if (ci != nullptr && std::string(ci) == "true") FAIL() << "h5dump is not installed"; \
    GTEST_SKIP() << "needs h5dump of the package hdf5-tools";                            \
  }
