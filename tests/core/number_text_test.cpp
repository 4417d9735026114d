// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/number_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sinkscope {
namespace {

TEST(NumberText, GroupsThousandsAndKeepsSmallNumbersShort) {
  EXPECT_EQ(readable(25804.6641), "25,804.7");
  EXPECT_EQ(readable(-1234567.89), "-1,234,567.9");
  EXPECT_EQ(readable(999.96), "1,000.0");
  EXPECT_EQ(readable(-1000), "-1,000.0");
  EXPECT_EQ(readable(0.31244), "0.3124");
  EXPECT_EQ(readable(-1.049e-05), "-1.049e-05");
  EXPECT_EQ(readable(std::nan("")), "NaN");
  EXPECT_EQ(readable(std::numeric_limits<double>::infinity()), "infinite");
}

TEST(NumberText, ListsEndInAnd) {
  EXPECT_EQ(readable_list({}), "");
  EXPECT_EQ(readable_list({7}), "7");
  EXPECT_EQ(readable_list({7, 3}), "7 and 3");
  EXPECT_EQ(readable_list({7, 3, 9}), "7, 3 and 9");
  EXPECT_EQ(readable_list({7, 3, 9, 1}, 2), "7, 3 and 2 more");
}

TEST(NumberText, CountsCharactersAndNotBytes) {
  EXPECT_EQ(quoted("naïve", 5), "\"naïve\"");
  EXPECT_EQ(quoted("naïvely", 5), "\"naïv…\"");
  EXPECT_EQ(quoted(""), "");
  EXPECT_EQ(pad_right("é", 3) + "|", "é  |");
  EXPECT_EQ(pad_left("é", 3), "  é");
}

TEST(NumberText, CsvFieldsAreQuotedWhereTheyMustBe) {
  EXPECT_EQ(csv_field("run0"), "run0");
  EXPECT_EQ(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
  EXPECT_EQ(csv_number(0.1), "0.1");
  EXPECT_EQ(csv_number(std::nan("")), "");
}

TEST(CountText, GroupsThousands) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(1000), "1,000");
  EXPECT_EQ(count_text(20981), "20,981");
  EXPECT_EQ(count_text(1234567), "1,234,567");
  EXPECT_EQ(count_text(-1000), "-1,000");
}

}  // namespace
}  // namespace sinkscope
