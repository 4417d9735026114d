// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/position_filter.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace sinkscope {
namespace {

TEST(PositionFilter, ReadsWhatItWrites) {
  for (const char* text : {"all", "first", "rest", "ids:5-127"}) {
    const PositionFilter filter = PositionFilter::parse(text);
    EXPECT_EQ(filter.text(), text);
    EXPECT_EQ(PositionFilter::parse(filter.text()), filter);
  }
  EXPECT_EQ(PositionFilter::parse("ids:9"), PositionFilter::parse("ids:9-9"));
}

TEST(PositionFilter, MatchesByPositionOrByTokenId) {
  EXPECT_TRUE(PositionFilter::parse("all").matches(0, 7));
  EXPECT_TRUE(PositionFilter::parse("first").matches(0, 7));
  EXPECT_FALSE(PositionFilter::parse("first").matches(1, 7));
  EXPECT_FALSE(PositionFilter::parse("rest").matches(0, 7));
  EXPECT_TRUE(PositionFilter::parse("rest").matches(4, 7));
  const PositionFilter ids = PositionFilter::parse("ids:5-7");
  EXPECT_TRUE(ids.matches(0, 5));
  EXPECT_TRUE(ids.matches(3, 7));
  EXPECT_FALSE(ids.matches(3, 4));
  EXPECT_FALSE(ids.matches(3, 8));
}

TEST(PositionFilter, RefusesEverythingElseByName) {
  for (const char* text : {"", "last", "ids:", "ids:5-", "ids:-5", "ids:7-5", "ids:a-b",
                           "ids:5-6-7", "ids:99999999999", "ids:5 -6"}) {
    try {
      PositionFilter::parse(text);
      ADD_FAILURE() << "accepted '" << text << "'";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
      EXPECT_NE(std::string(e.what()).find("'" + std::string(text) + "'"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace sinkscope
