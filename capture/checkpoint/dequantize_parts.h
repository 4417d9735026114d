// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "core/half.h"

// Small pieces that the decoders of dequantize.cpp and dequantize_k.cpp share.

namespace sinkscope {

template <class T>
inline T load(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

inline float half_at(const std::uint8_t* from) {
  return float_from_half(load<std::uint16_t>(from));
}

// The sixteen values of IQ4_NL and IQ4_XS.
inline constexpr float kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};

// Sixteen values times a scale: a product a code, looked up for every element.
struct Codebook {
  Codebook(float scale, const float (&values)[16]) {
    for (int i = 0; i < 16; ++i) value[i] = scale * values[i];
  }
  // Low nibbles of `qs` [n] to out[0…n), high nibbles to out[n…2n).
  void decode_nibbles(const std::uint8_t* qs, int n, float* __restrict out) const {
    for (int j = 0; j < n; ++j) out[j] = value[qs[j] & 15];
    for (int j = 0; j < n; ++j) out[j + n] = value[qs[j] >> 4];
  }
  float value[16];
};

}  // namespace sinkscope
