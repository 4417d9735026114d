// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/file_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace sinkscope {

FileReader::FileReader(std::string path) : path_(std::move(path)) {
  // Without O_NONBLOCK a pipe in place of a file would wait for a writer for ever.
  descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) {
    const bool absent = errno == ENOENT || errno == ENOTDIR;
    const bool no_file = errno == ELOOP || errno == ENXIO;  // links in a circle, a socket
    throw Error(absent    ? ErrorKind::not_found
                : no_file ? ErrorKind::corrupt
                          : ErrorKind::io,
                fmt::format("{}: cannot open: {}", path_, std::strerror(errno)));
  }
  struct stat status {};
  const int result = fstat(descriptor_, &status);
  if (result == 0 && S_ISREG(status.st_mode)) {
    size_ = static_cast<std::uint64_t>(status.st_size);
    return;
  }
  close(descriptor_);
  descriptor_ = -1;
  if (result != 0) throw Error(ErrorKind::io, fmt::format("{}: cannot read its size", path_));
  throw Error(ErrorKind::corrupt,
              fmt::format("{}: expected a regular file, found a folder, pipe or device", path_));
}

FileReader::FileReader(std::string path, std::string bytes)
    : path_(std::move(path)), bytes_(std::move(bytes)), size_(bytes_.size()) {}

FileReader::~FileReader() {
  if (descriptor_ >= 0) close(descriptor_);
}

FileReader::FileReader(FileReader&& other) noexcept
    : path_(std::move(other.path_)),
      bytes_(std::move(other.bytes_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      bytes_read_(other.bytes_read_.load()) {}

FileReader& FileReader::operator=(FileReader&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  bytes_read_ = other.bytes_read_.exchange(bytes_read_);
  return *this;
}

void FileReader::read(std::uint64_t offset, std::uint64_t n_bytes, void* out) const {
  auto* to = static_cast<char*>(out);
  bytes_read_ += static_cast<std::int64_t>(n_bytes);
  std::uint64_t done = 0;
  if (descriptor_ < 0 && offset <= bytes_.size() && n_bytes <= bytes_.size() - offset) {
    std::copy_n(bytes_.data() + offset, n_bytes, to);
    return;
  }
  while (done < n_bytes) {
    const std::uint64_t piece = std::min<std::uint64_t>(n_bytes - done, std::uint64_t{1} << 30);
    const ssize_t got =
        descriptor_ < 0 ? 0
                        : pread(descriptor_, to + done, piece, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw Error(ErrorKind::io, fmt::format("{}: reading {} bytes at {} failed: {}", path_,
                                             n_bytes, offset, std::strerror(errno)));
    }
    if (got == 0) {
      throw Error(
          ErrorKind::corrupt,
          fmt::format("{}: ends at byte {} inside a read of {} bytes at {} (it had {} bytes "
                      "when it was opened)",
                      path_, offset + done, n_bytes, offset, size_));
    }
    done += static_cast<std::uint64_t>(got);
  }
}

}  // namespace sinkscope
