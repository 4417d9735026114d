// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "capture/tokenizer/unicode.h"

namespace sinkscope {

// A token under construction: a stretch of the text and its id so far (-1: no token yet).
struct Symbol {
  Span span;
  int id = -1;
  int prev = -1, next = -1;  // neighbors in the list, -1 at its ends
  bool is_alive = true;
};

// What two neighbors would become. Lower cost merges first. id -1: they do not merge.
struct MergedPair {
  double cost = 0;
  int id = -1;
};

// Links a row of symbols with their neighbors.
inline void link(std::vector<Symbol>& symbols) {
  const int n = static_cast<int>(symbols.size());
  for (int i = 0; i < n; ++i) {
    symbols[static_cast<std::size_t>(i)].prev = i - 1;
    symbols[static_cast<std::size_t>(i)].next = i + 1 < n ? i + 1 : -1;
  }
}

// Repeatedly merges the neighbors of lowest cost, leftmost first among equals, until no pair
// merges: O(n log n). `pair(left, right)` returns a MergedPair. Survivors are those alive, in
// order.
template <class Pair>
void merge_symbols(std::vector<Symbol>& symbols, const Pair& pair) {
  struct Candidate {
    double cost;
    int left, right, id;
    std::int64_t middle, end;  // left's and right's ends when it was made: else it is stale
    bool operator>(const Candidate& other) const {
      return cost != other.cost ? cost > other.cost : left > other.left;
    }
  };
  std::vector<Candidate> heap;  // the best in front
  const auto symbol = [&](int i) -> Symbol& { return symbols[static_cast<std::size_t>(i)]; };
  // Appends to `heap`; true when there was something to append.
  const auto propose = [&](int left, int right) {
    if (left < 0 || right < 0) return false;
    const MergedPair merged = pair(symbol(left), symbol(right));
    if (merged.id < 0) return false;
    heap.push_back(
        {merged.cost, left, right, merged.id, symbol(left).span.end, symbol(right).span.end});
    return true;
  };
  for (int i = 0; i < static_cast<int>(symbols.size()); ++i) propose(i, symbol(i).next);
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const Candidate best = heap.back();
    heap.pop_back();
    Symbol& left = symbol(best.left);
    Symbol& right = symbol(best.right);
    if (!left.is_alive || !right.is_alive || left.span.end != best.middle ||
        right.span.end != best.end)
      continue;
    left.span.end = right.span.end;
    left.id = best.id;
    left.next = right.next;
    right.is_alive = false;
    if (left.next >= 0) symbol(left.next).prev = best.left;
    if (propose(left.prev, best.left)) std::push_heap(heap.begin(), heap.end(), std::greater<>());
    if (propose(best.left, left.next)) std::push_heap(heap.begin(), heap.end(), std::greater<>());
  }
}

}  // namespace sinkscope
