// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sinkscope::h5 {

// A flush changes many places of a file: nodes of chunk indices, object headers, the superblock.
// HDF5 writes them one by one, in the order of their addresses, so that a process killed amid a
// flush would leave an index whose branches name leaves that were never written. Therefore all of
// them are written to PATH.redo first (under another name, then renamed), then into the file; then
// PATH.redo is removed. A file with a PATH.redo beside it is finished from that before it is
// opened: either nothing of a flush is in a file or all of it.
//
// PATH.redo: "sinkredo", i64 bytes of all records; records of i64 address, i64 n, n bytes,
// addresses ascending; u64 checksum of everything before.

// Bytes to be written to a file, by address; touching and overlapping pieces are one.
class HeldWrites {
 public:
  void put(std::int64_t at, const void* bytes, std::size_t n);
  // Puts what is held over bytes that were read at `at`.
  void overlay(std::int64_t at, void* bytes, std::size_t n) const;

  bool empty() const { return pieces_.empty(); }
  void clear() { pieces_.clear(); }
  std::int64_t end() const;  // behind the last byte; 0 when empty
  // One piece within a page reaches a file whole or not at all, even where the process is killed.
  bool is_atomic() const;
  const std::map<std::int64_t, std::vector<std::byte>>& pieces() const { return pieces_; }

 private:
  std::map<std::int64_t, std::vector<std::byte>> pieces_;
};

// Brings `writes` into the open file `descriptor` of that path, all or nothing as described above.
// Error{io}; before any byte of the file has changed when the disk is full.
void write_journaled(const std::string& path, int descriptor, const HeldWrites& writes);

// Finishes the flush that a killed process has left beside `path`; nothing happens where there is
// none, or where another program has the file open. Error{corrupt} for a PATH.redo that is not a
// whole journal of this file, Error{io} when the file cannot be written to.
void finish_flush(const std::string& path);

// Takes the journal away, with the file that it belongs to.
void remove_journal(const std::string& path);

}  // namespace sinkscope::h5
