// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/failure.h"

#include <fmt/format.h>

#include <filesystem>
#include <new>

#include "app/cli/run_cli.h"
#include "core/error.h"

namespace sinkscope {
namespace {

// An unforeseen exception is a defect of this program, not one of the failures users can cause.
constexpr int kExitDefect = 70;

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::not_found:
    case ErrorKind::corrupt:
      return kExitCorrupt;
    case ErrorKind::unsupported:
      return kExitUnsupported;
    case ErrorKind::invalid_argument:
      return kExitUsage;
    case ErrorKind::io:
      return kExitIo;
    case ErrorKind::device:
    case ErrorKind::out_of_memory:
      return kExitDevice;
  }
  return kExitDefect;
}

}  // namespace

std::optional<Failure> failure_of(const std::function<void()>& job) {
  try {
    job();
    return std::nullopt;
  } catch (const Error& error) {
    return Failure{exit_code(error.kind()), error.what()};
  } catch (const std::bad_alloc&) {
    return Failure{kExitDevice, "out of memory"};
  } catch (const std::filesystem::filesystem_error& error) {
    return Failure{kExitIo, fmt::format("{}: {}", error.path1().native(), error.code().message())};
  } catch (const std::exception& error) {
    return Failure{kExitDefect, fmt::format("defect: {}", error.what())};
  }
}

}  // namespace sinkscope
