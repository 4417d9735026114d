// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/gguf_split.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "capture/checkpoint/gguf_header.h"
#include "core/error.h"

namespace sinkscope {
namespace {
namespace fs = std::filesystem;

constexpr std::int64_t kMaxParts = 99999;  // five digits

std::int64_t split_key(const std::string& path, const GgufHeader& header, const char* key,
                       std::int64_t fallback) {
  const GgufValue* value = header.find_key(key);
  if (value == nullptr) return fallback;
  const auto* number = std::get_if<std::int64_t>(value);
  if (number == nullptr || *number < 0) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: key \"{}\": expected a number of at least 0", path, key));
  }
  return *number;
}

// "-00002-of-00003.gguf", numbers from 1.
std::string part_suffix(std::int64_t number, std::int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", number, count);
}

// `path` with the suffix of part `number` in place of part `current`'s; nothing when the name does
// not have the latter.
std::optional<std::string> sibling(const std::string& path, std::int64_t current,
                                   std::int64_t number, std::int64_t count) {
  const std::string suffix = part_suffix(current, count);
  if (!path.ends_with(suffix)) return std::nullopt;
  return path.substr(0, path.size() - suffix.size()) + part_suffix(number, count);
}

}  // namespace

std::vector<std::string> remaining_split_parts(const std::string& path, const GgufHeader& header) {
  const std::int64_t count = split_key(path, header, "split.count", 0);
  if (count <= 1) return {};
  const std::int64_t index = split_key(path, header, "split.no", 0);
  if (count > kMaxParts || index >= count) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: says it is part {} of {}, at most {} are allowed", path, index + 1,
                            count, kMaxParts));
  }
  if (index > 0) {
    const auto first = sibling(path, index + 1, 1, count);
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("{}: is part {} of {}; open the first: {}", path, index + 1, count,
                    first ? fs::path(*first).filename().string() : "NAME" + part_suffix(1, count)));
  }
  std::vector<std::string> others;
  for (std::int64_t number = 2; number <= count; ++number) {
    const auto other = sibling(path, 1, number, count);
    if (!other) {
      throw Error(
          ErrorKind::corrupt,
          fmt::format("{}: is part 1 of {}, and its name must end in {} for the others to be "
                      "found",
                      path, count, part_suffix(1, count)));
    }
    others.push_back(*other);
  }
  return others;
}

FileReader open_split_part(const std::string& path) {
  try {
    return FileReader(path);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::not_found) throw;
    throw Error(ErrorKind::not_found, fmt::format("{}: this part of the model is missing", path));
  }
}

void check_split_part(const std::string& path, const GgufHeader& header, int number, int count) {
  const std::int64_t said_count = split_key(path, header, "split.count", 0);
  const std::int64_t said_number = split_key(path, header, "split.no", -1);
  if (said_count == count && said_number == number) return;
  throw Error(ErrorKind::corrupt,
              fmt::format("{}: expected part {} of {}, the file says part {} of {}", path,
                          number + 1, count, said_number + 1, said_count));
}

void check_split_total(const std::string& path, const GgufHeader& first, std::int64_t n_tensors) {
  const std::int64_t said = split_key(path, first, "split.tensors.count", n_tensors);
  if (split_key(path, first, "split.count", 0) <= 1 || said == n_tensors) return;
  throw Error(ErrorKind::corrupt,
              fmt::format("{}: key \"split.tensors.count\": promises {} tensors, the parts have {}",
                          path, said, n_tensors));
}

}  // namespace sinkscope
