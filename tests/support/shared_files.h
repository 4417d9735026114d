// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace sinkscope::test {

// Path of a file or folder of the shared reference data (SINKSCOPE_SHARED, else ../shared beside
// the project). Empty when it is not there.
std::string shared_path(const std::string& relative);

// A fresh folder for this test, removed when the process ends.
std::string scratch_folder();

}  // namespace sinkscope::test

// Skips the test with a sentence when the shared file is absent; fails instead where CI=true.
#define SINKSCOPE_REQUIRE_SHARED(variable, relative)                                    \
  const std::string variable = ::sinkscope::test::shared_path(relative);                \
  if (variable.empty()) {                                                               \
    const char* ci = std::getenv("CI");                                                 \
    if (ci != nullptr && std::string(ci) == "true")                                     \
      FAIL() << "shared file missing: " << (relative) << " (set SINKSCOPE_SHARED)";     \
    GTEST_SKIP() << "needs the shared file " << (relative) << "; set SINKSCOPE_SHARED"; \
  }
