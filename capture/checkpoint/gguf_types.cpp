// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/gguf_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "capture/checkpoint/dequantize.h"

namespace sinkscope {
namespace {

constexpr GgufType kTypes[] = {
    {0, "F32", 1, 4, decode_f32},
    {1, "F16", 1, 2, decode_f16},
    {2, "Q4_0", 32, 18, decode_q4_0},
    {3, "Q4_1", 32, 20, decode_q4_1},
    {6, "Q5_0", 32, 22, decode_q5_0},
    {7, "Q5_1", 32, 24, decode_q5_1},
    {8, "Q8_0", 32, 34, decode_q8_0},
    {9, "Q8_1", 32, 36, nullptr},  // Q8_1, Q8_K: activations inside a matrix product
    {10, "Q2_K", 256, 84, decode_q2_k},
    {11, "Q3_K", 256, 110, decode_q3_k},
    {12, "Q4_K", 256, 144, decode_q4_k},
    {13, "Q5_K", 256, 176, decode_q5_k},
    {14, "Q6_K", 256, 210, decode_q6_k},
    {15, "Q8_K", 256, 292, nullptr},
    {16, "IQ2_XXS", 256, 66, nullptr},  // the IQ1 to IQ3 kinds need grid tables
    {17, "IQ2_XS", 256, 74, nullptr},
    {18, "IQ3_XXS", 256, 98, nullptr},
    {19, "IQ1_S", 256, 50, nullptr},
    {20, "IQ4_NL", 32, 18, decode_iq4_nl},
    {21, "IQ3_S", 256, 110, nullptr},
    {22, "IQ2_S", 256, 82, nullptr},
    {23, "IQ4_XS", 256, 136, decode_iq4_xs},
    {24, "I8", 1, 1, decode_i8},
    {25, "I16", 1, 2, decode_i16},
    {26, "I32", 1, 4, decode_i32},
    {27, "I64", 1, 8, decode_i64},
    {28, "F64", 1, 8, decode_f64},
    {29, "IQ1_M", 256, 56, nullptr},
    {30, "BF16", 1, 2, decode_bf16},
    {34, "TQ1_0", 256, 54, decode_tq1_0},
    {35, "TQ2_0", 256, 66, decode_tq2_0},
    {39, "MXFP4", 32, 17, decode_mxfp4},
    {40, "NVFP4", 64, 36, decode_nvfp4},
    {41, "Q1_0", 128, 18, nullptr},
    {42, "Q2_0", 64, 18, nullptr},
};

constexpr std::uint32_t kWithdrawn[] = {4, 5, 31, 32, 33, 36, 37, 38};

}  // namespace

const GgufType* find_gguf_type(std::uint32_t id) {
  const auto* found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                   [id](const GgufType& type) { return type.id == id; });
  return found == std::end(kTypes) ? nullptr : found;
}

std::string gguf_type_name(std::uint32_t id) {
  if (const GgufType* type = find_gguf_type(id)) return type->name;
  const bool withdrawn =
      std::find(std::begin(kWithdrawn), std::end(kWithdrawn), id) != std::end(kWithdrawn);
  return fmt::format("type {}{}", id, withdrawn ? " (withdrawn)" : "");
}

}  // namespace sinkscope
