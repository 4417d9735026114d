// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/recording_state.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/h5/flush_journal.h"
#include "core/side_file.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'s', 'i', 'n', 'k', 's', 't', 'a', '1'};

struct Head {
  char magic[8];
  std::int32_t layers_done, first_run;
  std::int64_t request_bytes, n_streams;
  std::int64_t body_bytes;  // the request, the streams' sizes, the streams
  std::uint64_t checksum;   // of everything before this and of the body
};

std::string latest(const std::string& path) { return path + ".state"; }
std::string before(const std::string& path) { return path + ".state.before"; }

// Reads a piece of `n` bytes, no more than `left`, which shrinks.
template <class Bytes>
bool take(const Descriptor& file, std::int64_t n, std::int64_t& left, Checksum& checksum,
          Bytes& into) {
  if (n < 0 || n > left) return false;
  left -= n;
  into.resize(static_cast<std::size_t>(n) / sizeof(into[0]));
  if (!file.read(into.data(), static_cast<std::size_t>(n))) return false;
  checksum.add(into.data(), static_cast<std::size_t>(n));
  return true;
}

std::optional<RecordingState> load(const std::string& path) {
  const Descriptor file(path, O_RDONLY);
  if (file.fd() < 0) {
    if (errno == ENOENT) return std::nullopt;
    file.fail("open");
  }
  Head head;
  struct stat status {};
  if (::fstat(file.fd(), &status) != 0 || !file.read(&head, sizeof head)) return std::nullopt;
  std::int64_t left = status.st_size - static_cast<std::int64_t>(sizeof head);
  if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0 || head.body_bytes != left ||
      head.n_streams < 0 || head.n_streams > left / 8)
    return std::nullopt;
  RecordingState state;
  state.layers_done = head.layers_done;
  state.first_run = head.first_run;
  state.streams.resize(static_cast<std::size_t>(head.n_streams));
  Checksum checksum;
  checksum.add(&head, offsetof(Head, checksum));
  std::vector<std::int64_t> sizes;
  if (!take(file, head.request_bytes, left, checksum, state.request) ||
      !take(file, head.n_streams * 8, left, checksum, sizes))
    return std::nullopt;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (!take(file, sizes[i], left, checksum, state.streams[i])) return std::nullopt;
  if (left != 0 || checksum.value() != head.checksum) return std::nullopt;
  return state;
}

}  // namespace

void save_state(const std::string& path, const std::string& request, int layers_done, int first_run,
                const std::vector<StreamBytes>& streams) {
  std::vector<std::int64_t> sizes;
  for (const StreamBytes& stream : streams)
    sizes.push_back(static_cast<std::int64_t>(stream.size()));
  std::vector<StreamBytes> pieces = {std::as_bytes(std::span(request)),
                                     std::as_bytes(std::span(sizes))};
  pieces.insert(pieces.end(), streams.begin(), streams.end());
  Head head{};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  head.layers_done = layers_done;
  head.first_run = first_run;
  head.request_bytes = static_cast<std::int64_t>(request.size());
  head.n_streams = static_cast<std::int64_t>(streams.size());
  for (const StreamBytes& piece : pieces)
    head.body_bytes += static_cast<std::int64_t>(piece.size());
  Checksum checksum;
  checksum.add(&head, offsetof(Head, checksum));
  for (const StreamBytes& piece : pieces) checksum.add(piece.data(), piece.size());
  head.checksum = checksum.value();

  const std::string unborn = latest(path) + ".tmp";
  try {
    Descriptor file(unborn, O_WRONLY | O_CREAT | O_TRUNC);
    if (file.fd() < 0) file.fail("create");
    file.write(&head, sizeof head);
    for (const StreamBytes& piece : pieces) file.write(piece.data(), piece.size());
    file.close();
  } catch (...) {
    std::error_code ignored;
    fs::remove(unborn, ignored);  // a full disk has no room for half a state
    throw;
  }
  if (fs::exists(latest(path))) rename_file(latest(path), before(path));
  rename_file(unborn, latest(path));
}

std::vector<RecordingState> load_states(const std::string& path) {
  std::vector<RecordingState> states;
  for (const std::string& file : {latest(path), before(path)}) {
    auto state = load(file);
    if (!state) continue;
    state->is_before = file == before(path);
    states.push_back(std::move(*state));
  }
  return states;
}

void promote_state(const std::string& path) { rename_file(before(path), latest(path)); }

void remove_states(const std::string& path) {
  std::error_code ignored;
  for (const std::string& file : {latest(path) + ".tmp", latest(path), before(path)})
    fs::remove(file, ignored);
  h5::remove_journal(path);
}

}  // namespace sinkscope
