// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace sinkscope {

// The whole of a small text file. Throws Error: not_found, io, corrupt (larger than 64 MiB).
std::string read_text_file(const std::string& path);

// Parses JSON; `path` is for messages. Throws Error{corrupt} with the byte where it stops being
// JSON.
nlohmann::json parse_json(const std::string& text, const std::string& path);

// Both in one: an index with 100,000 tensors is 10 MB.
nlohmann::json parse_json_file(const std::string& path);

}  // namespace sinkscope
