// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "capture/checkpoint/file_reader.h"
#include "capture/checkpoint/gguf_file.h"

namespace sinkscope {

// Where a tensor lies. `offset` counts from the beginning of the file.
struct GgufTensor {
  TensorInfo info;
  std::uint32_t type_id = 0;
  std::uint64_t offset = 0;
};

// The header of one GGUF file, read and checked whole: metadata, tensor infos, data offsets.
struct GgufHeader {
  std::vector<std::string> keys;  // in file order
  std::vector<GgufValue> values;  // of keys
  std::unordered_map<std::string, int> key_index;
  std::vector<GgufTensor> tensors;  // in file order
  std::vector<std::string> warnings;

  const GgufValue* find_key(const std::string& key) const;
};

// Layout: "GGUF" | u32 version | u64 tensors | u64 keys | keys | tensor infos | padding | data.
// A tensor of a type this program does not know is kept, readable = false: the room up to the next
// tensor stands for its size, and a warning says so.
// Throws Error: corrupt (naming key or tensor), unsupported (version, byte order, nested arrays).
GgufHeader read_gguf_header(const FileReader& file);

}  // namespace sinkscope
