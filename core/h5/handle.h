// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

#include "core/error.h"

// The HDF5 C API behind small RAII handles. hdf5.h is included in core/h5/*.cpp and nowhere else.
namespace sinkscope::h5 {

using RawId = std::int64_t;  // hid_t

// Owns one HDF5 identifier of any kind and drops it when it goes. Move-only.
class Handle {
 public:
  Handle() = default;
  explicit Handle(RawId id) : id_(id) {}
  Handle(Handle&& other) noexcept : id_(other.release()) {}
  Handle& operator=(Handle&& other) noexcept;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle();

  RawId id() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }
  // A second owner of the same identifier, which is closed when both have gone.
  Handle share() const;
  // Gives the identifier up without closing it.
  RawId release();
  void reset();

 private:
  RawId id_ = -1;
};

// Every function of this folder holds one while it calls HDF5. With a thread-safe HDF5 it only
// keeps the library quiet (errors are ours to print); otherwise it also holds the one mutex.
class Call {
 public:
  Call();
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
};

// Throws Error{kind, "WHAT: HDF5's innermost reason"}. Call it right after the failed call, under
// the same Call.
[[noreturn]] void fail(ErrorKind kind, const std::string& what);

// Takes the identifier over, or fails when it is negative.
Handle own(RawId id, ErrorKind kind, const std::string& what);

// Fails when an HDF5 status is negative.
inline void check(long long status, ErrorKind kind, const std::string& what) {
  if (status < 0) fail(kind, what);
}

}  // namespace sinkscope::h5
