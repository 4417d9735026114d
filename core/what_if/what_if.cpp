// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/what_if/what_if.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace sinkscope {

constexpr int kDeepest = 16;  // of an edit's JSON; a stranger's may be a tower of brackets

std::string what_if_text(const WhatIf& what_if) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Edit& edit : what_if) list.push_back(edit_json(edit));
  return list.size() == 1 ? list.front().dump() : list.dump();
}

WhatIf parse_what_if(const std::string& text) {
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(text, [](int depth, auto, auto&) {
      if (depth > kDeepest)
        throw Error(ErrorKind::invalid_argument,
                    fmt::format("edits: nested more than {} deep", kDeepest));
      return true;
    });
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("edits: expected JSON, found something else at byte {}: {}",
                            text.size(), error.what()));
  }
  WhatIf what_if;
  if (!json.is_array()) json = nlohmann::json::array({json});
  for (const auto& edit : json) what_if.push_back(edit_from_json(edit));
  return what_if;
}

}  // namespace sinkscope
