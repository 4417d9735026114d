// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/dequantize.h"
#include "capture/checkpoint/dequantize_parts.h"

// Super-blocks of 256 elements. Layouts are written at each decoder; sc and mn are the scale and
// minimum of a group of 16 or 32 elements.

namespace sinkscope {
namespace {

constexpr int kSuper = 256;
constexpr int kPowersOf3[5] = {1, 3, 9, 27, 81};

// Q4_K and Q5_K: eight 6-bit scales and minima in twelve bytes.
struct ScaleMin {
  ScaleMin(const std::uint8_t* s, int group) {
    if (group < 4) {
      scale = static_cast<float>(s[group] & 63);
      min = static_cast<float>(s[group + 4] & 63);
    } else {
      scale = static_cast<float>((s[group + 4] & 15) | ((s[group - 4] >> 6) << 4));
      min = static_cast<float>((s[group + 4] >> 4) | ((s[group] >> 6) << 4));
    }
  }
  float scale, min;
};

// Q3_K: the 6-bit scale of group g (0..15) in twelve bytes, minus 32.
int q3_k_scale(const std::uint8_t* s, int group) {
  const int low = (s[group % 8] >> (4 * (group / 8))) & 15;
  const int high = (s[8 + group % 4] >> (2 * (group / 4))) & 3;
  return (low | (high << 4)) - 32;
}

}  // namespace

// scales[16] (low nibble scale, high nibble minimum) | qs[64] | d | dmin
void decode_q2_k(const std::uint8_t* block, std::int64_t n_blocks, float* __restrict out) {
  for (std::int64_t i = 0; i < n_blocks; ++i, block += 84) {
    const std::uint8_t* qs = block + 16;
    const float d = half_at(block + 80), dmin = half_at(block + 82);
    for (int group = 0; group < 16; ++group, out += 16) {
      const float sc = d * static_cast<float>(block[group] & 15);
      const float mn = dmin * static_cast<float>(block[group] >> 4);
      const int shift = 2 * ((group % 8) / 2);
      const std::uint8_t* bytes = qs + 32 * (group / 8) + 16 * (group % 2);
      for (int l = 0; l < 16; ++l) {
        out[l] = sc * static_cast<float>((bytes[l] >> shift) & 3) - mn;
      }
    }
  }
}

// hmask[32] | qs[64] | scales[12] | d
void decode_q3_k(const std::uint8_t* block, std::int64_t n_blocks, float* __restrict out) {
  for (std::int64_t i = 0; i < n_blocks; ++i, block += 110) {
    const float d = half_at(block + 108);
    for (int group = 0; group < 16; ++group, out += 16) {
      const float sc = d * static_cast<float>(q3_k_scale(block + 96, group));
      const int half = group / 8, step = (group % 8) / 2;
      const std::uint8_t* low = block + 32 + 32 * half + 16 * (group % 2);
      const std::uint8_t* high = block + 16 * (group % 2);
      for (int l = 0; l < 16; ++l) {
        const int bit = (high[l] >> (4 * half + step)) & 1;
        out[l] = sc * static_cast<float>(((low[l] >> (2 * step)) & 3) + 4 * bit - 4);
      }
    }
  }
}

// d | dmin | scales[12] | qs[128]: 32 bytes hold groups 2k (low nibbles) and 2k + 1 (high)
void decode_q4_k(const std::uint8_t* block, std::int64_t n_blocks, float* __restrict out) {
  for (std::int64_t i = 0; i < n_blocks; ++i, block += 144) {
    const float d = half_at(block), dmin = half_at(block + 2);
    const std::uint8_t* qs = block + 16;
    for (int pair = 0; pair < 4; ++pair, qs += 32, out += 64) {
      const ScaleMin even(block + 4, 2 * pair), odd(block + 4, 2 * pair + 1);
      const float sc0 = d * even.scale, mn0 = dmin * even.min;
      const float sc1 = d * odd.scale, mn1 = dmin * odd.min;
      for (int l = 0; l < 32; ++l) out[l] = sc0 * static_cast<float>(qs[l] & 15) - mn0;
      for (int l = 0; l < 32; ++l) out[l + 32] = sc1 * static_cast<float>(qs[l] >> 4) - mn1;
    }
  }
}

// d | dmin | scales[12] | qh[32] (bit g of qh[l] is the high bit of group g) | qs[128]
void decode_q5_k(const std::uint8_t* block, std::int64_t n_blocks, float* __restrict out) {
  for (std::int64_t i = 0; i < n_blocks; ++i, block += 176) {
    const float d = half_at(block), dmin = half_at(block + 2);
    const std::uint8_t* qh = block + 16;
    const std::uint8_t* qs = block + 48;
    for (int group = 0; group < 8; group += 2, qs += 32, out += 64) {
      const ScaleMin even(block + 4, group), odd(block + 4, group + 1);
      const float sc0 = d * even.scale, mn0 = dmin * even.min;
      const float sc1 = d * odd.scale, mn1 = dmin * odd.min;
      for (int l = 0; l < 32; ++l) {
        out[l] = sc0 * static_cast<float>((qs[l] & 15) + 16 * ((qh[l] >> group) & 1)) - mn0;
      }
      for (int l = 0; l < 32; ++l) {
        out[l + 32] =
            sc1 * static_cast<float>((qs[l] >> 4) + 16 * ((qh[l] >> (group + 1)) & 1)) - mn1;
      }
    }
  }
}

// ql[128] | qh[64] | scales i8[16] | d: two halves of 128 elements, four runs of 32 in each
void decode_q6_k(const std::uint8_t* block, std::int64_t n_blocks, float* __restrict out) {
  for (std::int64_t i = 0; i < n_blocks; ++i, block += 210, out += kSuper) {
    const float d = half_at(block + 208);
    for (int group = 0; group < 16; ++group) {
      const int half = group / 8, run = (group % 8) / 2, first = 16 * (group % 2);
      const std::uint8_t* ql = block + 64 * half + 32 * (run % 2) + first;
      const std::uint8_t* qh = block + 128 + 32 * half + first;
      const int low_shift = 4 * (run / 2), high_shift = 2 * run;
      const float sc = d * static_cast<float>(load<std::int8_t>(block + 192 + group));
      float* to = out + 16 * group;
      for (int l = 0; l < 16; ++l) {
        const int q = ((ql[l] >> low_shift) & 15) | (((qh[l] >> high_shift) & 3) << 4);
        to[l] = sc * static_cast<float>(q - 32);
      }
    }
  }
}

// d | scales_h u16 | scales_l[4] | qs[128]
void decode_iq4_xs(const std::uint8_t* block, std::int64_t n_blocks, float* __restrict out) {
  for (std::int64_t i = 0; i < n_blocks; ++i, block += 136) {
    const float d = half_at(block);
    const auto high = load<std::uint16_t>(block + 2);
    for (int group = 0; group < 8; ++group, out += 32) {
      const int low = (block[4 + group / 2] >> (4 * (group % 2))) & 15;
      const int scale = (low | (((high >> (2 * group)) & 3) << 4)) - 32;
      const Codebook scaled(d * static_cast<float>(scale), kIq4Values);
      scaled.decode_nibbles(block + 8 + 16 * group, 16, out);
    }
  }
}

// qs[48] | qh[4] | d: five base-3 digits a byte (four in qh), the first digit on top: digit n of a
// byte is the integer part of 3 * frac(byte * 3^n / 256).
void decode_tq1_0(const std::uint8_t* block, std::int64_t n_blocks, float* __restrict out) {
  const auto digits = [&out](const std::uint8_t* bytes, int n_bytes, int n_digits, float d) {
    for (int n = 0; n < n_digits; ++n, out += n_bytes) {
      for (int m = 0; m < n_bytes; ++m) {
        const int digit = (((bytes[m] * kPowersOf3[n]) & 255) * 3) >> 8;
        out[m] = d * static_cast<float>(digit - 1);
      }
    }
  };
  for (std::int64_t i = 0; i < n_blocks; ++i, block += 54) {
    const float d = half_at(block + 52);
    digits(block, 32, 5, d);
    digits(block + 32, 16, 5, d);
    digits(block + 48, 4, 4, d);
  }
}

// qs[64] | d: two halves of 128 elements, four runs of 32 in each, two bits an element
void decode_tq2_0(const std::uint8_t* block, std::int64_t n_blocks, float* __restrict out) {
  for (std::int64_t i = 0; i < n_blocks; ++i, block += 66) {
    const float d = half_at(block + 64);
    for (int run = 0; run < 8; ++run, out += 32) {
      const std::uint8_t* bytes = block + 32 * (run / 4);
      const int shift = 2 * (run % 4);
      for (int m = 0; m < 32; ++m) {
        out[m] = d * static_cast<float>(((bytes[m] >> shift) & 3) - 1);
      }
    }
  }
}

}  // namespace sinkscope
