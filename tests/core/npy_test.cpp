// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/npy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <sstream>

#include "core/error.h"

namespace sinkscope {
namespace {

// As numpy.lib.format.write_array(…, version=(1, 0)) writes it.
std::string numpy_header(const std::string& dict) {
  std::string out("\x93NUMPY\x01\x00v\x00", 10);
  out += dict;
  out.append(127 - out.size(), ' ');
  return out + "\n";
}

TEST(Npy, HeadersAreThoseOfNumpy) {
  EXPECT_EQ(npy_header(ElementType::f32, {2, 3, 5}),
            numpy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 5), }"));
  EXPECT_EQ(npy_header(ElementType::f64, {7}),
            numpy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (7,), }"));
  EXPECT_EQ(npy_header(ElementType::i32, {}),
            numpy_header("{'descr': '<i4', 'fortran_order': False, 'shape': (), }"));
  EXPECT_EQ(npy_header(ElementType::i64, {0, 4}),
            numpy_header("{'descr': '<i8', 'fortran_order': False, 'shape': (0, 4), }"));
}

TEST(Npy, AHeaderOfManyDimensionsStaysAMultipleOf64) {
  for (int rank = 1; rank <= 32; ++rank) {
    const std::string header =
        npy_header(ElementType::f32, std::vector<std::int64_t>(static_cast<std::size_t>(rank), 11));
    EXPECT_EQ(header.size() % 64, 0U) << rank;
    const auto low = static_cast<unsigned char>(header[8]);
    const auto high = static_cast<unsigned char>(header[9]);
    EXPECT_EQ(10U + low + 256U * high, header.size()) << rank;
    EXPECT_EQ(header.back(), '\n');
  }
}

TEST(Npy, ValuesFollowInCOrder) {
  const float values[6] = {0, 1, 2, 3, 4, 5.5F};
  std::ostringstream out;
  write_npy(out, {2, 3}, values);
  ASSERT_EQ(out.str().size(), 128U + 24U);
  float last = 0;
  std::memcpy(&last, out.str().data() + 128 + 20, 4);
  EXPECT_EQ(last, 5.5F);
}

TEST(Npy, AnEmptyArrayIsAHeaderAlone) {
  std::ostringstream out;
  write_npy(out, {3, 0}, static_cast<const double*>(nullptr));
  EXPECT_EQ(out.str().size(), 128U);
}

TEST(Npy, TextAndNegativeShapesAreRefused) {
  EXPECT_THROW(npy_header(ElementType::text, {2}), Error);
  EXPECT_THROW(npy_header(ElementType::f32, {2, -1}), Error);
}

TEST(Npy, AFailedStreamIsAnError) {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  const std::int32_t value = 1;
  try {
    write_npy(out, {1}, &value);
    FAIL() << "expected Error{io}";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
  }
}

}  // namespace
}  // namespace sinkscope
