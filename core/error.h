// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <stdexcept>
#include <string>

namespace sinkscope {

// The closed set of ways in which the world can fail. Callers branch on the kind, people read the
// message. Canceled and "not there, which is fine" are no errors: they are std::optional.
enum class ErrorKind {
  not_found,         // a file, tensor, run or dataset that was named does not exist
  corrupt,           // it exists and is damaged or contradicts itself
  unsupported,       // it is whole, and this program cannot handle it
  invalid_argument,  // what the user asked for makes no sense
  io,                // the disk or the file system failed
  device,            // no such device, or it failed
  out_of_memory,
};

// The one exception type of the project. The message is one line: what, where, expected, found.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace sinkscope
