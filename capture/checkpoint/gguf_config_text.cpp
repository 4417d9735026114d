// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/gguf_config_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "capture/checkpoint/gguf_file.h"

namespace sinkscope {
namespace {

constexpr std::size_t kLongestList = 256, kLongestText = 64 << 10;

bool is_vocabulary(std::string_view key) {
  constexpr std::array kLists = {"tokens", "scores", "token_type", "merges"};
  constexpr std::string_view kPrefix = "tokenizer.ggml.";
  if (!key.starts_with(kPrefix)) return false;
  return std::find(kLists.begin(), kLists.end(), key.substr(kPrefix.size())) != kLists.end();
}

nlohmann::ordered_json shown(std::string_view key, const GgufValue& value) {
  return std::visit(
      [key](const auto& v) -> nlohmann::ordered_json {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) {
          if (v.size() > kLongestText) return fmt::format("{} bytes", v.size());
        } else if constexpr (!std::is_arithmetic_v<T>) {
          if (is_vocabulary(key) || v.size() > kLongestList) {
            return fmt::format("{} entries", v.size());
          }
        }
        return v;
      },
      value);
}

}  // namespace

std::string gguf_config_text(const GgufFile& file) {
  // Keys are unique already; ordered_json's own insertion would compare each with all before it.
  nlohmann::ordered_json::object_t config;
  for (const std::string& key : file.keys()) {
    config.Container::emplace_back(key, shown(key, *file.find_key(key)));
  }
  return nlohmann::ordered_json(std::move(config))
      .dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace sinkscope
