// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <fstream>
#include <ostream>
#include <string>

namespace sinkscope {

// Throws Error{invalid_argument} when a file is there and may not be replaced, or what is there is
// no file (also with `force`): to be asked before minutes of work, not after.
void require_new_file(const std::string& path, bool force);

// Makes the folder that a file of this name lies in, where it is not there. Error{io}.
void make_folder_of(const std::string& output);

// Where `-o F` leads: a new file, made as F.part and renamed by close(), or standard output for
// "-". An existing file is refused without `force`. Dropped without close(): no file is left.
class OutputFile {
 public:
  // Throws what require_new_file throws, Error{io} when it cannot be made.
  OutputFile(const std::string& path, bool force, std::ostream& standard_output);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  bool is_standard_output() const { return path_ == "-"; }
  std::ostream& stream() { return is_standard_output() ? standard_output_ : file_; }
  // Throws Error{io} when not everything could be written.
  void close();

 private:
  std::string path_;
  std::ostream& standard_output_;
  std::ofstream file_;
};

}  // namespace sinkscope
