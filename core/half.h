// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <bit>
#include <cstdint>

namespace sinkscope {

// Scalars narrower than float, decoded exactly. Every value of these formats is a float, so
// decoding never rounds; encoding rounds to nearest, ties to even. The loops that call these
// vectorize: no tables, no branches in the bfloat16 and half decoders.

inline float float_from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// NaN stays a (quiet) NaN with its sign; overflow becomes infinity.
inline std::uint16_t bf16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

// IEEE 754 binary16, subnormals, infinities and NaN payloads included.
inline float float_from_half(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7FFFu) << 13;
  // Normal: shift the exponent bias from 15 to 127. Infinity and NaN: from 31 to 255.
  const std::uint32_t normal = magnitude + (112u << 23);
  const std::uint32_t special = magnitude + (224u << 23);
  // Subnormal: m * 2^-24, exact; made by a subtraction that no flush-to-zero mode can touch.
  const float subnormal_value = std::bit_cast<float>(magnitude + (113u << 23)) - 0x1p-14f;
  const auto subnormal = std::bit_cast<std::uint32_t>(subnormal_value);
  const std::uint32_t finite = magnitude < (1u << 23) ? subnormal : normal;
  return std::bit_cast<float>(sign | (magnitude >= (31u << 23) ? special : finite));
}

// To nearest, ties to even, subnormals included; beyond 65,519.99… infinity; NaN stays a quiet NaN.
inline std::uint16_t half_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u);
  if (magnitude >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7C00u);  // >= 65536
  if (magnitude < 0x38800000u) {  // below 2^-14: the sum rounds |value| to a multiple of 2^-24
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    const std::uint32_t units = std::bit_cast<std::uint32_t>(rounded) - 0x3F000000u;
    return static_cast<std::uint16_t>(sign | units);
  }
  const std::uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u) - (112u << 23);
  return static_cast<std::uint16_t>(sign | (rounded >> 13));
}

// OCP FP8 E4M3 ("fn"): bias 7, no infinity, 0x7F and 0xFF are NaN, largest 448.
float float_from_f8_e4m3(std::uint8_t bits);
// FP8 E5M2: bias 15, IEEE-like infinities and NaN, largest 57,344.
float float_from_f8_e5m2(std::uint8_t bits);
// The "fnuz" kinds: bias 8 and 16, one NaN (0x80), no negative zero, no infinity.
float float_from_f8_e4m3fnuz(std::uint8_t bits);
float float_from_f8_e5m2fnuz(std::uint8_t bits);
// A power of two, 2^(bits - 127); 0xFF is NaN, there is no zero.
float float_from_e8m0(std::uint8_t bits);
// FP4 E2M1 in the low four bits: 0 .5 1 1.5 2 3 4 6, bit 3 is the sign.
float float_from_e2m1(std::uint8_t bits);

}  // namespace sinkscope
