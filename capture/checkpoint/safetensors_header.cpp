// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>

#include "capture/checkpoint/printable.h"
#include "capture/checkpoint/safetensors_json.h"
#include "core/error.h"

namespace sinkscope {
namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kLongestHeader = 100'000'000;
constexpr std::string_view kLfsStart = "version https://git-lfs";

std::string first_bytes(const FileReader& file, std::uint64_t n) {
  std::string bytes(std::min(n, file.size()), '\0');
  file.read(0, bytes.size(), bytes.data());
  return bytes;
}

std::uint64_t header_length(const std::string& bytes) {
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  return length;
}

[[noreturn]] void refuse(const FileReader& file, const std::string& sentence) {
  throw Error(ErrorKind::corrupt, file.path() + ": " + sentence);
}

// Checks 1 to 3.
std::string read_header_text(const FileReader& file) {
  if (looks_like_lfs_pointer(file)) {
    refuse(file, fmt::format("this is a Git-LFS pointer of {} bytes, not the file it stands for: "
                             "download the real one (git lfs pull)",
                             file.size()));
  }
  if (file.size() < kLengthBytes) {
    refuse(file, fmt::format("{} bytes are too few for a safetensors file, which begins with an "
                             "8-byte header length",
                             file.size()));
  }
  const std::uint64_t length = header_length(first_bytes(file, kLengthBytes));
  if (length > kLongestHeader) {
    refuse(file, fmt::format("header length {} is above the {} that safetensors allows: damaged, "
                             "or not a safetensors file",
                             length, kLongestHeader));
  }
  if (length > file.size() - kLengthBytes) {
    refuse(file, fmt::format("the header should take {} bytes, only {} follow its length: the file "
                             "is cut off (incomplete download?) or not a safetensors file",
                             length, file.size() - kLengthBytes));
  }
  std::string text(length, '\0');
  file.read(kLengthBytes, length, text.data());
  return text;
}

// Check 7. Zero dimensions are legal and must not hide an overflow beside them.
std::uint64_t checked_bits(const FileReader& file, const HeaderEntry& entry) {
  std::uint64_t bits = static_cast<std::uint64_t>(entry.dtype->bits);
  bool overflow = false;
  for (const std::uint64_t dim : entry.shape) {
    overflow = overflow || dim > std::uint64_t{std::numeric_limits<std::int64_t>::max()} ||
               __builtin_mul_overflow(bits, dim, &bits);
  }
  if (overflow) {
    refuse(file,
           fmt::format("tensor {}: shape [{}] of {} is too large to count", printable(entry.name),
                       fmt::join(entry.shape, ", "), entry.dtype->name));
  }
  return bits;
}

// Checks 7 to 9 and the rows of F4.
void check_size(const FileReader& file, const HeaderEntry& entry) {
  const std::uint64_t bits = checked_bits(file, entry);
  if (bits % 8 != 0) {
    refuse(file, fmt::format("tensor {}: {} bits of {} are not whole bytes", printable(entry.name),
                             bits, entry.dtype->name));
  }
  if (entry.end - entry.begin != bits / 8) {
    refuse(file, fmt::format("tensor {}: shape [{}] of {} takes {} bytes, its offsets span {}",
                             printable(entry.name), fmt::join(entry.shape, ", "), entry.dtype->name,
                             bits / 8, entry.end - entry.begin));
  }
  if (entry.dtype->bits == 4 && !entry.shape.empty() && entry.shape.back() % 2 != 0) {
    refuse(file, fmt::format("tensor {}: last dimension {} of F4 is odd, two values share a byte",
                             printable(entry.name), entry.shape.back()));
  }
}

// Checks 6 to 10: the tensors tile the data without a hole or an overlap.
void check_layout(const FileReader& file, const std::vector<HeaderEntry>& entries,
                  std::uint64_t data_size) {
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(entries[a].begin, entries[a].end) <
           std::pair(entries[b].begin, entries[b].end);
  });
  std::uint64_t expected = 0;
  for (const std::size_t i : order) {
    const HeaderEntry& entry = entries[i];
    if (entry.begin != expected || entry.end < entry.begin) {
      refuse(file, fmt::format("tensor {}: offsets [{}, {}] leave a hole or overlap, expected to "
                               "begin at {}",
                               printable(entry.name), entry.begin, entry.end, expected));
    }
    check_size(file, entry);
    expected = entry.end;
  }
  if (expected != data_size) {
    refuse(file, fmt::format("the header describes a file of {} bytes, found {}: {}",
                             file.size() - data_size + expected, file.size(),
                             expected > data_size ? "cut off (incomplete download?)"
                                                  : "extra bytes after the data"));
  }
}

}  // namespace

std::vector<SafetensorsEntry> read_safetensors_header(const FileReader& file) {
  std::vector<HeaderEntry> entries;
  std::uint64_t data_begin = 0;
  {
    const std::string text = read_header_text(file);
    data_begin = kLengthBytes + text.size();
    entries = parse_safetensors_json(text, file.path());  // checks 4 and 5
  }
  std::sort(entries.begin(), entries.end(),
            [](const HeaderEntry& a, const HeaderEntry& b) { return a.name < b.name; });
  for (std::size_t i = 1; i < entries.size(); ++i) {
    if (entries[i].name == entries[i - 1].name)
      refuse(file, fmt::format("tensor {} is listed twice", printable(entries[i].name)));
  }
  check_layout(file, entries, file.size() - data_begin);

  std::vector<SafetensorsEntry> checked;
  checked.reserve(entries.size());
  for (HeaderEntry& entry : entries) {
    SafetensorsEntry& out = checked.emplace_back();
    out.info.name = std::move(entry.name);
    out.info.dtype = entry.dtype->name;
    out.info.shape.assign(entry.shape.begin(), entry.shape.end());
    out.info.n_bytes = entry.end - entry.begin;
    out.info.readable = entry.dtype->decode != nullptr;
    out.dtype = entry.dtype;
    out.begin = data_begin + entry.begin;
  }
  return checked;
}

bool looks_like_safetensors(const FileReader& file) {
  if (file.size() < kLengthBytes + 2) return false;
  const std::string bytes = first_bytes(file, kLengthBytes + 1);
  const std::uint64_t length = header_length(bytes);
  return length <= kLongestHeader && length <= file.size() - kLengthBytes &&
         std::string_view("{ \t\r\n").find(bytes.back()) != std::string_view::npos;
}

bool looks_like_lfs_pointer(const FileReader& file) {
  return first_bytes(file, kLfsStart.size()) == kLfsStart;
}

}  // namespace sinkscope
