// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace sinkscope {

// A folder of its own for a capture nobody asked to keep; gone with the object.
class TemporaryFolder {
 public:
  // Throws Error{io}.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const std::string& name) const;

 private:
  std::string path_;
};

}  // namespace sinkscope
