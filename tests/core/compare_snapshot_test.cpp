// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/snapshot/compare_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "tests/support/fake_capture.h"

namespace sinkscope {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

CompareSide side_of(const std::string& title, Grid map, std::vector<int> rows,
                    std::vector<int> cols) {
  CompareSide side;
  side.title = title;
  side.map = std::move(map);
  side.rows = std::move(rows);
  side.cols = std::move(cols);
  side.input.token_ids = {1, 2, 3};
  side.input.token_text = {"<s>", "a", "b"};
  side.input.bos_positions = {0};
  return side;
}

TEST(CompareSnapshot, TheDifferenceIsBMinusA) {
  const auto out =
      compare({side_of("A", Grid(2, 3, std::vector<float>{1, 2, 3, 4, 5, 6}), {0, 1}, {0, 1, 2}),
               side_of("B", Grid(2, 3, std::vector<float>{1, 0, 3, 4, 9, 6}), {0, 1}, {0, 1, 2})});
  ASSERT_EQ(out.differences.size(), 1U);
  const Difference& difference = out.differences.front();
  EXPECT_EQ(difference.text, "B − A");
  EXPECT_EQ(difference.map.at(0, 1), -2);
  EXPECT_EQ(difference.map.at(1, 1), 4);
  EXPECT_EQ(difference.map.at(1, 2), 0);
  EXPECT_THAT(out.notes, IsEmpty());
}

TEST(CompareSnapshot, UnequalShapesAreSaidAndMatchedByIndex) {
  // Columns are dimensions in different orders.
  CompareSide a = side_of("A", Grid(1, 3, std::vector<float>{10, 20, 30}), {0}, {7, 5, 6});
  CompareSide b = side_of("B", Grid(2, 2, std::vector<float>{6, 7, 8, 9}), {0, 1}, {6, 7});
  a.kind = b.kind = MapKind::residual;
  const auto out = compare({a, b});
  const Difference& difference = out.differences.front();
  EXPECT_THAT(difference.cols, ElementsAre(7, 6));
  EXPECT_THAT(difference.rows, ElementsAre(0));
  EXPECT_EQ(difference.map.at(0, 0), 7 - 10);
  EXPECT_EQ(difference.map.at(0, 1), 6 - 30);
  EXPECT_THAT(difference.text, HasSubstr("the common 1 × 2"));
  EXPECT_THAT(out.notes, Contains(HasSubstr("Unequal shapes: 1 × 3 in A, 2 × 2 in B")));
}

TEST(CompareSnapshot, MaskedCellsOfEitherSideAreMasked) {
  const auto causal = [](const std::string& title) {
    return side_of(title, Grid(2, 2, std::vector<float>{1, 0, 1, 1}).with_spans(causal_spans(2, 2)),
                   {0, 1}, {0, 1});
  };
  const auto out = compare({causal("A"), causal("B")});
  EXPECT_FALSE(out.differences.front().map.exists(0, 1));
  EXPECT_TRUE(out.differences.front().map.exists(1, 1));
  EXPECT_EQ(out.differences.front().map.at(1, 0), 0);
}

TEST(CompareSnapshot, DifferentInputsAndModelsAreSaid) {
  CompareSide a = side_of("A", Grid(1, 1, std::vector<float>{1}), {0}, {0});
  CompareSide b = a;
  b.title = "B";
  b.input.token_ids = {1, 2, 4, 5};
  b.input.token_text = {"<s>", "a", "c", "d"};
  b.input.bos_positions = {};
  b.model.name = "other";
  const auto out = compare({a, b});
  EXPECT_THAT(out.notes, Contains(HasSubstr("1 of the first 3 tokens differ, the first at position "
                                            "2: \"b\" in A, \"c\" in B")));
  EXPECT_THAT(out.notes, Contains(HasSubstr("Different lengths: 3 tokens in A, 4 in B")));
  EXPECT_THAT(out.notes, Contains(HasSubstr("Only A begins with a BOS token")));
  EXPECT_THAT(out.notes, Contains(HasSubstr("Different models")));
}

TEST(FieldCases, FC23_RunsThatDifferByBosSaySo) {
  CompareSide with = side_of("with", Grid(1, 1, std::vector<float>{1}), {0}, {0});
  CompareSide without = with;
  without.title = "without";
  without.input.token_ids = {2, 3};
  without.input.token_text = {"a", "b"};
  without.input.bos_positions = {};
  EXPECT_THAT(compare({with, without}).notes,
              Contains(HasSubstr("Inputs differ: BOS. Only with begins with a BOS token")));
  EXPECT_THAT(compare({with, with}).notes, IsEmpty());
}

// "My GGUF norms are corrupt": what is compared is said, and equal elements are called equal.
TEST(FieldCases, FC16_NormsAreComparedElementByElementAndTheStatisticIsSaid) {
  const auto norms = [](const std::string& title, std::vector<float> gains) {
    CompareSide side = side_of(title, Grid(2, 3, std::move(gains)), {0, -1}, {0, 1, 2});
    side.kind = MapKind::norms;
    side.source = "effective gain";
    return side;
  };
  const CompareSide folder = norms("folder", {1, 2, 3, 0.5F, 1, 7});
  EXPECT_THAT(compare({folder, norms("gguf", {1, 2, 3, 0.5F, 1, 7})}).notes,
              ElementsAre("Compared: |effective gain|, element by element; max |gguf − folder| = 0 "
                          "over 6 elements, all equal."));
  EXPECT_THAT(compare({folder, norms("gguf", {1, 2, 3, 0.5F, 1.25F, 7})}).notes,
              ElementsAre(HasSubstr("max |gguf − folder| = 0.25 over 6 elements.")));
}

TEST(CompareSnapshot, OneMapOrDifferentKindsAreRefused) {
  const CompareSide a = side_of("A", Grid(1, 1, std::vector<float>{1}), {0}, {0});
  CompareSide b = a;
  b.kind = MapKind::norms;
  EXPECT_THROW(compare({a}), Error);
  EXPECT_THROW(compare({a, b}), Error);
}

}  // namespace
}  // namespace sinkscope
