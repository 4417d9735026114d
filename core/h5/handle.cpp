// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/h5/handle.h"

#include <hdf5.h>

#include <mutex>
#include <utility>

namespace sinkscope::h5 {

static_assert(sizeof(hid_t) == sizeof(RawId));

namespace {

std::recursive_mutex& mutex() {
  static std::recursive_mutex the_mutex;
  return the_mutex;
}

bool start_library() {
  // Nothing may be written behind our back when the process ends: every file is closed by its
  // handle or was abandoned on purpose (File::abandon).
  H5dont_atexit();
  H5open();
  hbool_t is_threadsafe = false;
  H5is_library_threadsafe(&is_threadsafe);
  return is_threadsafe;
}

bool library_is_threadsafe() {
  static const bool is_threadsafe = start_library();
  return is_threadsafe;
}

struct Reason {
  std::string description, system;
};

// "…, errno = 28, error message = 'No space left on device', …": what the system said.
std::string system_message(const std::string& description) {
  const std::string key = "error message = '";
  const auto begin = description.find(key);
  if (begin == std::string::npos) return {};
  const auto end = description.find('\'', begin + key.size());
  if (end == std::string::npos) return {};
  return description.substr(begin + key.size(), end - begin - key.size());
}

herr_t note_reason(unsigned, const H5E_error2_t* error, void* out) {
  auto* reason = static_cast<Reason*>(out);
  if (error->desc == nullptr) return 0;
  if (reason->description.empty()) reason->description = error->desc;
  if (reason->system.empty()) reason->system = system_message(error->desc);
  return 0;
}

}  // namespace

Handle& Handle::operator=(Handle&& other) noexcept {
  if (this != &other) {
    reset();
    id_ = other.release();
  }
  return *this;
}

Handle::~Handle() { reset(); }

Handle Handle::share() const {
  const Call call;
  if (id_ >= 0) H5Iinc_ref(id_);
  return Handle(id_);
}

RawId Handle::release() { return std::exchange(id_, -1); }

void Handle::reset() {
  if (id_ < 0) return;
  const Call call;
  H5Idec_ref(release());
}

Call::Call() {
  if (!library_is_threadsafe()) mutex().lock();
  // The switch is per thread in a thread-safe build.
  thread_local const herr_t quiet = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  static_cast<void>(quiet);
}

Call::~Call() {
  if (!library_is_threadsafe()) mutex().unlock();
}

void fail(ErrorKind kind, const std::string& what) {
  Reason reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, note_reason, &reason);
  H5Eclear2(H5E_DEFAULT);
  const std::string& why = reason.system.empty() ? reason.description : reason.system;
  throw Error(kind, why.empty() ? what : what + ": " + why);
}

Handle own(RawId id, ErrorKind kind, const std::string& what) {
  if (id < 0) fail(kind, what);
  return Handle(id);
}

}  // namespace sinkscope::h5
