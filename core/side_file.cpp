// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/side_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/error.h"

namespace sinkscope {

void Checksum::add(const void* data, std::size_t n) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (; n >= 8; bytes += 8, n -= 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes, 8);
    mix(word);
  }
  std::uint64_t rest = n;
  if (n > 0) std::memcpy(&rest, bytes, n);  // nothing may come without an address
  mix(rest);
}

void Checksum::mix(std::uint64_t word) {
  sum_ = (sum_ ^ word) * 0x9E3779B97F4A7C15U;
  sum_ ^= sum_ >> 32;
}

Descriptor::Descriptor(std::string path, int flags)
    : path_(std::move(path)), fd_(::open(path_.c_str(), flags | O_CLOEXEC, 0666)) {}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

void Descriptor::fail(const char* verb) const {
  throw Error(ErrorKind::io, fmt::format("cannot {} {}: {}", verb, path_, std::strerror(errno)));
}

void Descriptor::write(const void* data, std::size_t n) const {
  const auto* bytes = static_cast<const char*>(data);
  while (n > 0) {
    const ssize_t done = ::write(fd_, bytes, n);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) fail("write");
    bytes += done;
    n -= static_cast<std::size_t>(done);
  }
}

void Descriptor::close() {
  if (::close(std::exchange(fd_, -1)) != 0) fail("write");
}

bool Descriptor::read(void* data, std::size_t n) const {
  auto* bytes = static_cast<char*>(data);
  while (n > 0) {
    const ssize_t done = ::read(fd_, bytes, n);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail("read");
    if (done == 0) return false;
    bytes += done;
    n -= static_cast<std::size_t>(done);
  }
  return true;
}

bool write_at(int descriptor, std::int64_t at, const void* data, std::size_t n) {
  const auto* bytes = static_cast<const char*>(data);
  while (n > 0) {
    const ssize_t done = ::pwrite(descriptor, bytes, n, at);
    if (done < 0 && errno == EINTR) continue;
    if (done == 0) errno = EIO;  // nothing was written
    if (done <= 0) return false;
    bytes += done;
    at += done;
    n -= static_cast<std::size_t>(done);
  }
  return true;
}

void rename_file(const std::string& from, const std::string& to) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  if (error)
    throw Error(ErrorKind::io,
                fmt::format("cannot rename {} to {}: {}", from, to, error.message()));
}

}  // namespace sinkscope
