// SPDX-License-Identifier: GPL-3.0-or-later
#include <gtest/gtest.h>

#include "capture/checkpoint/safetensors_file.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using namespace test;  // NOLINT: the helpers of the tests

// Two tensors, "b" first in the file; "a" is longer than both of its hashed ends.
SafetensorsBytes two_tensors(const std::string& a, const std::string& dtype_b = "BF16") {
  std::string b;
  for (int i = 0; i < 12; ++i) b += static_cast<char>(i);
  return SafetensorsBytes()
      .tensor("b", dtype_b, {2, 3}, b)
      .tensor("a", "U8", {static_cast<std::int64_t>(a.size())}, a);
}

std::string hash_of(const SafetensorsBytes& bytes) {
  return fingerprint(*SafetensorsCheckpoint::open({bytes.write(scratch_folder() + "/m")}));
}

std::string counting(int n) {
  std::string bytes;
  for (int i = 0; i < n; ++i) bytes += static_cast<char>(i % 251);
  return bytes;
}

// Computed with Python's hashlib over the same definition.
TEST(Fingerprint, IsTheHashOfNamesTypesShapesAndEnds) {
  EXPECT_EQ(hash_of(two_tensors(counting(9000))),
            "66b7e7abb792e289a96bc8d4142e5090f68685e629ed038f57bf0d8844fb9510");
}

TEST(Fingerprint, SeesEveryPartOfItsDefinition) {
  const std::string base = hash_of(two_tensors(counting(9000)));
  std::string edge = counting(9000);
  edge[4095] = 'x';
  EXPECT_NE(hash_of(two_tensors(edge)), base);
  edge = counting(9000);
  edge[9000 - 4096] = 'x';
  EXPECT_NE(hash_of(two_tensors(edge)), base);
  edge = counting(9000);
  edge[4500] = 'x';  // neither in the first nor in the last 4 KiB
  EXPECT_EQ(hash_of(two_tensors(edge)), base);
  EXPECT_NE(hash_of(two_tensors(counting(9000), "F16")), base);
}

TEST(Fingerprint, DoesNotDependOnTheOrderInTheFile) {
  const SafetensorsBytes one = SafetensorsBytes().floats("a", {1}, {1}).floats("b", {1}, {2});
  const SafetensorsBytes other = SafetensorsBytes().floats("b", {1}, {2}).floats("a", {1}, {1});
  EXPECT_EQ(hash_of(one), hash_of(other));
}

}  // namespace
}  // namespace sinkscope
