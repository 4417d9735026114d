// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/format_text.h"

#include <gtest/gtest.h>

namespace sinkscope {
namespace {

TEST(FormatBytes, PicksTheUnitAndNeverPrints1024) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes((std::int64_t{1} << 20) - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(std::int64_t{4} << 30), "4.0 GiB");
}

TEST(FormatCount, GroupsByThousands) {
  EXPECT_EQ(format_count(7), "7");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(134515008), "134,515,008");
  EXPECT_EQ(format_count(-123456), "-123,456");
}

TEST(FormatDuration, HoursOnlyWhereThereAreSome) {
  EXPECT_EQ(format_duration(7), "0:07");
  EXPECT_EQ(format_duration(754.4), "12:34");
  EXPECT_EQ(format_duration(11109), "3:05:09");
}

TEST(FormatShape, NamesAScalar) {
  EXPECT_EQ(format_shape({9, 64, 32}), "[9, 64, 32]");
  EXPECT_EQ(format_shape({}), "scalar");
}

TEST(ShellWord, QuotesWhatAShellWouldTakeApart) {
  EXPECT_EQ(shell_word("runs/a.h5::run1"), "runs/a.h5::run1");
  EXPECT_EQ(shell_word("my run.h5"), "'my run.h5'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace sinkscope
