// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/safetensors_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/half.h"
#include "tests/checkpoint/gguf_test_files.h"
#include "tests/support/h5_reference.h"
#include "tests/support/safetensors_bytes.h"

namespace sinkscope {
namespace {

using namespace test;  // NOLINT: the helpers of the tests
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Opened = std::unique_ptr<SafetensorsCheckpoint>;

Opened open_bytes(const SafetensorsBytes& bytes, const QuantizationHint& hint = {}) {
  return SafetensorsCheckpoint::open({bytes.write(scratch_folder() + "/m.safetensors")}, hint);
}

std::vector<float> rows_of(const Checkpoint& file, const std::string& name, std::int64_t begin,
                           std::int64_t end) {
  const int index = file.find(name);
  const TensorInfo& info = file.tensors().at(static_cast<std::size_t>(index));
  std::vector<float> values(static_cast<std::size_t>((end - begin) * info.row_size()));
  file.read_rows(index, begin, end, values.data());
  return values;
}

std::vector<float> all_of(const Checkpoint& file, const std::string& name) {
  const int index = file.find(name);
  return rows_of(file, name, 0, file.tensors().at(static_cast<std::size_t>(index)).n_rows());
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

TEST(SafetensorsFile, EveryDtypeEqualsTheOracleBitForBit) {
  SINKSCOPE_REQUIRE_SHARED(path, "oracles/quant/dtypes.safetensors");
  SINKSCOPE_REQUIRE_SHARED(expected_path, "oracles/quant/dtypes_expected.h5");
  const Opened file = SafetensorsCheckpoint::open({path});
  const H5Reference expected(expected_path);
  ASSERT_EQ(file->tensors().size(), expected.children("/").size());
  for (const TensorInfo& tensor : file->tensors()) {
    EXPECT_EQ(tensor.shape, expected.dims("/" + tensor.name)) << tensor.name;
    const std::vector<float> found = all_of(*file, tensor.name);
    const std::vector<double> wanted = expected.doubles("/" + tensor.name);
    ASSERT_EQ(found.size(), wanted.size()) << tensor.name;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto narrowed = static_cast<float>(wanted[i]);
      if (std::isnan(narrowed)) {
        EXPECT_TRUE(std::isnan(found[i])) << tensor.name << " " << i;
      } else {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(found[i]), std::bit_cast<std::uint32_t>(narrowed))
            << tensor.name << " " << i;
      }
    }
  }
}

TEST(SafetensorsFile, EightBitCodesEqualTheOracle) {
  SINKSCOPE_REQUIRE_SHARED(path, "oracles/quant/dequant.h5");
  const H5Reference oracle(path);
  int compared = 0;
  for (const std::string& group : oracle.children("/")) {
    if (!group.starts_with("F8_")) continue;
    const std::vector<std::uint8_t> raw = oracle.bytes("/" + group + "/raw");
    const std::vector<float> expected = oracle.floats("/" + group + "/values");
    const auto n = static_cast<std::int64_t>(raw.size());
    const Opened file = open_bytes(SafetensorsBytes().tensor("t", group, {n}, bytes_of(raw)));
    const std::vector<float> found = all_of(*file, "t");
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_TRUE(found[i] == expected[i] || (std::isnan(found[i]) && std::isnan(expected[i])))
          << group << " code " << i << ": " << found[i] << " and " << expected[i];
    }
    ++compared;
  }
  EXPECT_GE(compared, 4);
}

TEST(SafetensorsFile, TypesThatTheOracleLacks) {
  const Opened file = open_bytes(
      SafetensorsBytes()
          .tensor("u64", "U64", {2}, bytes_of(std::vector<std::uint64_t>{3, 1ull << 40}))
          .tensor("u32", "U32", {1, 2}, bytes_of(std::vector<std::uint32_t>{7, 4000000000u}))
          .tensor("u16", "U16", {2}, bytes_of(std::vector<std::uint16_t>{65535, 1}))
          .tensor("e8m0", "F8_E8M0", {3}, "\x7F\x80\x7E")
          .tensor("f4", "F4", {2, 4}, "\x21\x43\xA9\xFE"));
  EXPECT_THAT(all_of(*file, "u64"), ElementsAre(3.0f, 0x1p40f));
  EXPECT_THAT(all_of(*file, "u32"), ElementsAre(7.0f, 4000000000.0f));
  EXPECT_THAT(all_of(*file, "u16"), ElementsAre(65535.0f, 1.0f));
  EXPECT_THAT(all_of(*file, "e8m0"), ElementsAre(1.0f, 2.0f, 0.5f));
  EXPECT_THAT(all_of(*file, "f4"), ElementsAre(0.5f, 1.0f, 1.5f, 2.0f, -0.5f, -1.0f, -4.0f, -6.0f));
  EXPECT_THAT(rows_of(*file, "f4", 1, 2), ElementsAre(-0.5f, -1.0f, -4.0f, -6.0f));
}

// Longer than the piece in which stored bytes are read, and than a multiple of it.
TEST(SafetensorsFile, LongTensorsAreReadInPiecesWithoutASeam) {
  constexpr std::int64_t kRows = 301, kCols = 911;
  std::vector<std::uint16_t> half(kRows * kCols), bf16(kRows * kCols);
  for (std::size_t i = 0; i < half.size(); ++i) {
    half[i] = static_cast<std::uint16_t>(i * 7919 % 0x7C00);
    bf16[i] = static_cast<std::uint16_t>(i * 104729 % 0x7F80);
  }
  const Opened file = open_bytes(SafetensorsBytes()
                                     .tensor("half", "F16", {kRows, kCols}, bytes_of(half))
                                     .tensor("bf16", "BF16", {kRows, kCols}, bytes_of(bf16)));
  const std::vector<float> from_half = all_of(*file, "half"), from_bf16 = all_of(*file, "bf16");
  for (std::size_t i = 0; i < half.size(); ++i) {
    ASSERT_EQ(from_half[i], float_from_half(half[i])) << i;
    ASSERT_EQ(from_bf16[i], float_from_bf16(bf16[i])) << i;
  }
  const std::vector<float> part = rows_of(*file, "bf16", 13, 299);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), from_bf16.begin() + 13 * kCols));
}

TEST(SafetensorsFile, RowsAndBytesOutOfRangeAreRefused) {
  const Opened file = open_bytes(SafetensorsBytes().floats("t", {3, 2}, {1, 2, 3, 4, 5, 6}));
  float out[6] = {};
  for (const auto& [begin, end] : {std::pair(-1, 1), std::pair(0, 4), std::pair(2, 1)}) {
    EXPECT_EQ(failure_of([&, b = begin, e = end] { file->read_rows(0, b, e, out); }).first,
              ErrorKind::invalid_argument);
  }
  EXPECT_EQ(failure_of([&] { file->read_rows(1, 0, 1, out); }).first, ErrorKind::invalid_argument);
  EXPECT_EQ(failure_of([&] { file->read_raw(0, 20, 5, out); }).first, ErrorKind::invalid_argument);
  file->read_raw(0, 20, 4, out);
  EXPECT_EQ(out[0], 6.0f);
  file->read_rows(0, 3, 3, nullptr);  // nothing to do
}

TEST(SafetensorsFile, TypesWithoutDecoderAreRefusedByName) {
  const Opened file = open_bytes(
      SafetensorsBytes().tensor("c", "C64", {1}, std::string(8, '\1')).floats("x", {2}, {1, 2}));
  float out = 0;
  const auto [kind, message] = failure_of([&] { file->read_rows(file->find("c"), 0, 1, &out); });
  EXPECT_EQ(kind, ErrorKind::unsupported);
  EXPECT_THAT(message, HasSubstr("tensor c: dtype C64"));
  EXPECT_THAT(all_of(*file, "x"), ElementsAre(1.0f, 2.0f));  // the others can still be read
}

TEST(SafetensorsFile, ATensorInTwoShardsIsRefused) {
  const std::string folder = scratch_folder();
  const std::string a = SafetensorsBytes().floats("t", {1}, {1}).write(folder + "/a.safetensors");
  const std::string b = SafetensorsBytes().floats("t", {1}, {1}).write(folder + "/b.safetensors");
  const auto [kind, message] = failure_of([&] { SafetensorsCheckpoint::open({a, b}); });
  EXPECT_EQ(kind, ErrorKind::corrupt);
  EXPECT_THAT(message, HasSubstr("b.safetensors: tensor t is also in " + a));
}

// W[r, c] = code[r, c] * scale[r / block, c / block], partial blocks at both edges.
TEST(FieldCases, FC09_Float8IsMultipliedByItsBlockScales) {
  constexpr std::int64_t kRows = 5, kCols = 7, kBlock = 4;
  std::vector<std::uint8_t> codes(kRows * kCols);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i * 2 + 40);
  const std::vector<float> scales = {0.5f, 3.0f, 0.25f, 7.0f};  // [2, 2]
  const SafetensorsBytes bytes = SafetensorsBytes()
                                     .tensor("w.weight", "F8_E4M3", {kRows, kCols}, bytes_of(codes))
                                     .floats("w.weight_scale_inv", {2, 2}, scales);
  const Opened file = open_bytes(bytes, {"fp8", {kBlock, kBlock}});
  EXPECT_THAT(file->warnings(), IsEmpty());
  EXPECT_TRUE(file->is_scale(file->find("w.weight_scale_inv")));
  for (std::int64_t begin = 0; begin < kRows; ++begin) {
    const std::vector<float> found = rows_of(*file, "w.weight", begin, kRows);
    for (std::int64_t r = begin; r < kRows; ++r) {
      for (std::int64_t c = 0; c < kCols; ++c) {
        const float code = float_from_f8_e4m3(codes[static_cast<std::size_t>(r * kCols + c)]);
        const float scale = scales[static_cast<std::size_t>(r / kBlock * 2 + c / kBlock)];
        EXPECT_EQ(found[static_cast<std::size_t>((r - begin) * kCols + c)], code * scale);
      }
    }
  }
  // The same without the config's block size: a power of two fits, and that is said.
  const Opened guessed = open_bytes(bytes, {"fp8", {}});
  EXPECT_EQ(all_of(*guessed, "w.weight"), all_of(*file, "w.weight"));
  EXPECT_THAT(guessed->warnings(), ElementsAre(HasSubstr("blocks of 4 x 4")));
}

TEST(FieldCases, FC09_Float8WithoutItsScaleIsRefusedByName) {
  const SafetensorsBytes bytes =
      SafetensorsBytes().tensor("w.weight", "F8_E4M3", {2, 2}, "abcd").floats("n", {1}, {1});
  const Opened file = open_bytes(bytes, {"fp8", {}});
  EXPECT_FALSE(file->tensors()[1].readable);
  float out[4];
  const auto [kind, message] = failure_of([&] { file->read_rows(1, 0, 2, out); });
  EXPECT_EQ(kind, ErrorKind::unsupported);
  EXPECT_THAT(message, HasSubstr("tensor w.weight: F8_E4M3 codes without a scale"));
  // Where nothing speaks of quantization the numbers are what they are.
  EXPECT_EQ(all_of(*open_bytes(bytes), "w.weight")[0], float_from_f8_e4m3('a'));
  // Scales of other tensors speak of it.
  SafetensorsBytes mixed = bytes;
  mixed.tensor("v.weight", "F8_E4M3", {2}, "ab").floats("v.weight_scale", {1}, {2});
  EXPECT_FALSE(open_bytes(mixed)->tensors()[3].readable);
}

// A scale of eight exponent bits is 2^(e-127); 255 is NaN, and says so in what it scales.
TEST(FieldCases, FC09_E8M0ScalesArePowersOfTwo) {
  const std::string codes = "\x38\x40\x48\x38\x40\x48";  // 1 2 4 1 2 4
  const SafetensorsBytes bytes =
      SafetensorsBytes()
          .tensor("w.weight", "F8_E4M3", {3, 2}, codes)
          .tensor("w.weight_scale_inv", "F8_E8M0", {3, 1}, "\x82\x7C\xFF");
  const Opened file = open_bytes(bytes, {"fp8", {1, 2}});
  const std::vector<float> found = all_of(*file, "w.weight");
  EXPECT_THAT(std::vector<float>(found.begin(), found.begin() + 4),
              ElementsAre(8, 16, 0.5f, 0.125f));
  EXPECT_TRUE(std::isnan(found[4]) && std::isnan(found[5]));
  EXPECT_TRUE(file->is_scale(file->find("w.weight_scale_inv")));
  const Opened plain = open_bytes(
      SafetensorsBytes().tensor("e", "F8_E8M0", {4}, std::string("\x00\x7F\x80\xFE", 4)));
  EXPECT_THAT(all_of(*plain, "e"), ElementsAre(0x1p-127f, 1, 2, 0x1p127f));
}

TEST(FieldCases, FC09_Float4ShapesCountElements) {
  const Opened file =
      open_bytes(SafetensorsBytes().tensor("t", "F4", {2, 8}, std::string(8, '\x72')));
  EXPECT_EQ(file->tensors()[0].n_elements(), 16);
  EXPECT_THAT(rows_of(*file, "t", 1, 2), ElementsAre(1, 6, 1, 6, 1, 6, 1, 6));
  const auto [kind, message] = failure_of([] {
    open_bytes(SafetensorsBytes().tensor("t", "F4", {2, 7}, std::string(7, 'x')));
  });
  EXPECT_EQ(kind, ErrorKind::corrupt);
  EXPECT_THAT(message, HasSubstr("last dimension 7 of F4 is odd"));
}

TEST(SafetensorsFile, ScalesPerTensorPerRowAndPerExpert) {
  const std::string codes = "\x38\x40\x48\x38\x40\x48";  // 1 2 4 1 2 4
  const Opened file = open_bytes(
      SafetensorsBytes()
          .tensor("a", "F8_E4M3", {3, 2}, codes)
          .floats("a_scale", {}, {3})
          .tensor("b", "F8_E4M3", {3, 2}, codes)
          .floats("b_scale", {3, 1}, {2, 3, 5})
          .tensor("c", "F8_E4M3", {3, 2}, codes)
          .floats("c_scale", {3}, {2, 3, 5})
          .tensor("d", "F8_E4M3", {3, 1, 2}, codes)
          .floats("d_scale_inv", {3, 1, 1}, {2, 3, 5})
          .tensor("e", "I8", {2, 3}, "\x01\xFF\x02\x03\x04\x05")
          .tensor("e_scale", "BF16", {2, 1}, bytes_of(std::vector<std::uint16_t>{0x4000, 0x3F00})));
  EXPECT_THAT(all_of(*file, "a"), ElementsAre(3, 6, 12, 3, 6, 12));
  for (const char* name : {"b", "c", "d"})
    EXPECT_THAT(all_of(*file, name), ElementsAre(2, 4, 12, 3, 10, 20)) << name;
  EXPECT_THAT(rows_of(*file, "d", 2, 3), ElementsAre(10, 20));
  EXPECT_THAT(all_of(*file, "e"), ElementsAre(2, -2, 4, 1.5f, 2, 2.5f));
}

TEST(SafetensorsFile, ScalesThatDoNotFitMakeTheTensorUnreadable) {
  const auto refusal = [](const SafetensorsBytes& bytes, const QuantizationHint& hint) {
    const Opened file = open_bytes(bytes, hint);
    const int index = file->find("w");
    EXPECT_FALSE(file->tensors()[static_cast<std::size_t>(index)].readable);
    return file->refusal(index);
  };
  const auto matrix = [] {
    return SafetensorsBytes().tensor("w", "F8_E4M3", {6, 4}, std::string(24, '8'));
  };
  EXPECT_THAT(
      refusal(matrix().floats("w_scale_inv", {3, 4}, std::vector<float>(12, 1)), {"fp8", {4, 4}}),
      HasSubstr("shape [3, 4], which does not fit [6, 4] in blocks of [4, 4]"));
  EXPECT_THAT(refusal(matrix().floats("w_scale", {5}, std::vector<float>(5, 1)), {}),
              HasSubstr("shape [5], which does not fit [6, 4]"));
  EXPECT_THAT(refusal(matrix().floats("w_scale", {1}, {1}).floats("w_zero_point", {1}, {0}), {}),
              HasSubstr("w_zero_point, which is unsupported"));
  EXPECT_THAT(refusal(matrix().tensor("w_scale", "F8_E4M3", {1}, "8"), {}),
              HasSubstr("its scale w_scale is of dtype F8_E4M3"));
}

TEST(SafetensorsFile, DeepseekBlocksEqualTheFormulaOnStoredBytes) {
  SINKSCOPE_REQUIRE_SHARED(path, "oracles/deepseek_v3_fp8/model.safetensors");
  const Opened file = SafetensorsCheckpoint::open({path}, {"fp8", {16, 16}});
  EXPECT_THAT(file->warnings(), IsEmpty());
  int n_partial = 0;
  for (std::size_t i = 0; i < file->tensors().size(); ++i) {
    const TensorInfo& tensor = file->tensors()[i];
    if (tensor.dtype != "F8_E4M3") continue;
    const int scale = file->find(tensor.name + "_scale_inv");
    ASSERT_GE(scale, 0) << tensor.name;
    const std::int64_t rows = tensor.shape[0], cols = tensor.shape[1], across = (cols + 15) / 16;
    std::vector<std::uint8_t> codes(tensor.n_bytes);
    file->read_raw(static_cast<int>(i), 0, codes.size(), codes.data());
    std::vector<float> factors(static_cast<std::size_t>((rows + 15) / 16 * across));
    file->read_raw(scale, 0, factors.size() * sizeof(float), factors.data());
    const std::vector<float> found = all_of(*file, tensor.name);
    std::vector<float> expected;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < cols; ++c) {
        expected.push_back(float_from_f8_e4m3(codes[static_cast<std::size_t>(r * cols + c)]) *
                           factors[static_cast<std::size_t>(r / 16 * across + c / 16)]);
      }
    }
    EXPECT_EQ(bits_of(found), bits_of(expected)) << tensor.name;
    n_partial += rows % 16 != 0 && cols % 16 != 0;
  }
  EXPECT_GT(n_partial, 0);
}

}  // namespace
}  // namespace sinkscope
