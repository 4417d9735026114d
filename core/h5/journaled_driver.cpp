// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/h5/journaled_driver.h"

#include <fcntl.h>
#include <hdf5.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <limits>
#include <string>

#include "core/h5/flush_journal.h"
#include "core/side_file.h"

namespace sinkscope::h5 {
namespace {

struct JournaledFile : H5FD_t {
  std::string path;
  int descriptor = -1;
  dev_t device{};
  ino_t inode{};
  haddr_t eoa = 0, eof = 0;  // end of what is allocated, of what is there
  HeldWrites held;
};

JournaledFile& of(H5FD_t* file) { return *static_cast<JournaledFile*>(file); }
const JournaledFile& of(const H5FD_t* file) { return *static_cast<const JournaledFile*>(file); }

herr_t fail(const char* what) {
  H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_VFL, H5E_WRITEERROR, "%s",
           what);
  return -1;
}

H5FD_t* open(const char* name, unsigned flags, hid_t, haddr_t) {
  const bool is_writable = (flags & H5F_ACC_RDWR) != 0;
  const int descriptor = ::open(name, (is_writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  struct stat status {};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0) {
    fail(std::strerror(errno));
    if (descriptor >= 0) ::close(descriptor);
    return nullptr;
  }
  auto* file = new JournaledFile();
  file->path = name;
  file->descriptor = descriptor;
  file->device = status.st_dev;
  file->inode = status.st_ino;
  file->eof = static_cast<haddr_t>(status.st_size);
  return file;
}

std::int64_t size_of(const JournaledFile& file) {
  struct stat status {};
  return ::fstat(file.descriptor, &status) == 0 ? status.st_size : -1;
}

bool set_size(const JournaledFile& file, haddr_t size) {
  return ::ftruncate(file.descriptor, static_cast<off_t>(size)) == 0;
}

// Brings in what is held. The file may be longer than what its superblock says, never shorter.
herr_t flush(H5FD_t* base, hid_t, hbool_t) {
  JournaledFile& file = of(base);
  if (file.held.empty()) return 0;
  if (size_of(file) < static_cast<std::int64_t>(file.eoa) && !set_size(file, file.eoa))
    return fail(std::strerror(errno));
  try {
    write_journaled(file.path, file.descriptor, file.held);
  } catch (const std::exception& error) {
    return fail(error.what());
  }
  file.held.clear();
  return 0;
}

herr_t close(H5FD_t* base) {
  JournaledFile* file = &of(base);
  bool is_done = flush(base, H5P_DEFAULT, true) >= 0;
  const bool is_writable = file->access_flags & H5F_ACC_RDWR;
  if (is_done && is_writable && size_of(*file) > static_cast<std::int64_t>(file->eoa))
    is_done = set_size(*file, file->eoa);
  is_done &= ::close(file->descriptor) == 0;
  delete file;
  return is_done ? 0 : -1;
}

int compare(const H5FD_t* a, const H5FD_t* b) {
  const JournaledFile &x = of(a), &y = of(b);
  if (x.device != y.device) return x.device < y.device ? -1 : 1;
  return x.inode < y.inode ? -1 : static_cast<int>(x.inode > y.inode);
}

// As HDF5's default driver, but for gathering neighbors: what is held is gathered anyway. SWMR is
// not used; H5Fincrement_filesize asks for it.
herr_t query(const H5FD_t*, unsigned long* features) {
  *features = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA |
              H5FD_FEAT_POSIX_COMPAT_HANDLE | H5FD_FEAT_SUPPORTS_SWMR_IO |
              H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t get_eoa(const H5FD_t* file, H5FD_mem_t) { return of(file).eoa; }
herr_t set_eoa(H5FD_t* file, H5FD_mem_t, haddr_t end) {
  of(file).eoa = end;
  return 0;
}
haddr_t get_eof(const H5FD_t* file, H5FD_mem_t) { return of(file).eof; }

herr_t get_handle(H5FD_t* file, hid_t, void** handle) {
  *handle = &of(file).descriptor;
  return 0;
}

// Beyond the end of the file there are zeros.
herr_t read(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t at, size_t size, void* buffer) {
  JournaledFile& file = of(base);
  auto* bytes = static_cast<std::byte*>(buffer);
  for (size_t done = 0; done < size;) {
    const ssize_t n =
        ::pread(file.descriptor, bytes + done, size - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(std::strerror(errno));
    if (n == 0) {
      std::fill(bytes + done, bytes + size, std::byte{});
      break;
    }
    done += static_cast<size_t>(n);
  }
  file.held.overlay(static_cast<std::int64_t>(at), buffer, size);
  return 0;
}

herr_t write(H5FD_t* base, H5FD_mem_t type, hid_t, haddr_t at, size_t size, const void* buffer) {
  JournaledFile& file = of(base);
  if (type != H5FD_MEM_DRAW) {
    file.held.put(static_cast<std::int64_t>(at), buffer, size);
    return 0;
  }
  if (!write_at(file.descriptor, static_cast<std::int64_t>(at), buffer, size))
    return fail(std::strerror(errno));
  file.eof = std::max(file.eof, at + size);
  return 0;
}

// For HDF5 the file ends where what is allocated ends; flush() and close() see to the rest.
herr_t truncate(H5FD_t* file, hid_t, hbool_t) {
  of(file).eof = of(file).eoa;
  return 0;
}

herr_t lock(H5FD_t* file, hbool_t is_for_writing) {
  if (::flock(of(file).descriptor, (is_for_writing ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0) return 0;
  return errno == ENOSYS ? 0 : fail(std::strerror(errno));
}
herr_t unlock(H5FD_t* file) {
  if (::flock(of(file).descriptor, LOCK_UN) == 0 || errno == ENOSYS) return 0;
  return fail(std::strerror(errno));
}

hid_t register_driver() {
  static const H5FD_class_t driver = [] {
    H5FD_class_t c{};
    c.name = "sinkscope_journaled";
    c.maxaddr = static_cast<haddr_t>(std::numeric_limits<off_t>::max());
    c.fc_degree = H5F_CLOSE_WEAK;
    c.open = open;
    c.close = close;
    c.cmp = compare;
    c.query = query;
    c.get_eoa = get_eoa;
    c.set_eoa = set_eoa;
    c.get_eof = get_eof;
    c.get_handle = get_handle;
    c.read = read;
    c.write = write;
    c.flush = flush;
    c.truncate = truncate;
    c.lock = lock;
    c.unlock = unlock;
    const H5FD_mem_t one_list_for_metadata_one_for_data[] = H5FD_FLMAP_DICHOTOMY;
    std::copy(std::begin(one_list_for_metadata_one_for_data),
              std::end(one_list_for_metadata_one_for_data), c.fl_map);
    return c;
  }();
  return H5FDregister(&driver);
}

}  // namespace

void use_journaled_driver(const Handle& access_list) {
  static const hid_t driver = register_driver();
  check(driver, ErrorKind::io, "HDF5 file driver");
  check(H5Pset_driver(access_list.id(), driver, nullptr), ErrorKind::io, "HDF5 file driver");
}

}  // namespace sinkscope::h5
