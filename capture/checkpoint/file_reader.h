// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace sinkscope {

// A file opened for reading at positions (pread): nothing is mapped, there is no cursor, and const
// members may be called from several threads. The descriptor is closed with the object.
class FileReader {
 public:
  // Throws Error: not_found (no such file), corrupt (a folder, a pipe, links in a circle), io.
  // Waits for nobody.
  explicit FileReader(std::string path);
  // Bytes in memory that stand for a file; `path` is for messages only.
  FileReader(std::string path, std::string bytes);
  ~FileReader();
  FileReader(FileReader&& other) noexcept;
  FileReader& operator=(FileReader&& other) noexcept;
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }  // when it was opened

  // Reads exactly [offset, offset + n_bytes). Throws Error: corrupt when the file ends before,
  // io when the disk fails.
  void read(std::uint64_t offset, std::uint64_t n_bytes, void* out) const;

  // What read() has brought in so far.
  std::int64_t bytes_read() const { return bytes_read_; }

 private:
  std::string path_;
  std::string bytes_;  // where there is no descriptor
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  mutable std::atomic<std::int64_t> bytes_read_ = 0;
};

// A container whose values come from files, and how much of them.
class CountedReads {
 public:
  virtual ~CountedReads() = default;
  virtual std::int64_t bytes_read() const = 0;
};

}  // namespace sinkscope
