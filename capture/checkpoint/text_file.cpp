// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/text_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <vector>

#include "capture/checkpoint/file_reader.h"
#include "capture/checkpoint/printable.h"
#include "core/error.h"

namespace sinkscope {
namespace fs = std::filesystem;

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

namespace {

// Looks over a document while it is parsed.
class JsonGuard {
 public:
  explicit JsonGuard(const std::string& path) : path_(path) {}

  bool operator()(int depth, nlohmann::json::parse_event_t event, const nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    // The library's parser recurses nowhere, but its documents are destroyed and printed
    // recursively.
    if (depth > kDeepest) refuse(fmt::format("nested more than {} deep", kDeepest));
    const auto level = static_cast<std::size_t>(depth);
    if (event == Event::object_start) {
      keys_.resize(std::max(keys_.size(), level + 2));
      keys_[level + 1].clear();
    } else if (event == Event::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_[level].insert(key).second)
        refuse(fmt::format("the key \"{}\" occurs twice in one object", printable(key)));
    }
    return true;
  }

 private:
  static constexpr int kDeepest = 64;

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::corrupt, fmt::format("{}: {}", path_, what));
  }

  const std::string& path_;
  std::vector<std::unordered_set<std::string>> keys_;  // by depth, of the objects that are open
};

}  // namespace

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

nlohmann::json parse_json(const std::string& text, const std::string& path) {
  JsonGuard guard(path);
  try {
    return nlohmann::json::parse(
        text, [&guard](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
          return guard(depth, event, parsed);
        });
  } catch (const nlohmann::json::parse_error& e) {
    throw Error(ErrorKind::corrupt, fmt::format("{}: not JSON at byte {}{}", path, e.byte,
                                                text.starts_with("version https://git-lfs")
                                                    ? ": a Git-LFS pointer, not the file itself"
                                                    : ""));
  } catch (const nlohmann::json::exception& e) {  // a number beyond every range
    throw Error(ErrorKind::corrupt, fmt::format("{}: not JSON: {}", path, printable(e.what())));
  }
}

nlohmann::json parse_json_file(const std::string& path) {
  return parse_json(read_text_file(path), path);
}

}  // namespace sinkscope
