// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sinkscope {

// One element type of the safetensors format. `decode` turns `n` stored elements at `in` (any
// alignment, little-endian) into float32; sub-byte types start on a byte. Null: the type is known
// by name and size only (C64, F6_E2M3, F6_E3M2).
struct SafetensorsDtype {
  const char* name;
  int bits;
  void (*decode)(const std::byte* in, std::int64_t n, float* out);
  // Codes that mean nothing without a scale when the checkpoint is a quantized one.
  bool is_code;
};

// Null when the format has no such type.
const SafetensorsDtype* find_safetensors_dtype(std::string_view name);

}  // namespace sinkscope
