// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/half.h"

#include <cmath>
#include <limits>

namespace sinkscope {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// sign | exponent | mantissa with the given widths and bias, all exponents finite.
float finite(std::uint8_t bits, int mantissa_bits, int bias) {
  const int exponent = (bits & 0x7F) >> mantissa_bits;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int significand = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  const float magnitude = std::ldexp(static_cast<float>(significand),
                                     (exponent == 0 ? 1 : exponent) - bias - mantissa_bits);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

}  // namespace

float float_from_f8_e4m3(std::uint8_t bits) {
  return (bits & 0x7F) == 0x7F ? kNan : finite(bits, 3, 7);
}

float float_from_f8_e5m2(std::uint8_t bits) {
  if ((bits & 0x7F) > 0x7C) return kNan;
  if ((bits & 0x7F) == 0x7C) {
    const float infinity = std::numeric_limits<float>::infinity();
    return (bits & 0x80) != 0 ? -infinity : infinity;
  }
  return finite(bits, 2, 15);
}

float float_from_f8_e4m3fnuz(std::uint8_t bits) { return bits == 0x80 ? kNan : finite(bits, 3, 8); }

float float_from_f8_e5m2fnuz(std::uint8_t bits) {
  return bits == 0x80 ? kNan : finite(bits, 2, 16);
}

float float_from_e8m0(std::uint8_t bits) {
  return bits == 0xFF ? kNan : std::ldexp(1.0f, static_cast<int>(bits) - 127);
}

float float_from_e2m1(std::uint8_t bits) {
  constexpr float kMagnitudes[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  const float magnitude = kMagnitudes[bits & 7];
  return (bits & 8) != 0 ? -magnitude : magnitude;
}

}  // namespace sinkscope
