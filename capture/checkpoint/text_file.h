// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace sinkscope {

// Whether something has that name, a broken or circular link, too: reading it then says what is
// wrong with it.
bool is_there(const std::string& path);

// The whole of a small text file. Throws Error: not_found, io, corrupt (larger than 64 MiB).
std::string read_text_file(const std::string& path);

// What an exception of the JSON library says, without its own name in front.
std::string json_reason(const std::string& what);

// Parses JSON; `path` is for messages. Throws Error{corrupt} with the byte where it stops being
// JSON, for a key that occurs twice in one object (readers disagree about which one counts), and
// for what is nested more than 64 deep.
nlohmann::json parse_json(const std::string& text, const std::string& path);

// Both in one: an index with 100,000 tensors is 10 MB.
nlohmann::json parse_json_file(const std::string& path);

}  // namespace sinkscope
