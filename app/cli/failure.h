// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace sinkscope {

// How a job failed: the exit code that the program gives for it, and the one line that says why.
struct Failure {
  int code = 0;
  std::string message;
};

// Runs the job; what it throws becomes a Failure, whatever it is. nullopt: it did not fail.
std::optional<Failure> failure_of(const std::function<void()>& job);

}  // namespace sinkscope
