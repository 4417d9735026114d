// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

namespace sinkscope {

// Decodes `n_blocks` consecutive blocks to float32, exactly as the reference implementation does
// (float32 arithmetic, half-precision scales). `blocks` needs no alignment.
using DecodeBlocks = void (*)(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);

// A tensor type of GGUF: rows are whole blocks of `block_elements` values in `block_bytes` bytes.
struct GgufType {
  std::uint32_t id;
  const char* name;
  int block_elements, block_bytes;
  DecodeBlocks decode;  // null: the size is known, the values cannot be decoded here
};

// Null for an id that is unknown or was withdrawn from the format: its sizes are unknown then.
const GgufType* find_gguf_type(std::uint32_t id);

// What a person calls the type: "Q4_1", "type 250", "type 31 (withdrawn)".
std::string gguf_type_name(std::uint32_t id);

}  // namespace sinkscope
