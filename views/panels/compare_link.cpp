// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/panels/compare_link.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace sinkscope {

namespace {

bool is_ascending(const CellNumbers& numbers) {
  return std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) ==
         numbers.end();
}

// The edge of cell i; behind the last cell the axis goes on in its last step.
double edge(const CellNumbers& numbers, int i) {
  const int n = static_cast<int>(numbers.size());
  if (i < n) return numbers[static_cast<std::size_t>(i)];
  const int step =
      n > 1 ? numbers[static_cast<std::size_t>(n - 1)] - numbers[static_cast<std::size_t>(n - 2)]
            : 1;
  return numbers.back() + static_cast<double>(step) * (i - n + 1);
}

double number_at(double place, const CellNumbers& numbers) {
  const int n = static_cast<int>(numbers.size());
  const int cell = std::clamp(static_cast<int>(std::floor(place)), 0, n - 1);
  return edge(numbers, cell) + (place - cell) * (edge(numbers, cell + 1) - edge(numbers, cell));
}

double place_of(double number, const CellNumbers& numbers) {
  const int n = static_cast<int>(numbers.size());
  const auto after = std::upper_bound(numbers.begin(), numbers.end(), number);
  const int cell = std::clamp(static_cast<int>(after - numbers.begin()) - 1, 0, n - 1);
  return cell + (number - edge(numbers, cell)) / (edge(numbers, cell + 1) - edge(numbers, cell));
}

}  // namespace

const char* axis_title(MapKind kind, bool rows) {
  switch (kind) {
    case MapKind::attention:
      return rows ? "query" : "key";
    case MapKind::residual:
      return rows ? "token" : "dimension";
    case MapKind::scores:
      return rows ? "head" : "layer";
    case MapKind::norms:
      break;
  }
  return rows ? "layer" : "dimension";
}

std::optional<double> linked_place(double place, const CellNumbers& from, const CellNumbers& to) {
  if (from == to) return place;
  if (from.empty() || to.empty() || !is_ascending(from) || !is_ascending(to)) return std::nullopt;
  return place_of(number_at(place, from), to);
}

int linked_cell(int i, const CellNumbers& from, const CellNumbers& to) {
  if (i < 0 || i >= static_cast<int>(from.size())) return -1;
  const auto found = std::find(to.begin(), to.end(), from[static_cast<std::size_t>(i)]);
  return found == to.end() ? -1 : static_cast<int>(found - to.begin());
}

}  // namespace sinkscope
