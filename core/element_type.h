// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace sinkscope {

// What one element of a recorded array is. Numbers are little-endian on disk.
enum class ElementType { f32, f64, i32, i64, text };

// Bytes of one element; 0 for text, whose length is its own.
constexpr std::int64_t element_size(ElementType type) {
  switch (type) {
    case ElementType::f32:
    case ElementType::i32:
      return 4;
    case ElementType::f64:
    case ElementType::i64:
      return 8;
    case ElementType::text:
      break;
  }
  return 0;
}

}  // namespace sinkscope
