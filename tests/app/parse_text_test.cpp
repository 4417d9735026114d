// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/parse_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/app/cli_run.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename Action>
std::string complaint(Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(ParseRanges, ListsAndRangesBecomeAscendingNumbers) {
  EXPECT_THAT(parse_ranges("--layers", "0-3,7"), ElementsAre(0, 1, 2, 3, 7));
  EXPECT_THAT(parse_ranges("--layers", "7,0-2,1"), ElementsAre(0, 1, 2, 7));
  EXPECT_THAT(parse_ranges("--layers", "5"), ElementsAre(5));
  EXPECT_TRUE(parse_ranges("--layers", "all").empty());
}

TEST(ParseRanges, NonsenseIsRefusedWithFlagExpectedAndFound) {
  for (const char* text : {"", "a", "3-1", "-1", "1-", "1,,2", "1-2-3", "0x3", " 1", "1 ",
                           "4294967296", "0-99999999999999999999"}) {
    const std::string message = complaint([&] { parse_ranges("--layers", text); });
    EXPECT_THAT(message, HasSubstr("--layers")) << text;
    EXPECT_THAT(message, HasSubstr("0-3,7")) << text;
  }
}

TEST(ParseRanges, AHugeRangeIsRefusedBeforeItIsBuilt) {
  EXPECT_THAT(complaint([] { parse_ranges("--rows", "0-2000000000"); }), HasSubstr("at most"));
}

TEST(FormatRanges, IsTheShortestTextThatParsesBack) {
  for (const char* text : {"0-3,7", "5", "0-1,3-4", "all"})
    EXPECT_EQ(format_ranges(parse_ranges("--rows", text)), text);
}

TEST(ParseBytes, UnitsAreBinaryOrDecimalByTheirName) {
  EXPECT_EQ(parse_bytes("--weight-budget", "4GiB"), std::int64_t{4} << 30);
  EXPECT_EQ(parse_bytes("--weight-budget", "1.5G"), 1610612736);
  EXPECT_EQ(parse_bytes("--weight-budget", "512 MiB"), 512 << 20);
  EXPECT_EQ(parse_bytes("--weight-budget", "100MB"), 100000000);
  EXPECT_EQ(parse_bytes("--weight-budget", "1000"), 1000);
}

TEST(ParseBytes, NonsenseIsRefused) {
  for (const char* text : {"", "GiB", "4 gigs", "-1", "0", "nan", "1e3", "9999999TiB", "inf"})
    EXPECT_THAT(complaint([&] { parse_bytes("--weight-budget", text); }),
                HasSubstr("--weight-budget"))
        << text;
}

TEST(ParseIds, CommasAndWhiteSpaceSeparate) {
  EXPECT_THAT(parse_ids("--tokens", "1,2,3"), ElementsAre(1, 2, 3));
  EXPECT_THAT(parse_ids("--tokens", " 10\n20,\t30 ,"), ElementsAre(10, 20, 30));
}

TEST(ParseIds, TheBadOneIsNamedWithItsPosition) {
  const std::string message = complaint([] { parse_ids("--tokens", "1,2,x3"); });
  EXPECT_THAT(message, HasSubstr("position 2"));
  EXPECT_THAT(message, HasSubstr("x3"));
  complaint([] { parse_ids("--tokens", "-5"); });
  complaint([] { parse_ids("--tokens", " , "); });
  complaint([] { parse_ids("--tokens", "99999999999"); });
}

TEST(ParseInteger, BoundsAreNamed) {
  EXPECT_EQ(parse_integer("--top-k", "10", 1, 1000), 10);
  EXPECT_THAT(complaint([] { parse_integer("--top-k", "0", 1, 1000); }),
              HasSubstr("--top-k: expected a whole number from 1 to 1000, found '0'"));
  complaint([] { parse_integer("--top-k", "1.5", 1, 1000); });
}

TEST(ParseNumber, OnlyFiniteOnesWithinTheBounds) {
  EXPECT_DOUBLE_EQ(parse_number("--epsilon", "0.3", 0, 1), 0.3);
  for (const char* text : {"", "nan", "inf", "1.1", "-0.1", "0,3", "0.3x"})
    complaint([&] { parse_number("--epsilon", text, 0, 1); });
}

TEST(ParseRunPath, TheRunStandsBehindTwoColons) {
  EXPECT_EQ(parse_run_path("a/b.h5::run3").path, "a/b.h5");
  EXPECT_EQ(parse_run_path("a/b.h5::run3").run, "run3");
  EXPECT_EQ(parse_run_path("a/b.h5").run, "");
}

TEST(ParseRunPath, AFileOfTheWholeNameWins) {
  const std::string path = test::write_file(test::scratch_folder(), "odd::name", "x");
  EXPECT_EQ(parse_run_path(path).path, path);
}

}  // namespace
}  // namespace sinkscope
