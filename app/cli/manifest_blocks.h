// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sinkscope {

// A manifest as JSON, before its fields mean anything (see manifest.h).

struct ManifestBlock {
  std::string where;    // "runs.json: entry 3", "runs.jsonl:4"
  nlohmann::json json;  // an object
};

// The blocks of a manifest's text: one object, a list of them, or one a line. `path` is for
// messages. Throws Error{invalid_argument}: no JSON, a key that occurs twice, no object, no block.
std::vector<ManifestBlock> manifest_blocks(const std::string& text, const std::string& path);

// One of the lists that a block multiplies.
struct ManifestAxis {
  std::vector<nlohmann::json> items;  // objects; one empty one where the block has no such list
  std::vector<std::string> names;     // the item's name, else its number; of models without one ""
  std::vector<std::string> places;    // "models[2]", for messages
};

// Takes `list` ("models") out of the block. `field`: what an item that is a text stands for; "" =
// items are objects. Throws Error{invalid_argument}.
ManifestAxis take_axis(nlohmann::json& block, const std::string& list, const std::string& field,
                       const std::string& where);

// JSON as a message shows it.
std::string shortened(const nlohmann::json& value);

// Throws Error{invalid_argument} "where: complaint".
[[noreturn]] void refuse_manifest(const std::string& where, const std::string& complaint);

}  // namespace sinkscope
