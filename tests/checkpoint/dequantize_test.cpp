// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/dequantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "capture/checkpoint/gguf_types.h"
#include "tests/support/h5_reference.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using Bytes = std::vector<std::uint8_t>;

const GgufType& type_named(const std::string& name) {
  for (std::uint32_t id = 0; id < 64; ++id) {
    const GgufType* type = find_gguf_type(id);
    if (type != nullptr && type->name == name) return *type;
  }
  throw std::runtime_error("no type " + name);
}

std::vector<float> decoded(const std::string& name, const Bytes& bytes) {
  const GgufType& type = type_named(name);
  const auto n_blocks = static_cast<std::int64_t>(bytes.size()) / type.block_bytes;
  std::vector<float> values(static_cast<std::size_t>(n_blocks * type.block_elements));
  type.decode(bytes.data(), n_blocks, values.data());
  return values;
}

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(Dequantize, PlainNumbersAreConverted) {
  using Floats = std::vector<float>;
  EXPECT_EQ(decoded("F32", bytes_of<float>({1.5f, -0.1f})), (Floats{1.5f, -0.1f}));
  EXPECT_EQ(decoded("F64", bytes_of<double>({0.1, -1e300, 3})), (Floats{0.1f, -INFINITY, 3}));
  EXPECT_EQ(decoded("I8", bytes_of<std::int8_t>({-128, 127, 0})), (Floats{-128, 127, 0}));
  EXPECT_EQ(decoded("I16", bytes_of<std::int16_t>({-32768, 32767})), (Floats{-32768, 32767}));
  EXPECT_EQ(decoded("I32", bytes_of<std::int32_t>({-7, 16777217})), (Floats{-7, 16777216}));
  EXPECT_EQ(decoded("I64", bytes_of<std::int64_t>({1ll << 40, -3})), (Floats{1099511627776.f, -3}));
  EXPECT_EQ(decoded("BF16", bytes_of<std::uint16_t>({0x3FC0, 0xC120})), (Floats{1.5f, -10}));
  // Half: 1, the largest, the smallest subnormal, -infinity.
  EXPECT_EQ(decoded("F16", bytes_of<std::uint16_t>({0x3C00, 0x7BFF, 0x0001, 0xFC00})),
            (Floats{1, 65504, 0x1p-24f, -INFINITY}));
}

// Blocks on paper: d = 0.5, m = 3, byte j of the nibbles = (15 - j) * 16 + j.
TEST(Dequantize, NibblesAreElementsJAndJPlus16) {
  Bytes nibbles;
  for (int j = 0; j < 16; ++j) nibbles.push_back(static_cast<std::uint8_t>((15 - j) * 16 + j));
  const auto block = [&nibbles](Bytes head) {
    head.insert(head.end(), nibbles.begin(), nibbles.end());
    return head;
  };
  const auto q4_0 = decoded("Q4_0", block({0x00, 0x38}));
  const auto q4_1 = decoded("Q4_1", block({0x00, 0x38, 0x00, 0x42}));
  // High bits: elements 1 and 31.
  const auto q5_0 = decoded("Q5_0", block({0x00, 0x38, 0x02, 0x00, 0x00, 0x80}));
  const auto q5_1 = decoded("Q5_1", block({0x00, 0x38, 0x00, 0x42, 0x02, 0x00, 0x00, 0x80}));
  for (int i = 0; i < 32; ++i) {
    const int q = i < 16 ? i : 31 - i;
    const int high = i == 1 || i == 31 ? 16 : 0;
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(q4_0[at], 0.5f * static_cast<float>(q - 8)) << i;
    EXPECT_EQ(q4_1[at], 0.5f * static_cast<float>(q) + 3) << i;
    EXPECT_EQ(q5_0[at], 0.5f * static_cast<float>(q + high - 16)) << i;
    EXPECT_EQ(q5_1[at], 0.5f * static_cast<float>(q + high) + 3) << i;
  }
}

TEST(Dequantize, Mxfp4ScalesZeroAndOneAreSubnormalAndKept) {
  Bytes block(17, 0x72);  // low nibbles 2 = 1.0, high nibbles 7 = 6.0
  block[0] = 0;
  EXPECT_EQ(decoded("MXFP4", block).front(), 0x1p-127f);
  EXPECT_EQ(decoded("MXFP4", block).back(), 0x1.8p-125f);
  block[0] = 1;
  EXPECT_EQ(decoded("MXFP4", block).front(), 0x1p-126f);
  block[0] = 130;
  EXPECT_EQ(decoded("MXFP4", block).back(), 48.0f);
}

// Seven blocks of bytes from a linear congruential generator (scales made finite), decoded by
// the Python package gguf 0.19 (gguf.quants.dequantize): FNV-1a over the float32 bytes. An
// independent implementation of every layout, and the only reference for TQ1_0, TQ2_0 and NVFP4.
struct Golden {
  const char* type;
  std::vector<int> halves;  // where the block's half-precision scales lie
  std::uint64_t hash;
};

const Golden kGolden[] = {
    {"Q4_0", {0}, 0xfe5309c2ffe417e1u},    {"Q4_1", {0, 2}, 0x622c4839983be4d4u},
    {"Q5_0", {0}, 0x4b571f3b5885024fu},    {"Q5_1", {0, 2}, 0x757011bad9ddb144u},
    {"Q8_0", {0}, 0x6621b3eeab773ad7u},    {"Q2_K", {80, 82}, 0x441c25bb1e182387u},
    {"Q3_K", {108}, 0x0bc5b011722ed55cu},  {"Q4_K", {0, 2}, 0x860e91372ff09229u},
    {"Q5_K", {0, 2}, 0x9378ae4fa238a661u}, {"Q6_K", {208}, 0xa44d1e398aeb1808u},
    {"IQ4_NL", {0}, 0x348fc78533d325a9u},  {"IQ4_XS", {0}, 0x8197f91b319b6a9cu},
    {"TQ1_0", {52}, 0x3b4abd1b99fc7f64u},  {"TQ2_0", {64}, 0xa788a656e2b979ceu},
    {"MXFP4", {}, 0x672fc388ffec0aaau},    {"NVFP4", {}, 0x18e0cf371e4d3e64u},
};

Bytes generated_blocks(const Golden& golden) {
  const auto block_bytes = static_cast<std::size_t>(type_named(golden.type).block_bytes);
  Bytes bytes(7 * block_bytes);
  std::uint32_t state = 12345;
  for (std::uint8_t& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
  for (std::size_t block = 0; block < 7; ++block) {
    for (const int half : golden.halves) {
      bytes[block * block_bytes + static_cast<std::size_t>(half) + 1] &= 0xBF;  // no inf, no NaN
    }
  }
  return bytes;
}

TEST(Dequantize, AgreesWithThePythonPackageGguf) {
  for (const Golden& golden : kGolden) {
    SCOPED_TRACE(golden.type);
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const float value : decoded(golden.type, generated_blocks(golden))) {
      const float unsigned_zero = value + 0.0f;
      std::uint8_t bytes[4];
      std::memcpy(bytes, &unsigned_zero, 4);
      for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
    }
    EXPECT_EQ(hash, golden.hash);
  }
}

// Values that libggml computed; equal to the bit, signs of zero included.
TEST(Dequantize, EqualsTheReferenceBitForBit) {
  SINKSCOPE_REQUIRE_SHARED(path, "oracles/quant/dequant.h5");
  const test::H5Reference oracle(path);
  for (const char* name : {"F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K",
                           "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4"}) {
    SCOPED_TRACE(name);
    const std::string group = name;
    const GgufType& type = type_named(name);
    const auto dims = oracle.dims(group + "/raw");
    ASSERT_EQ(dims.at(1), type.block_bytes);
    Bytes raw;
    for (const int byte : oracle.ints(group + "/raw")) {
      raw.push_back(static_cast<std::uint8_t>(byte));
    }
    const std::vector<float> expected = oracle.floats(group + "/values");
    const std::vector<float> found = decoded(name, raw);
    ASSERT_EQ(found.size(), expected.size());
    ASSERT_EQ(found.size(), static_cast<std::size_t>(dims.at(0) * type.block_elements));
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0);
  }
}

TEST(Dequantize, BlocksMayLieAtAnyAddress) {
  for (const Golden& golden : kGolden) {
    SCOPED_TRACE(golden.type);
    const Bytes bytes = generated_blocks(golden);
    const GgufType& type = type_named(golden.type);
    Bytes shifted(bytes.size() + 1);
    std::copy(bytes.begin(), bytes.end(), shifted.begin() + 1);
    std::vector<float> values(static_cast<std::size_t>(7 * type.block_elements));
    type.decode(shifted.data() + 1, 7, values.data());
    EXPECT_EQ(values, decoded(golden.type, bytes));
  }
}

TEST(GgufTypes, UnreadableTypesAreNamed) {
  EXPECT_EQ(gguf_type_name(3), "Q4_1");
  EXPECT_EQ(gguf_type_name(250), "type 250");
  EXPECT_EQ(gguf_type_name(4), "type 4 (withdrawn)");
  EXPECT_EQ(find_gguf_type(4), nullptr);
  EXPECT_EQ(find_gguf_type(16)->decode, nullptr);
  EXPECT_EQ(find_gguf_type(16)->block_bytes, 66);
}

}  // namespace
}  // namespace sinkscope
