// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/h5/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <hdf5.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/h5/flush_journal.h"
#include "core/h5/journaled_driver.h"
#include "core/side_file.h"

namespace sinkscope::h5 {
namespace {

enum class Locks { work, absent };

// By errno of flock(): a file system without locks (some network and cluster file systems).
bool has_no_locks() { return errno == ENOSYS || errno == ENOLCK || errno == EOPNOTSUPP; }

// Asks for the lock that HDF5 will take, because HDF5's own refusal does not say who is to blame.
Locks probe_lock(const std::string& path, int operation) {
  // O_NONBLOCK: a pipe would wait for a writer.
  const Descriptor probe(path, O_RDONLY | O_NONBLOCK);
  if (probe.fd() < 0) return Locks::work;  // HDF5 will say why
  if (::flock(probe.fd(), operation | LOCK_NB) == 0) return Locks::work;
  if (errno == EWOULDBLOCK) {
    throw Error(ErrorKind::io,
                operation == LOCK_EX
                    ? fmt::format("{} is open in another program; close it there first", path)
                    : fmt::format("{} is being written by another program; open it when that is "
                                  "done",
                                  path));
  }
  return has_no_locks() ? Locks::absent : Locks::work;
}

// Of a file that is yet to be made: what its folder's file system can do.
Locks probe_folder(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const Descriptor probe(folder, O_RDONLY | O_DIRECTORY);
  if (probe.fd() < 0 || ::flock(probe.fd(), LOCK_SH | LOCK_NB) == 0) return Locks::work;
  return has_no_locks() ? Locks::absent : Locks::work;
}

Handle access_list(Locks locks) {
  Handle list = own(H5Pcreate(H5P_FILE_ACCESS), ErrorKind::io, "HDF5 file access list");
  // Small pieces go straight to the file: a sieve buffer would be 64 kB for every open dataset.
  H5Pset_sieve_buf_size(list.id(), 0);
  H5Pset_meta_block_size(list.id(), 8 << 10);
  H5Pset_small_data_block_size(list.id(), 8 << 10);
  if (locks == Locks::absent) H5Pset_file_locking(list.id(), false, true);
  return list;
}

// Metadata must reach the disk in flush() and at no other time.
void keep_metadata_in_memory(RawId file, const std::string& path) {
  H5AC_cache_config_t config{};
  config.version = H5AC__CURR_CACHE_CONFIG_VERSION;
  check(H5Fget_mdc_config(file, &config), ErrorKind::io, "cannot set up " + path);
  config.evictions_enabled = false;
  config.incr_mode = H5C_incr__off;
  config.flash_incr_mode = H5C_flash_incr__off;
  config.decr_mode = H5C_decr__off;
  check(H5Fset_mdc_config(file, &config), ErrorKind::io, "cannot set up " + path);
}

}  // namespace

File File::create(const std::string& path) {
  const Call call;
  const bool is_new = ::access(path.c_str(), F_OK) != 0;
  const Handle access = access_list(is_new ? probe_folder(path) : probe_lock(path, LOCK_EX));
  File file;
  file.path_ = path;
  file.handle_ = own(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.id()),
                     ErrorKind::io, "cannot create " + path);
  return file;
}

File File::open_for_writing(const std::string& path) {
  const Call call;
  finish_flush(path);
  const Handle access = access_list(probe_lock(path, LOCK_EX));
  use_journaled_driver(access);
  File file;
  file.path_ = path;
  file.handle_ = own(H5Fopen(path.c_str(), H5F_ACC_RDWR, access.id()), ErrorKind::io,
                     "cannot open " + path + " for writing");
  keep_metadata_in_memory(file.handle_.id(), path);
  // A killed writer may have put values beyond the end that its last flush knew of, with a leaf
  // that names them: new space begins behind everything that is there.
  check(H5Fincrement_filesize(file.handle_.id(), 0), ErrorKind::io, "cannot set up " + path);
  return file;
}

File File::open_for_reading(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    throw Error(errno == ENOENT || errno == ENOTDIR ? ErrorKind::not_found : ErrorKind::io,
                fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::corrupt, path + ": expected an HDF5 file, found a folder or device");
  }
  const Call call;
  finish_flush(path);
  const Handle access = access_list(probe_lock(path, LOCK_SH));
  const htri_t is_hdf5 = H5Fis_hdf5(path.c_str());
  if (is_hdf5 == 0) {
    throw Error(ErrorKind::corrupt, path + ": expected an HDF5 file, found something else");
  }
  File file;
  file.path_ = path;
  // Every read opens its dataset anew and meets each chunk once: a cache of chunks would only copy.
  H5Pset_cache(access.id(), 0, 0, 0, 1.0);
  file.handle_ = own(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()),
                     is_hdf5 < 0 ? ErrorKind::io : ErrorKind::corrupt, "cannot open " + path);
  return file;
}

void File::require_unlocked(const std::string& path) { probe_lock(path, LOCK_EX); }

int File::descriptor() const {
  const Call call;
  void* address = nullptr;
  check(H5Fget_vfd_handle(handle_.id(), H5P_DEFAULT, &address), ErrorKind::io, path_);
  return *static_cast<int*>(address);
}

std::int64_t File::size() const {
  const Call call;
  hsize_t size = 0;
  check(H5Fget_filesize(handle_.id(), &size), ErrorKind::io, path_);
  return static_cast<std::int64_t>(size);
}

void File::reserve() {
  const std::int64_t end = size();
  if (end <= reserved_) return;
  // Where the file system cannot reserve, the flush itself will tell.
  if (::fallocate(descriptor(), 0, reserved_, end - reserved_) != 0 && errno != EOPNOTSUPP &&
      errno != ENOSYS && errno != EINTR) {
    throw Error(ErrorKind::io, fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
  }
  reserved_ = end;
}

void File::flush() {
  const Call call;
  reserve();
  check(H5Fflush(handle_.id(), H5F_SCOPE_LOCAL), ErrorKind::io, "cannot write " + path_);
}

void File::close() {
  flush();
  const Call call;
  // flush() gave unused blocks at the end back, which reserve() had made part of the file.
  if (::ftruncate(descriptor(), size()) != 0) {
    throw Error(ErrorKind::io, fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
  }
  check(H5Fclose(handle_.release()), ErrorKind::io, "cannot close " + path_);
}

void File::abandon() {
  if (!handle_) return;
  const Call call;
  // Whatever HDF5 may still want to write now meets a descriptor that only reads.
  const Descriptor readable(path_, O_RDONLY);
  void* address = nullptr;
  if (readable.fd() >= 0 && H5Fget_vfd_handle(handle_.id(), H5P_DEFAULT, &address) >= 0) {
    ::dup2(readable.fd(), *static_cast<int*>(address));
  }
  handle_.release();
}

}  // namespace sinkscope::h5
