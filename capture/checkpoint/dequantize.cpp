// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/dequantize.h"

#include <array>

#include "capture/checkpoint/dequantize_parts.h"
#include "core/half.h"

// Fixed trip counts, one store per element and separate loops for low and high nibbles: every
// inner loop here becomes vector code.

namespace sinkscope {
namespace {

template <class T>
void convert(const std::uint8_t* blocks, std::int64_t n_blocks, float* __restrict out) {
  for (std::int64_t i = 0; i < n_blocks; ++i) {
    out[i] = static_cast<float>(load<T>(blocks + i * static_cast<std::int64_t>(sizeof(T))));
  }
}

// 2^(e - 128): half of the block scale, for a table of doubled values. e = 0 and 1 give subnormals.
float half_power(std::uint8_t e) {
  const std::uint32_t bits = e < 2 ? 0x00200000u << e : (e - 1u) << 23;
  return std::bit_cast<float>(bits);
}

// Unsigned E4M3, halved: bias 7, no sign, 0x7F counts as zero.
float half_ue4m3(std::uint8_t code) {
  if (code == 0 || code == 0x7F) return 0.0f;
  const int exponent = (code >> 3) & 15;
  const auto mantissa = static_cast<float>(code & 7);
  const float value =
      exponent == 0 ? mantissa * 0x1p-9f
                    : (1.0f + mantissa / 8.0f) * std::bit_cast<float>((exponent + 120u) << 23);
  return value * 0.5f;
}

// The doubled E2M1 values, so that they are whole numbers.
constexpr float kE2m1Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

constexpr auto kBit = [] {
  std::array<std::uint32_t, 32> bit{};
  for (unsigned j = 0; j < 32; ++j) bit[j] = 1u << j;
  return bit;
}();

// The high bits of a 5-bit block, as 16 or 0 for each element. Masks instead of shifts by j, which
// plain SSE2 cannot do per lane.
struct HighBits {
  explicit HighBits(std::uint32_t bits) {
    for (unsigned j = 0; j < 32; ++j) value[j] = (bits & kBit[j]) != 0 ? 16 : 0;
  }
  int value[32];
};

}  // namespace

void decode_f32(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  convert<float>(blocks, n_blocks, out);
}
void decode_f64(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  convert<double>(blocks, n_blocks, out);
}
void decode_i8(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  convert<std::int8_t>(blocks, n_blocks, out);
}
void decode_i16(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  convert<std::int16_t>(blocks, n_blocks, out);
}
void decode_i32(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  convert<std::int32_t>(blocks, n_blocks, out);
}
void decode_i64(const std::uint8_t* blocks, std::int64_t n_blocks, float* out) {
  convert<std::int64_t>(blocks, n_blocks, out);
}

void decode_f16(const std::uint8_t* blocks, std::int64_t n_blocks, float* __restrict out) {
  for (std::int64_t i = 0; i < n_blocks; ++i) out[i] = half_at(blocks + 2 * i);
}

void decode_bf16(const std::uint8_t* blocks, std::int64_t n_blocks, float* __restrict out) {
  for (std::int64_t i = 0; i < n_blocks; ++i) {
    out[i] = float_from_bf16(load<std::uint16_t>(blocks + 2 * i));
  }
}

void decode_q4_0(const std::uint8_t* block, std::int64_t n_blocks, float* __restrict out) {
  for (std::int64_t i = 0; i < n_blocks; ++i, block += 18, out += 32) {
    const float d = half_at(block);
    const std::uint8_t* qs = block + 2;
    for (int j = 0; j < 16; ++j) out[j] = d * static_cast<float>((qs[j] & 15) - 8);
    for (int j = 0; j < 16; ++j) out[j + 16] = d * static_cast<float>((qs[j] >> 4) - 8);
  }
}

void decode_q4_1(const std::uint8_t* block, std::int64_t n_blocks, float* __restrict out) {
  for (std::int64_t i = 0; i < n_blocks; ++i, block += 20, out += 32) {
    const float d = half_at(block), m = half_at(block + 2);
    const std::uint8_t* qs = block + 4;
    for (int j = 0; j < 16; ++j) out[j] = d * static_cast<float>(qs[j] & 15) + m;
    for (int j = 0; j < 16; ++j) out[j + 16] = d * static_cast<float>(qs[j] >> 4) + m;
  }
}

void decode_q5_0(const std::uint8_t* block, std::int64_t n_blocks, float* __restrict out) {
  for (std::int64_t i = 0; i < n_blocks; ++i, block += 22, out += 32) {
    const float d = half_at(block);
    const HighBits high(load<std::uint32_t>(block + 2));
    const std::uint8_t* qs = block + 6;
    for (int j = 0; j < 16; ++j) {
      out[j] = d * static_cast<float>((qs[j] & 15) + high.value[j] - 16);
    }
    for (int j = 0; j < 16; ++j) {
      out[j + 16] = d * static_cast<float>((qs[j] >> 4) + high.value[j + 16] - 16);
    }
  }
}

void decode_q5_1(const std::uint8_t* block, std::int64_t n_blocks, float* __restrict out) {
  for (std::int64_t i = 0; i < n_blocks; ++i, block += 24, out += 32) {
    const float d = half_at(block), m = half_at(block + 2);
    const HighBits high(load<std::uint32_t>(block + 4));
    const std::uint8_t* qs = block + 8;
    for (int j = 0; j < 16; ++j) {
      out[j] = d * static_cast<float>((qs[j] & 15) + high.value[j]) + m;
    }
    for (int j = 0; j < 16; ++j) {
      out[j + 16] = d * static_cast<float>((qs[j] >> 4) + high.value[j + 16]) + m;
    }
  }
}

void decode_q8_0(const std::uint8_t* block, std::int64_t n_blocks, float* __restrict out) {
  for (std::int64_t i = 0; i < n_blocks; ++i, block += 34, out += 32) {
    const float d = half_at(block);
    for (int j = 0; j < 32; ++j) {
      out[j] = d * static_cast<float>(load<std::int8_t>(block + 2 + j));
    }
  }
}

void decode_iq4_nl(const std::uint8_t* block, std::int64_t n_blocks, float* __restrict out) {
  for (std::int64_t i = 0; i < n_blocks; ++i, block += 18, out += 32) {
    const Codebook scaled(half_at(block), kIq4Values);
    scaled.decode_nibbles(block + 2, 16, out);
  }
}

void decode_mxfp4(const std::uint8_t* block, std::int64_t n_blocks, float* __restrict out) {
  for (std::int64_t i = 0; i < n_blocks; ++i, block += 17, out += 32) {
    const Codebook scaled(half_power(block[0]), kE2m1Doubled);
    scaled.decode_nibbles(block + 1, 16, out);
  }
}

void decode_nvfp4(const std::uint8_t* block, std::int64_t n_blocks, float* __restrict out) {
  for (std::int64_t i = 0; i < n_blocks; ++i, block += 36) {
    for (int group = 0; group < 4; ++group, out += 16) {
      const Codebook scaled(half_ue4m3(block[group]), kE2m1Doubled);
      scaled.decode_nibbles(block + 4 + 8 * group, 8, out);
    }
  }
}

}  // namespace sinkscope
