// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/safetensors_dtype.h"

#include <array>
#include <bit>
#include <cstring>

#include "core/half.h"

namespace sinkscope {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian, so are we");

template <class Stored, class Convert>
void convert_all(const std::byte* __restrict in, std::int64_t n, float* __restrict out,
                 Convert convert) {
  for (std::int64_t i = 0; i < n; ++i) {
    Stored stored;
    std::memcpy(&stored, in + i * static_cast<std::int64_t>(sizeof(Stored)), sizeof(Stored));
    out[i] = convert(stored);
  }
}

template <class Stored>
void decode_number(const std::byte* in, std::int64_t n, float* out) {
  convert_all<Stored>(in, n, out, [](Stored value) { return static_cast<float>(value); });
}

void decode_bool(const std::byte* in, std::int64_t n, float* out) {
  convert_all<std::uint8_t>(in, n, out, [](std::uint8_t b) { return b != 0 ? 1.0f : 0.0f; });
}

void decode_bf16(const std::byte* in, std::int64_t n, float* out) {
  convert_all<std::uint16_t>(in, n, out, [](std::uint16_t b) { return float_from_bf16(b); });
}

void decode_f16(const std::byte* in, std::int64_t n, float* out) {
  convert_all<std::uint16_t>(in, n, out, [](std::uint16_t b) { return float_from_half(b); });
}

// One-byte codes by a table of all 256.
template <float (*kDecodeOne)(std::uint8_t)>
void decode_byte(const std::byte* in, std::int64_t n, float* out) {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> values{};
    for (std::size_t code = 0; code < values.size(); ++code)
      values[code] = kDecodeOne(static_cast<std::uint8_t>(code));
    return values;
  }();
  for (std::int64_t i = 0; i < n; ++i) out[i] = table[static_cast<std::size_t>(in[i])];
}

// Two codes a byte, the low four bits first.
void decode_f4(const std::byte* in, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    const auto byte = static_cast<std::uint8_t>(in[i / 2]);
    out[i] = float_from_e2m1(i % 2 == 0 ? byte : static_cast<std::uint8_t>(byte >> 4));
  }
}

constexpr SafetensorsDtype kDtypes[] = {
    {"F32", 32, decode_number<float>, false},
    {"BF16", 16, decode_bf16, false},
    {"F16", 16, decode_f16, false},
    {"F64", 64, decode_number<double>, false},
    {"BOOL", 8, decode_bool, false},
    {"U8", 8, decode_number<std::uint8_t>, true},
    {"I8", 8, decode_number<std::int8_t>, true},
    {"I16", 16, decode_number<std::int16_t>, false},
    {"U16", 16, decode_number<std::uint16_t>, false},
    {"I32", 32, decode_number<std::int32_t>, true},
    {"U32", 32, decode_number<std::uint32_t>, false},
    {"I64", 64, decode_number<std::int64_t>, false},
    {"U64", 64, decode_number<std::uint64_t>, false},
    {"F8_E4M3", 8, decode_byte<float_from_f8_e4m3>, true},
    {"F8_E5M2", 8, decode_byte<float_from_f8_e5m2>, true},
    {"F8_E4M3FNUZ", 8, decode_byte<float_from_f8_e4m3fnuz>, true},
    {"F8_E5M2FNUZ", 8, decode_byte<float_from_f8_e5m2fnuz>, true},
    {"F8_E8M0", 8, decode_byte<float_from_e8m0>, false},
    {"F4", 4, decode_f4, true},
    {"C64", 64, nullptr, false},
    {"F6_E2M3", 6, nullptr, true},
    {"F6_E3M2", 6, nullptr, true},
};

}  // namespace

const SafetensorsDtype* find_safetensors_dtype(std::string_view name) {
  for (const SafetensorsDtype& dtype : kDtypes) {
    if (name == dtype.name) return &dtype;
  }
  return nullptr;
}

}  // namespace sinkscope
