// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace sinkscope {

// Decoders of GGUF's tensor types, one per type, all with the signature of DecodeBlocks
// (gguf_types.h, which holds the table). Bit-exact: the order of float32 operations is that of
// ggml's dequantize_row_*; d, m and dmin are IEEE halves, little-endian.
// 32-blocks keep element j (0..15) in the low nibble of byte j and element j + 16 in the high one.

// Plain values; integers and float64 are rounded to the nearest float.
void decode_f32(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void decode_f16(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void decode_bf16(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void decode_f64(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void decode_i8(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void decode_i16(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void decode_i32(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void decode_i64(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);

// Blocks of 32 (NVFP4: 64).
void decode_q4_0(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);    // d(q - 8)
void decode_q4_1(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);    // d q + m
void decode_q5_0(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);    // d(q - 16)
void decode_q5_1(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);    // d q + m
void decode_q8_0(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);    // d q
void decode_iq4_nl(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);  // d T[q]
void decode_mxfp4(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);   // 2^e E2M1[q]
void decode_nvfp4(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);   // d E2M1[q]

// Super-blocks of 256 with their own scales per 16 or 32 elements.
void decode_q2_k(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void decode_q3_k(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void decode_q4_k(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void decode_q5_k(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void decode_q6_k(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void decode_iq4_xs(const std::uint8_t* blocks, std::int64_t n_blocks, float* out);
void decode_tq1_0(const std::uint8_t* blocks, std::int64_t n_blocks,
                  float* out);  // ternary, base 3
void decode_tq2_0(const std::uint8_t* blocks, std::int64_t n_blocks,
                  float* out);  // ternary, 2 bits

}  // namespace sinkscope
