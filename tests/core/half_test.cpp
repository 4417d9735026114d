// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace sinkscope {
namespace {

// sign, exponent, mantissa of an IEEE-like format, by the definition.
double by_definition(unsigned bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = static_cast<int>(bits) & ((1 << mantissa_bits) - 1);
  const double sign = (bits >> (exponent_bits + mantissa_bits)) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  const double fraction = std::ldexp(mantissa, -mantissa_bits);
  return exponent == 0 ? sign * std::ldexp(fraction, 1 - bias)
                       : sign * std::ldexp(1.0 + fraction, exponent - bias);
}

void expect_same(float found, double expected, unsigned code) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(found)) << std::hex << code;
  } else {
    EXPECT_EQ(static_cast<double>(found), expected) << std::hex << code;
    EXPECT_EQ(std::signbit(found), std::signbit(expected)) << std::hex << code;
  }
}

TEST(Half, EveryCodeDecodesByTheDefinition) {
  for (unsigned code = 0; code < 65536; ++code)
    expect_same(float_from_half(static_cast<std::uint16_t>(code)), by_definition(code, 5, 10),
                code);
}

TEST(Half, EveryBfloat16CodeDecodesByTheDefinition) {
  for (unsigned code = 0; code < 65536; ++code)
    expect_same(float_from_bf16(static_cast<std::uint16_t>(code)), by_definition(code, 8, 7), code);
}

TEST(Half, EveryCodeSurvivesTheRoundTrip) {
  for (unsigned code = 0; code < 65536; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    const float half = float_from_half(bits), bf16 = float_from_bf16(bits);
    if (!std::isnan(half)) {
      EXPECT_EQ(half_from_float(half), bits);
    }
    if (!std::isnan(bf16)) {
      EXPECT_EQ(bf16_from_float(bf16), bits);
    }
  }
}

// Encoding is right when no neighbor is nearer, and none as near has an even code where ours is
// odd.
void expect_nearest(float value, std::uint16_t code, float (*decode)(std::uint16_t)) {
  const double error = std::abs(static_cast<double>(decode(code)) - value);
  for (const int step : {-1, 1}) {
    const int magnitude = (code & 0x7FFF) + step;
    if (magnitude < 0) continue;
    const auto other = static_cast<std::uint16_t>((code & 0x8000) | magnitude);
    const double other_error = std::abs(static_cast<double>(decode(other)) - value);
    if (!std::isfinite(other_error)) continue;
    EXPECT_LE(error, other_error) << value;
    if (error == other_error) {
      EXPECT_EQ(code % 2, 0) << value;
    }
  }
}

TEST(Half, EncodingRoundsToNearestEven) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> exponent(-27.0f, 15.9f), sign(-1.0f, 1.0f);
  for (int i = 0; i < 20000; ++i) {
    const float value = std::copysign(std::exp2(exponent(random)), sign(random));
    expect_nearest(value, half_from_float(value), float_from_half);
    expect_nearest(value, bf16_from_float(value), float_from_bf16);
  }
}

TEST(Half, TiesGoToEven) {
  EXPECT_EQ(half_from_float(1.0f + 0x1p-11f), 0x3C00);  // between 1 and the next: 1 is even
  EXPECT_EQ(half_from_float(1.0f + 3 * 0x1p-11f), 0x3C02);
  EXPECT_EQ(half_from_float(0x1p-25f), 0x0000);  // half of the smallest subnormal
  EXPECT_EQ(half_from_float(3 * 0x1p-25f), 0x0002);
  EXPECT_EQ(bf16_from_float(1.0f + 0x1p-8f), 0x3F80);
  EXPECT_EQ(bf16_from_float(1.0f + 3 * 0x1p-8f), 0x3F82);
}

TEST(Half, OverflowIsInfinityAndNanStaysNan) {
  EXPECT_EQ(half_from_float(65504.0f), 0x7BFF);
  EXPECT_EQ(half_from_float(65519.0f), 0x7BFF);
  EXPECT_EQ(half_from_float(65520.0f), 0x7C00);
  EXPECT_EQ(half_from_float(-1e10f), 0xFC00);
  EXPECT_EQ(bf16_from_float(std::numeric_limits<float>::max()), 0x7F80);
  const float nan = std::numeric_limits<float>::signaling_NaN();
  EXPECT_TRUE(std::isnan(float_from_half(half_from_float(nan))));
  EXPECT_TRUE(std::isnan(float_from_bf16(bf16_from_float(nan))));
}

TEST(Half, Float8E5M2IsTheUpperHalfOfAHalf) {
  for (unsigned code = 0; code < 256; ++code)
    expect_same(float_from_f8_e5m2(static_cast<std::uint8_t>(code)), by_definition(code, 5, 2),
                code);
}

TEST(Half, Float8E4M3HasOneNanAndNoInfinity) {
  for (unsigned code = 0; code < 256; ++code) {
    const float value = float_from_f8_e4m3(static_cast<std::uint8_t>(code));
    if ((code & 0x7F) == 0x7F) {
      EXPECT_TRUE(std::isnan(value));
    } else if ((code & 0x78) == 0x78) {  // where IEEE would put infinities
      const double expected = (1.0 + (code & 7) / 8.0) * 256.0;
      expect_same(value, code < 128 ? expected : -expected, code);
    } else {
      expect_same(value, by_definition(code, 4, 3), code);
    }
  }
  EXPECT_EQ(float_from_f8_e4m3(0x7E), 448.0f);
}

TEST(Half, FnuzKindsHalveTheirFnTwins) {
  EXPECT_TRUE(std::isnan(float_from_f8_e4m3fnuz(0x80)));
  EXPECT_TRUE(std::isnan(float_from_f8_e5m2fnuz(0x80)));
  EXPECT_EQ(float_from_f8_e4m3fnuz(0x7F), 240.0f);
  EXPECT_EQ(float_from_f8_e5m2fnuz(0x7F), 57344.0f);
  for (unsigned code = 0; code < 0x78; ++code) {  // one more in the bias, everything else the same
    const auto bits = static_cast<std::uint8_t>(code);
    EXPECT_EQ(float_from_f8_e4m3fnuz(bits), float_from_f8_e4m3(bits) / 2) << code;
    EXPECT_EQ(float_from_f8_e5m2fnuz(bits), float_from_f8_e5m2(bits) / 2) << code;
  }
}

TEST(Half, ScalesAndFourBitCodes) {
  EXPECT_EQ(float_from_e8m0(127), 1.0f);
  EXPECT_EQ(float_from_e8m0(0), 0x1p-127f);
  EXPECT_EQ(float_from_e8m0(254), 0x1p127f);
  EXPECT_TRUE(std::isnan(float_from_e8m0(255)));
  const float codes[] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  for (unsigned code = 0; code < 8; ++code) {
    EXPECT_EQ(float_from_e2m1(static_cast<std::uint8_t>(code)), codes[code]);
    EXPECT_EQ(float_from_e2m1(static_cast<std::uint8_t>(code | 8u)), -codes[code]);
    // The upper four bits are another code's.
    EXPECT_EQ(float_from_e2m1(static_cast<std::uint8_t>(code | 0x70u)), codes[code]);
  }
}

}  // namespace
}  // namespace sinkscope
