// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/text_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "capture/checkpoint/file_reader.h"
#include "core/error.h"

namespace sinkscope {

std::string read_text_file(const std::string& path) {
  constexpr std::uint64_t kLargest = std::uint64_t{64} << 20;
  const FileReader file(path);
  if (file.size() > kLargest) {
    throw Error(ErrorKind::corrupt, fmt::format("{}: {} bytes, expected a text of at most {}", path,
                                                file.size(), kLargest));
  }
  std::string text(file.size(), '\0');
  file.read(0, text.size(), text.data());
  return text;
}

nlohmann::json parse_json(const std::string& text, const std::string& path) {
  // The library's parser recurses nowhere, but its documents are destroyed and printed recursively.
  constexpr int kDeepest = 64;
  const auto limit = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > kDeepest)
      throw Error(ErrorKind::corrupt, fmt::format("{}: nested more than {} deep", path, kDeepest));
    return true;
  };
  try {
    return nlohmann::json::parse(text, limit);
  } catch (const nlohmann::json::parse_error& e) {
    throw Error(ErrorKind::corrupt, fmt::format("{}: not JSON at byte {}{}", path, e.byte,
                                                text.starts_with("version https://git-lfs")
                                                    ? ": a Git-LFS pointer, not the file itself"
                                                    : ""));
  }
}

nlohmann::json parse_json_file(const std::string& path) {
  return parse_json(read_text_file(path), path);
}

}  // namespace sinkscope
