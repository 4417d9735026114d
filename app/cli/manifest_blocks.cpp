// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/manifest_blocks.h"

#include <fmt/format.h>

#include "app/cli/parse_text.h"
#include "capture/checkpoint/text_file.h"
#include "core/error.h"

namespace sinkscope {

using Json = nlohmann::json;

namespace {

Json parsed(const std::string& text, const std::string& where) {
  try {
    return parse_json(text, where);
  } catch (const Error& error) {
    throw Error(ErrorKind::invalid_argument, error.what());
  }
}

std::vector<ManifestBlock> blocks_of_lines(const std::string& text, const std::string& path) {
  std::vector<ManifestBlock> blocks;
  const std::vector<std::string> lines = split_at(text, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string where = fmt::format("{}:{}", path, i + 1);
    if (lines[i].find_first_not_of(" \t\r") != std::string::npos)
      blocks.push_back({where, parsed(lines[i], where)});
  }
  return blocks;
}

// JSON lines: the first line is an object of its own, and something follows it.
bool are_lines(const std::string& text) {
  const std::string::size_type begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return false;
  const std::string::size_type end = text.find('\n', begin);
  if (end == std::string::npos || text.find_first_not_of(" \t\r\n", end) == std::string::npos)
    return false;
  return Json::parse(text.substr(begin, end - begin), nullptr, false).is_object();
}

}  // namespace

void refuse_manifest(const std::string& where, const std::string& complaint) {
  throw Error(ErrorKind::invalid_argument, fmt::format("{}: {}", where, complaint));
}

std::string shortened(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

std::vector<ManifestBlock> manifest_blocks(const std::string& text, const std::string& path) {
  std::vector<ManifestBlock> blocks;
  if (are_lines(text)) {
    blocks = blocks_of_lines(text, path);
  } else {
    Json json = parsed(text, path);
    if (json.is_array()) {
      for (std::size_t i = 0; i < json.size(); ++i)
        blocks.push_back({fmt::format("{}: entry {}", path, i), std::move(json[i])});
    } else {
      blocks.push_back({path, std::move(json)});
    }
  }
  if (blocks.empty()) refuse_manifest(path, "holds no entry");
  for (const ManifestBlock& block : blocks)
    if (!block.json.is_object())
      refuse_manifest(block.where,
                      fmt::format("expected an object, found {}", shortened(block.json)));
  return blocks;
}

ManifestAxis take_axis(Json& block, const std::string& list, const std::string& field,
                       const std::string& where) {
  ManifestAxis axis;
  // --prompts is a flag of capture, too: the path of a file.
  if (!block.contains(list) || (list == "prompts" && block[list].is_string())) {
    axis.items = {Json::object()};
    axis.names = axis.places = {""};
    return axis;
  }
  const Json given = block[list];
  block.erase(list);
  if (!given.is_array() || given.empty())
    refuse_manifest(where, fmt::format("{}: expected a list, found {}", list, shortened(given)));
  for (const Json& item : given) {
    const std::string place = fmt::format("{}[{}]", list, axis.items.size());
    Json object = item;
    if (item.is_string() && !field.empty()) object = Json{{field, item}};
    if (!object.is_object())
      refuse_manifest(where, fmt::format("{}: expected an object{}, found {}", place,
                                         !field.empty() ? " or a text" : "", shortened(item)));
    std::string name = std::to_string(axis.items.size());
    if (object.contains("name")) {
      if (!object["name"].is_string())
        refuse_manifest(where, fmt::format("{}.name: expected a text, found {}", place,
                                           shortened(object["name"])));
      name = object["name"].get<std::string>();
      object.erase("name");
    } else if (list == "models") {
      name.clear();  // the path's last part
    }
    axis.items.push_back(std::move(object));
    axis.names.push_back(std::move(name));
    axis.places.push_back(place);
  }
  return axis;
}

}  // namespace sinkscope
