// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/h5/flush_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/side_file.h"

namespace sinkscope::h5 {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'s', 'i', 'n', 'k', 'r', 'e', 'd', 'o'};
constexpr std::int64_t kPage = 4096, kMostAtOnce = 1 << 20;

struct Head {
  char magic[8];
  std::int64_t n_bytes;  // of the records
};
struct Record {
  std::int64_t at, n;
};

std::string journal_of(const std::string& path) { return path + ".redo"; }

[[noreturn]] void fail(const std::string& path) {
  throw Error(ErrorKind::io, fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

void apply(const std::string& path, int descriptor, const HeldWrites& writes) {
  for (const auto& [at, bytes] : writes.pieces())
    if (!write_at(descriptor, at, bytes.data(), bytes.size())) fail(path);
}

// One that stayed would undo the flushes after it.
void drop_journal(const std::string& path) {
  std::error_code error;
  fs::remove(journal_of(path), error);
  if (error)
    throw Error(ErrorKind::io,
                fmt::format("cannot remove {}: {}", journal_of(path), error.message()));
}

void write_journal(const std::string& path, const HeldWrites& writes) {
  const std::string unborn = journal_of(path) + ".tmp";
  Head head{};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  for (const auto& [at, bytes] : writes.pieces())
    head.n_bytes += static_cast<std::int64_t>(sizeof(Record) + bytes.size());
  try {
    Descriptor file(unborn, O_WRONLY | O_CREAT | O_TRUNC);
    if (file.fd() < 0) file.fail("create");
    Checksum checksum;
    std::vector<std::byte> text;  // in few large writes: a flush has thousands of pieces
    const auto add = [&](const void* data, std::size_t n) {
      checksum.add(data, n);
      const auto* bytes = static_cast<const std::byte*>(data);
      text.insert(text.end(), bytes, bytes + n);
      if (static_cast<std::int64_t>(text.size()) < kMostAtOnce) return;
      file.write(text.data(), text.size());
      text.clear();
    };
    add(&head, sizeof head);
    for (const auto& [at, bytes] : writes.pieces()) {
      const Record record{at, static_cast<std::int64_t>(bytes.size())};
      add(&record, sizeof record);
      for (std::int64_t done = 0; done < record.n; done += kMostAtOnce)
        add(bytes.data() + done, static_cast<std::size_t>(std::min(kMostAtOnce, record.n - done)));
    }
    const std::uint64_t sum = checksum.value();
    add(&sum, sizeof sum);
    file.write(text.data(), text.size());
    file.close();
    rename_file(unborn, journal_of(path));
  } catch (...) {
    std::error_code ignored;
    fs::remove(unborn, ignored);
    throw;
  }
}

// Calls take(address, bytes, n) for the bytes of a journal, in order. False when it is not a whole
// journal, or reaches beyond `file_size`.
template <class Take>
bool read_journal(const Descriptor& journal, std::int64_t journal_size, std::int64_t file_size,
                  const Take& take) {
  Head head;
  Checksum checksum;
  if (::lseek(journal.fd(), 0, SEEK_SET) != 0 || !journal.read(&head, sizeof head)) return false;
  const auto around = static_cast<std::int64_t>(sizeof head + sizeof(std::uint64_t));
  if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0 || journal_size < around ||
      head.n_bytes != journal_size - around)
    return false;
  checksum.add(&head, sizeof head);
  std::vector<std::byte> bytes;
  std::int64_t end = 0;  // of the record before
  for (std::int64_t left = head.n_bytes; left > 0;) {
    Record record;
    left -= static_cast<std::int64_t>(sizeof record);
    if (left < 0 || !journal.read(&record, sizeof record)) return false;
    if (record.at < end || record.at > file_size || record.n < 1 || record.n > left ||
        record.n > file_size - record.at)
      return false;
    checksum.add(&record, sizeof record);
    for (std::int64_t done = 0; done < record.n; done += kMostAtOnce) {
      const auto n = static_cast<std::size_t>(std::min(kMostAtOnce, record.n - done));
      bytes.resize(n);
      if (!journal.read(bytes.data(), n)) return false;
      checksum.add(bytes.data(), n);
      take(record.at + done, bytes.data(), n);
    }
    left -= record.n;
    end = record.at + record.n;
  }
  std::uint64_t sum;
  return journal.read(&sum, sizeof sum) && sum == checksum.value();
}

std::int64_t size_of(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : -1;
}

}  // namespace

void HeldWrites::put(std::int64_t at, const void* bytes, std::size_t n) {
  const auto* data = static_cast<const std::byte*>(bytes);
  const std::int64_t end = at + static_cast<std::int64_t>(n);
  // The piece that begins at or before `at`, if it reaches there, takes the bytes in.
  auto into = pieces_.upper_bound(at);
  if (into != pieces_.begin() &&
      std::prev(into)->first + static_cast<std::int64_t>(std::prev(into)->second.size()) >= at) {
    --into;
  } else {
    into = pieces_.emplace_hint(into, at, std::vector<std::byte>());
  }
  std::vector<std::byte>& piece = into->second;
  const auto offset = static_cast<std::size_t>(at - into->first);
  if (piece.size() < offset + n) piece.resize(offset + n);
  std::copy(data, data + n, piece.begin() + static_cast<std::ptrdiff_t>(offset));
  // Those behind that it now reaches become part of it.
  for (auto next = std::next(into); next != pieces_.end() && next->first <= end;
       next = pieces_.erase(next)) {
    const std::int64_t piece_end = into->first + static_cast<std::int64_t>(piece.size());
    const std::int64_t known = std::max<std::int64_t>(0, piece_end - next->first);
    if (known < static_cast<std::int64_t>(next->second.size()))
      piece.insert(piece.end(), next->second.begin() + known, next->second.end());
  }
}

void HeldWrites::overlay(std::int64_t at, void* bytes, std::size_t n) const {
  const std::int64_t end = at + static_cast<std::int64_t>(n);
  auto piece = pieces_.upper_bound(at);
  if (piece != pieces_.begin()) --piece;
  for (; piece != pieces_.end() && piece->first < end; ++piece) {
    const std::int64_t piece_end = piece->first + static_cast<std::int64_t>(piece->second.size());
    const std::int64_t from = std::max(at, piece->first), to = std::min(end, piece_end);
    if (from < to)
      std::memcpy(static_cast<std::byte*>(bytes) + (from - at),
                  piece->second.data() + (from - piece->first),
                  static_cast<std::size_t>(to - from));
  }
}

std::int64_t HeldWrites::end() const {
  if (pieces_.empty()) return 0;
  const auto& [at, bytes] = *pieces_.rbegin();
  return at + static_cast<std::int64_t>(bytes.size());
}

bool HeldWrites::is_atomic() const {
  return pieces_.size() == 1 && pieces_.begin()->first / kPage == (end() - 1) / kPage;
}

void write_journaled(const std::string& path, int descriptor, const HeldWrites& writes) {
  if (writes.empty()) return;
  if (writes.is_atomic()) return apply(path, descriptor, writes);
  // What the journal names must lie inside the file, whoever finishes it.
  if (size_of(descriptor) < writes.end() && ::ftruncate(descriptor, writes.end()) != 0) fail(path);
  write_journal(path, writes);
  apply(path, descriptor, writes);
  drop_journal(path);
}

void finish_flush(const std::string& path) {
  const std::string name = journal_of(path);
  struct stat status {};
  if (::lstat(name.c_str(), &status) != 0) return;  // as nearly always
  const Descriptor file(path, O_RDWR | O_NONBLOCK);
  if (file.fd() < 0) {
    if (errno == ENOENT) return;
    throw Error(ErrorKind::io, fmt::format("{}: its last flush was broken off and must be finished "
                                           "from {}, but it cannot be written to: {}",
                                           path, name, std::strerror(errno)));
  }
  if (::flock(file.fd(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return;
  const Descriptor journal(name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
  if (journal.fd() < 0 && errno == ENOENT) return;  // whoever held the lock was at work in it
  const std::int64_t file_size = size_of(file.fd());
  const auto for_each_piece = [&](const auto& take) {
    return journal.fd() >= 0 && read_journal(journal, size_of(journal.fd()), file_size, take);
  };
  if (!for_each_piece([](std::int64_t, const std::byte*, std::size_t) {}))
    throw Error(
        ErrorKind::corrupt,
        fmt::format("{}: expected the journal of a flush of {}, found something else", name, path));
  for_each_piece([&](std::int64_t at, const std::byte* bytes, std::size_t n) {
    if (!write_at(file.fd(), at, bytes, n)) fail(path);
  });
  drop_journal(path);
}

void remove_journal(const std::string& path) {
  std::error_code ignored;
  fs::remove(journal_of(path), ignored);
  fs::remove(journal_of(path) + ".tmp", ignored);
}

}  // namespace sinkscope::h5
