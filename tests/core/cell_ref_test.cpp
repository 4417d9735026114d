// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/snapshot/cell_ref.h"

#include <gtest/gtest.h>

namespace sinkscope {
namespace {

const FindSpace kSpace = {30, 9, 576, {"<s>", "·The", "·keeper", "7", "·the", "漢字"}};

TEST(FindPlace, GoesToLayersAndHeads) {
  EXPECT_EQ(find_place("L12H3", kSpace, {}), (CellRef{12, 3}));
  EXPECT_EQ(find_place(" l12 ", kSpace, {}), (CellRef{12}));
  EXPECT_EQ(find_place("h8", kSpace, {}), (CellRef{-1, 8}));
  EXPECT_EQ(find_place("L30H0", kSpace, {}), std::nullopt) << "there are 30 layers, 0 to 29";
  EXPECT_EQ(find_place("L1H9", kSpace, {}), std::nullopt);
}

TEST(FindPlace, ANumberIsADimension) {
  EXPECT_EQ(find_place("507", kSpace, {})->dim, 507);
  // No such dimension: it may still be a token.
  FindSpace small = kSpace;
  small.n_dims = 5;
  EXPECT_EQ(find_place("7", small, {})->token, 3);
  EXPECT_EQ(find_place("576", kSpace, {}), std::nullopt);
}

TEST(FindPlace, TextGoesFromTokenToTokenAndAround) {
  CellRef at;
  at = *find_place("THE", kSpace, at);
  EXPECT_EQ(at.token, 1);
  EXPECT_EQ(at.key, 1);
  at = *find_place("the", kSpace, at);
  EXPECT_EQ(at.token, 4);
  EXPECT_EQ(find_place("the", kSpace, at)->token, 1);
  EXPECT_EQ(find_place("字", kSpace, {})->token, 5);
  EXPECT_EQ(find_place("lx", kSpace, {}), std::nullopt);
  EXPECT_EQ(find_place("-5", kSpace, {}), std::nullopt);
  EXPECT_EQ(find_place("  ", kSpace, {}), std::nullopt);
}

TEST(CellRef, MergesAndNames) {
  CellRef change;
  change.head = 2;
  change.dim = 507;
  EXPECT_EQ(merged(CellRef{15, 5, 24, 0}, change), (CellRef{15, 2, 24, 0, -1, 507}));
  EXPECT_EQ(short_name({15, 5, 24, 0}), "L15H5 q24 k0");
  EXPECT_EQ(short_name({11, -1, -1, -1, 0, 507}), "L11 t0 d507");
  EXPECT_EQ(short_name({}), "");
}

}  // namespace
}  // namespace sinkscope
