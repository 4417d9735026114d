// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/draw/grid.h"
#include "core/snapshot/attention_snapshot.h"
#include "core/snapshot/norms_snapshot.h"
#include "core/snapshot/overview_snapshot.h"
#include "core/snapshot/residual_snapshot.h"

namespace sinkscope {

// What the rows and columns of a compared map are; sides of different kinds are not comparable.
enum class MapKind { attention, residual, norms, scores };

// One of the maps that stand side by side.
struct CompareSide {
  MapKind kind = MapKind::attention;
  std::string title;   // what tells it from the others: "L15H5", "run1", "other.h5 · run0"
  std::string source;  // in words: "recorded map", "first 64 of 512 tokens"
  Grid map;
  // Positions, layers (norms: −1 = after the last block), heads or dimensions behind the cells.
  std::vector<int> rows, cols;
  std::vector<std::string> row_labels, col_labels;  // token texts; empty = numbers
  ModelFacts model;
  RunInput input;  // empty for norms: they depend on no input
};

CompareSide compare_side(const AttentionSnapshot& snapshot, std::string title);
CompareSide compare_side(const ResidualSnapshot& snapshot, std::string title);
CompareSide compare_side(const NormsSnapshot& snapshot, const NormStrip& strip, std::string title);
// Scores of all heads: heads downwards, layers to the right.
CompareSide compare_side(const OverviewSnapshot& snapshot, ScoreKind kind, std::string title);

// B − A over the rows and columns (positions, dimensions) that both have.
struct Difference {
  std::size_t a = 0, b = 0;  // sides
  Grid map;
  std::vector<int> rows, cols;
  std::string text;  // "B − A", and over what part
};

struct CompareSnapshot {
  std::vector<CompareSide> sides;       // two or more
  std::vector<Difference> differences;  // every later side against the first
  // What makes the sides differ besides their numbers, one sentence each: shapes, models, tokens,
  // BOS, sources. Empty when only the numbers differ.
  std::vector<std::string> notes;
};

// Throws Error{invalid_argument} for fewer than two sides or sides of different kinds.
CompareSnapshot compare(std::vector<CompareSide> sides);

}  // namespace sinkscope
