// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "capture/checkpoint/safetensors_dtype.h"

namespace sinkscope {

// One entry of a safetensors header as it is written there, nothing checked against the file yet.
struct HeaderEntry {
  std::string name;
  const SafetensorsDtype* dtype = nullptr;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0, end = 0;  // relative to the data
};

// Parses a header's JSON without building a document: entries in the order of the text, names not
// yet compared. `path` is for messages. Throws Error{corrupt}: not UTF-8, not JSON of this form
// (unknown dtype, negative or fractional size, metadata that is not text). Unknown fields of an
// entry are skipped.
std::vector<HeaderEntry> parse_safetensors_json(std::string_view text, const std::string& path);

}  // namespace sinkscope
