// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

#include "core/h5/handle.h"

namespace sinkscope::h5 {

// An open HDF5 file, locked while it is open: a writer against everybody, readers against writers.
// A file system without locks is used without them. A file that someone else is writing is
// Error{io}, which says so and names the file.
class File {
 public:
  File() = default;
  File(File&&) noexcept = default;
  File& operator=(File&&) noexcept = default;

  // Truncates what is there. Error{io}.
  static File create(const std::string& path);
  // For adding data to a file whose structure is complete: metadata stay in memory until flush()
  // writes them, all or nothing, so that a killed writer leaves those of the last flush. Error{io}.
  static File open_for_writing(const std::string& path);
  // Error{io} when someone else has this file open (a file that is not there is fine).
  static void require_unlocked(const std::string& path);
  // Finishes a flush that a killed writer has left (flush_journal.h). Errors: not_found, corrupt
  // (damaged or no HDF5 file), io.
  static File open_for_reading(const std::string& path);

  const Handle& root() const { return handle_; }
  const std::string& path() const { return path_; }
  explicit operator bool() const { return static_cast<bool>(handle_); }

  // The file's descriptor, for raw data at known offsets.
  int descriptor() const;
  std::int64_t size() const;  // bytes, with space that is allocated and not yet written

  // Reserves the disk space of everything allocated, then writes it all to the operating system.
  // A disk that is full is found before the first byte of metadata changes. Error{io}.
  void flush();
  // flush() and close; Error{io}.
  void close();
  // Lets go of a file after a failed write: nothing more reaches the disk, what the last flush()
  // left is kept. HDF5 cannot close such a file (1.10 crashes), so its memory is not given back.
  void abandon();

 private:
  void reserve();

  Handle handle_;
  std::string path_;
  std::int64_t reserved_ = 0;  // bytes of the file that certainly have disk blocks
};

}  // namespace sinkscope::h5
