// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sinkscope {

// What the small files beside a recording (its state, the journal of a flush) are made with: each
// is written under another name, closed and renamed, and a damaged one fails its checksum.

// Whole words at a time: as fast as memory. It is to tell a torn file, not a forged one. The sum
// depends on how the bytes are divided among the calls.
class Checksum {
 public:
  void add(const void* data, std::size_t n);
  std::uint64_t value() const { return sum_; }

 private:
  void mix(std::uint64_t word);
  std::uint64_t sum_ = 0xCBF29CE484222325U;
};

// An open file that closes itself. fd() < 0: it could not be opened, errno says why.
class Descriptor {
 public:
  Descriptor(std::string path, int flags);
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int fd() const { return fd_; }
  // Error{io}: "cannot VERB PATH: what errno says".
  [[noreturn]] void fail(const char* verb) const;
  void write(const void* data, std::size_t n) const;  // all of it, or Error{io}
  void close();                                       // some file systems tell only here: Error{io}
  bool read(void* data, std::size_t n) const;  // false when the file ends before; or Error{io}

 private:
  std::string path_;
  int fd_;
};

// pwrite() until all is written; false: errno says why.
bool write_at(int descriptor, std::int64_t at, const void* data, std::size_t n);

// Error{io}.
void rename_file(const std::string& from, const std::string& to);

}  // namespace sinkscope
