// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace sinkscope::test {

// The demo model's GGUF file: SINKSCOPE_DEMO_MODEL, else demo/*.gguf of the source tree. Empty when
// it is not there.
std::string demo_model();

}  // namespace sinkscope::test

// Skips the test with a sentence when the demo model is absent; fails instead where CI=true.
#define SINKSCOPE_REQUIRE_DEMO_MODEL(variable)                                     \
  const std::string variable = ::sinkscope::test::demo_model();                    \
  if (variable.empty()) {                                                          \
    const char* ci = std::getenv("CI");                                            \
    if (ci != nullptr && std::string(ci) == "true")                                \
      FAIL() << "the demo model is missing: ./dev setup, or SINKSCOPE_DEMO_MODEL"; \
    GTEST_SKIP() << "needs the demo model: ./dev setup, or SINKSCOPE_DEMO_MODEL";  \
  }
