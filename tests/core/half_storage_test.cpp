// SPDX-License-Identifier: GPL-3.0-or-later
// Field cases of 16-bit numbers in HDF5, and of its threads: captures hold float32 and float64 in
// the machine's own types, so that HDF5 itself never converts; narrowing is core/half's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <thread>

#include "core/capture_reader.h"
#include "core/error.h"
#include "core/half.h"
#include "tests/support/h5_tools.h"
#include "tests/support/sample_capture.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();

// A capture whose final norm [7, 6] begins with what a bfloat16 run may leave there.
std::string with_bf16_values(const std::string& path) {
  const CaptureLayout layout = test::sample_layout();
  const auto writer = CaptureWriter::create(path, layout, CaptureWriter::Existing::refuse);
  const int n_layers = layout.model.n_layers;
  for (int run = 0; run < 2; ++run)
    for (int block = 0; block < n_layers; ++block) test::write_sample_block(*writer, run, block);
  std::vector<float> values;
  for (const float value : {1.0F, -2.5F, static_cast<float>(kInf), std::nanf(""), 264192.0F})
    values.push_back(float_from_bf16(bf16_from_float(value)));
  writer->write(0, "residual/final_norm", {0, 0}, {1, 5}, values.data());
  writer->layer_done(n_layers, 2);
  writer->finish();
  return path;
}

// Datasets of the file, each once, with `look` at their types.
void for_each_type(const std::string& path, const std::function<void(hid_t type)>& look) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  const auto visit = [](hid_t at, const char* name, const H5O_info_t* info, void* context) {
    if (info->type != H5O_TYPE_DATASET) return herr_t{0};
    const hid_t dataset = H5Dopen2(at, name, H5P_DEFAULT);
    const hid_t type = H5Dget_type(dataset);
    (*static_cast<const std::function<void(hid_t)>*>(context))(type);
    H5Tclose(type);
    H5Dclose(dataset);
    return herr_t{0};
  };
  H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, visit, const_cast<std::function<void(hid_t)>*>(&look),
            H5O_INFO_BASIC);
  H5Fclose(file);
}

// bfloat16's own bits as HDF5 describes them: sign 15, exponent at 7 of width 8, bias 127.
hid_t bf16_type() {
  const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(type, 15, 7, 8, 0, 7);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, 127);
  return type;
}

TEST(FieldCases, FC65_Bfloat16ValuesAreKeptExactlyAsFloat32) {
  SINKSCOPE_REQUIRE_H5DUMP();
  const std::string path = with_bf16_values(test::scratch_folder() + "/run.h5");
  const auto read =
      CaptureReader::open(path)->read_f32("run0", "residual/final_norm", {0, 0}, {1, 5});
  EXPECT_EQ(read[0], 1);
  EXPECT_EQ(read[1], -2.5);
  EXPECT_EQ(read[2], kInf);
  EXPECT_TRUE(std::isnan(read[3]));
  EXPECT_EQ(read[4], 264192);
  for (const auto& [index, value] : {std::pair("0,0", 1.0), std::pair("0,1", -2.5),
                                     std::pair("0,2", kInf), std::pair("0,4", 264192.0)})
    EXPECT_EQ(test::dumped_number(path, "/run0/residual/final_norm", index), value);
  EXPECT_TRUE(std::isnan(test::dumped_number(path, "/run0/residual/final_norm", "0,3")));
  for_each_type(path, [](hid_t type) {
    EXPECT_NE(H5Tget_class(type), H5T_OPAQUE);
    if (H5Tget_class(type) != H5T_STRING) {
      EXPECT_GE(H5Tget_size(type), 4U);  // no bare 16-bit codes either
    }
  });
}

TEST(FieldCases, FC66_NothingIsConvertedInsideHdf5) {
  const std::string path = test::scratch_folder() + "/run.h5";
  test::write_sample_capture(path);
  int n = 0;
  for_each_type(path, [&](hid_t type) {
    if (H5Tget_class(type) != H5T_FLOAT) return;
    EXPECT_TRUE(H5Tequal(type, H5T_NATIVE_FLOAT) > 0 || H5Tequal(type, H5T_NATIVE_DOUBLE) > 0);
    ++n;
  });
  EXPECT_GT(n, 20);
}

TEST(FieldCases, FC67_NarrowingRoundsToNearestEvenAlsoBelowTheNormals) {
  const auto narrowed = [](float value) { return float_from_half(half_from_float(value)); };
  EXPECT_FLOAT_EQ(narrowed(6.103e-05F), 6.1035156e-05F);
  EXPECT_FLOAT_EQ(narrowed(1e-07F), 1.1920929e-07F);
  EXPECT_FLOAT_EQ(narrowed(-3.80208803e-06F), -3.8146973e-06F);
  // Every code, and the middle between it and the next: the even one of the two.
  for (unsigned code = 0; code < 0x7C00; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    const float here = float_from_half(bits);
    ASSERT_EQ(half_from_float(here), bits);
    ASSERT_EQ(half_from_float(-here), bits | 0x8000);
    const float next =
        code + 1 < 0x7C00 ? float_from_half(static_cast<std::uint16_t>(code + 1)) : 65536.0F;
    const float middle = (here + next) / 2;
    ASSERT_EQ(half_from_float(middle), code % 2 == 0 ? code : code + 1) << middle;
    ASSERT_EQ(half_from_float(std::nextafter(middle, here)), code) << middle;
    ASSERT_EQ(half_from_float(std::nextafter(middle, next)), code + 1) << middle;
  }
}

// With those above all 65,536 codes: infinities, NaN of both signs, what rounds beyond the largest.
TEST(FieldCases, FC67_InfinitiesAndNaNStayWhatTheyAre) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const unsigned sign : {0U, 0x8000U}) {
    const float s = sign == 0 ? 1.0F : -1.0F;
    EXPECT_EQ(float_from_half(static_cast<std::uint16_t>(sign | 0x7C00)), s * kInfinity);
    EXPECT_EQ(half_from_float(s * kInfinity), sign | 0x7C00);
    EXPECT_EQ(half_from_float(s * 65519.99F), sign | 0x7BFF);
    EXPECT_EQ(half_from_float(s * 65520.0F), sign | 0x7C00);
    EXPECT_EQ(half_from_float(s * 3e38F), sign | 0x7C00);
    EXPECT_EQ(bf16_from_float(s * kInfinity), sign | 0x7F80);
    for (unsigned code = 0x7C01; code < 0x8000; ++code) {
      const float value = float_from_half(static_cast<std::uint16_t>(sign | code));
      ASSERT_TRUE(std::isnan(value)) << code;
      const unsigned back = half_from_float(value);
      ASSERT_GT(back & 0x7FFFU, 0x7C00U) << code;
      ASSERT_EQ(back & 0x8000U, sign) << code;
      ASSERT_TRUE(std::isnan(float_from_bf16(bf16_from_float(value)))) << code;
    }
  }
  EXPECT_TRUE(std::isnan(float_from_bf16(bf16_from_float(std::bit_cast<float>(0x7F800001U)))));
}

TEST(FieldCases, FC72_SixteenBitArraysOfOthersAreRefusedByTheirType) {
  for (const bool is_bf16 : {false, true}) {
    const std::string path = test::scratch_folder() + "/run.h5";
    test::write_sample_capture(path);
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    const hid_t half = H5Tcopy(H5T_IEEE_F32LE);
    H5Tset_fields(half, 15, 10, 5, 0, 10);
    H5Tset_size(half, 2);
    H5Tset_ebias(half, 15);
    const hid_t type = is_bf16 ? bf16_type() : half;
    const hsize_t dims[] = {7, 6};
    const hid_t space = H5Screate_simple(2, dims, nullptr);
    H5Ldelete(file, "/run0/residual/final_norm", H5P_DEFAULT);
    const hid_t dataset = H5Dcreate2(file, "/run0/residual/final_norm", type, space, H5P_DEFAULT,
                                     H5P_DEFAULT, H5P_DEFAULT);
    ASSERT_GE(dataset, 0);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Fclose(file);
    try {
      CaptureReader::open(path)->read_f32("run0", "residual/final_norm");
      FAIL() << "expected an Error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt);
      EXPECT_THAT(error.what(), HasSubstr("final_norm: expected f32"));
      EXPECT_THAT(error.what(), HasSubstr("found 16-bit floats"));
    }
  }
}

// One panel scrolls while another computes: every thread reads with a reader of its own.
TEST(FieldCases, FC69_ThreadsWithReadersOfTheirOwnReadTheRightValues) {
  const std::string path = test::scratch_folder() + "/run.h5";
  test::write_sample_capture(path);
  const auto once = CaptureReader::open(path);
  const auto stream = once->read_f32("run0", "residual/stream");  // [7,7,6]
  const auto labels = once->read_texts("run0", "input/token_text");
  std::vector<int> n_wrong(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < n_wrong.size(); ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        const auto reader = CaptureReader::open(path);
        const std::int64_t site = (static_cast<std::int64_t>(t) + round) % 7;
        const auto box = reader->read_f32("run0", "residual/stream", {site, 0, 0}, {1, 7, 6});
        for (std::size_t i = 0; i < box.size(); ++i)
          n_wrong[t] += box[i] != stream[static_cast<std::size_t>(site) * 42 + i];
        n_wrong[t] += reader->read_texts("run0", "input/token_text") != labels;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(n_wrong, ElementsAre(0, 0, 0, 0));
}

}  // namespace
}  // namespace sinkscope
