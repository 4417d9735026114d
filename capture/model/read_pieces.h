// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include "capture/checkpoint/packing.h"

namespace sinkscope {

// Files are decoded to float32. A type that is narrower is filled in pieces of so many bytes of
// float32, which keeps that from being the larger part.
inline constexpr std::int64_t kPieceBytes = std::int64_t{32} << 20;

// A matrix that is stored transposed has to be read from end to end for any of its rows.
inline bool is_read_whole(Packing packing) {
  return packing == Packing::transposed || packing == Packing::qkv_columns;
}

}  // namespace sinkscope
