// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/snapshot/compare_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "core/error.h"
#include "core/snapshot/input_notes.h"

namespace sinkscope {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Index pairs of the values that both lists have, in the order of the first.
struct Common {
  std::vector<int> values;
  std::vector<int> in_a, in_b;
};

Common common_of(const std::vector<int>& a, const std::vector<int>& b) {
  std::map<int, int> place;
  for (std::size_t i = 0; i < b.size(); ++i) place.emplace(b[i], static_cast<int>(i));
  Common common;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto found = place.find(a[i]);
    if (found == place.end()) continue;
    common.values.push_back(a[i]);
    common.in_a.push_back(static_cast<int>(i));
    common.in_b.push_back(found->second);
  }
  return common;
}

// First and one past the last column that exists in both; columns between need not.
CellSpan common_span(const Grid& a, int row_a, const Grid& b, int row_b, const Common& cols) {
  CellSpan span{0, 0};
  for (int c = 0; c < static_cast<int>(cols.values.size()); ++c) {
    const auto i = static_cast<std::size_t>(c);
    if (!a.exists(row_a, cols.in_a[i]) || !b.exists(row_b, cols.in_b[i])) continue;
    if (span.begin == span.end) span.begin = c;
    span.end = c + 1;
  }
  return span;
}

bool is_float(const Grid& grid) {
  return grid.visit([](const auto* values) { return sizeof(*values) == sizeof(float); });
}

// [rows, cols] as T, which is float where both sides are: a large map needs half the memory.
template <class T>
Grid difference_map(const CompareSide& left, const CompareSide& right, const Common& rows,
                    const Common& cols) {
  std::vector<T> values(rows.values.size() * cols.values.size(), static_cast<T>(kNaN));
  std::vector<CellSpan> spans;
  for (std::size_t r = 0; r < rows.values.size(); ++r) {
    const CellSpan span = common_span(left.map, rows.in_a[r], right.map, rows.in_b[r], cols);
    spans.push_back(span);
    for (int c = span.begin; c < span.end; ++c) {
      const auto i = static_cast<std::size_t>(c);
      if (left.map.exists(rows.in_a[r], cols.in_a[i]) &&
          right.map.exists(rows.in_b[r], cols.in_b[i]))
        values[r * cols.values.size() + i] = static_cast<T>(
            right.map.at(rows.in_b[r], cols.in_b[i]) - left.map.at(rows.in_a[r], cols.in_a[i]));
    }
  }
  return Grid(static_cast<int>(rows.values.size()), static_cast<int>(cols.values.size()),
              std::move(values))
      .with_spans(std::move(spans));
}

Difference difference_of(const std::vector<CompareSide>& sides, std::size_t a, std::size_t b) {
  const CompareSide& left = sides[a];
  const CompareSide& right = sides[b];
  const Common rows = common_of(left.rows, right.rows);
  const Common cols = common_of(left.cols, right.cols);
  Difference difference;
  difference.a = a;
  difference.b = b;
  const bool in_floats = is_float(left.map) && is_float(right.map);
  difference.map = in_floats ? difference_map<float>(left, right, rows, cols)
                             : difference_map<double>(left, right, rows, cols);
  difference.rows = rows.values;
  difference.cols = cols.values;
  difference.text = fmt::format("{} − {}", right.title, left.title);
  const bool is_part = rows.values.size() < std::max(left.rows.size(), right.rows.size()) ||
                       cols.values.size() < std::max(left.cols.size(), right.cols.size());
  if (is_part)
    difference.text += fmt::format(", the common {} × {}", rows.values.size(), cols.values.size());
  return difference;
}

// Norm gains are compared by their effective values (w, or 1 + w where the family adds it), element
// by element: an unexplained aggregate has been taken for damage before.
void note_gains(const CompareSide& side, const Difference& difference,
                std::vector<std::string>& notes) {
  double largest = 0;
  std::int64_t n = 0;
  for (int r = 0; r < difference.map.rows(); ++r)
    for (int c = 0; c < difference.map.cols(); ++c) {
      const double value = difference.map.at(r, c);
      if (!difference.map.exists(r, c) || !std::isfinite(value)) continue;
      largest = std::max(largest, std::abs(value));
      ++n;
    }
  notes.push_back(
      fmt::format("Compared: |{}|, element by element; max |{}| = {:.3g} over {} elements{}.",
                  side.source, difference.text, largest, n, largest == 0 ? ", all equal" : ""));
}

void note_pair(const CompareSide& a, const CompareSide& b, std::vector<std::string>& notes) {
  note_models(a.model, a.title, b.model, b.title, notes);
  if (a.kind != MapKind::norms) note_inputs(a.input, a.title, b.input, b.title, notes);
  if (a.map.rows() != b.map.rows() || a.map.cols() != b.map.cols())
    notes.push_back(fmt::format(
        "Unequal shapes: {} × {} in {}, {} × {} in {}; the difference covers what both have.",
        a.map.rows(), a.map.cols(), a.title, b.map.rows(), b.map.cols(), b.title));
  if (a.cols != b.cols && a.kind == MapKind::residual)
    notes.push_back(fmt::format(
        "The columns of {} and {} are not the same dimensions; the difference matches them by "
        "index.",
        a.title, b.title));
  if (a.source != b.source)
    notes.push_back(fmt::format("Different sources: {} in {}, {} in {}.", a.source, a.title,
                                b.source, b.title));
}

}  // namespace

CompareSide compare_side(const AttentionSnapshot& snapshot, std::string title) {
  return {MapKind::attention,   std::move(title),    snapshot.source_text,  snapshot.map,
          snapshot.queries,     snapshot.keys,       snapshot.query_labels, snapshot.key_labels,
          snapshot.facts.model, snapshot.facts.input};
}

CompareSide compare_side(const ResidualSnapshot& snapshot, std::string title) {
  return {MapKind::residual,    std::move(title),    snapshot.source_text,  snapshot.map,
          snapshot.tokens,      snapshot.dims,       snapshot.token_labels, {},
          snapshot.facts.model, snapshot.facts.input};
}

CompareSide compare_side(const NormsSnapshot& snapshot, const NormStrip& strip, std::string title) {
  CompareSide side;
  side.kind = MapKind::norms;
  side.title = std::move(title);
  side.source = snapshot.view_text;
  side.map = strip.map;
  side.rows = strip.layers;
  for (int dim = 0; dim < strip.map.cols(); ++dim) side.cols.push_back(dim);
  side.model = snapshot.model;
  return side;
}

CompareSide compare_side(const OverviewSnapshot& snapshot, ScoreKind kind, std::string title) {
  CompareSide side;
  side.kind = MapKind::scores;
  side.title = std::move(title);
  side.source = describe(kind, snapshot.request.options.gu_key);
  side.map = snapshot.score(kind);
  for (int head = 0; head < side.map.rows(); ++head) side.rows.push_back(head);
  side.cols = snapshot.layers;
  side.model = snapshot.facts.model;
  side.input = snapshot.facts.input;
  return side;
}

CompareSnapshot compare(std::vector<CompareSide> sides) {
  if (sides.size() < 2)
    throw Error(ErrorKind::invalid_argument, "expected two maps or more to compare");
  for (const CompareSide& side : sides)
    if (side.kind != sides.front().kind)
      throw Error(ErrorKind::invalid_argument,
                  "maps of attention, residual stream, norms and scores are not comparable");
  CompareSnapshot out;
  for (std::size_t b = 1; b < sides.size(); ++b) {
    out.differences.push_back(difference_of(sides, 0, b));
    note_pair(sides.front(), sides[b], out.notes);
    if (sides.front().kind == MapKind::norms)
      note_gains(sides.front(), out.differences.back(), out.notes);
  }
  out.sides = std::move(sides);
  return out;
}

}  // namespace sinkscope
