// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/position_filter.h"

namespace sinkscope {

// Layers, heads, dimensions: all of them, or these. As text "all" or ranges "0-3,7".
class IndexSet {
 public:
  IndexSet() = default;                         // all
  explicit IndexSet(std::vector<int> members);  // sorted and made unique; none may be negative
  // `what` names it in messages ("layers"). Throws Error{invalid_argument}.
  static IndexSet parse(const std::string& what, const std::string& text);

  bool is_all() const { return is_all_; }
  bool contains(int index) const;
  const std::vector<int>& members() const { return members_; }  // empty for all
  // The members below n; all: 0 … n−1. Throws Error{invalid_argument} for a member ≥ n, naming it
  // and `what`: an edit that cannot take effect is an error.
  std::vector<int> within(int n, const std::string& what) const;
  std::string text() const;
  bool operator==(const IndexSet&) const = default;

 private:
  bool is_all_ = true;
  std::vector<int> members_;
};

// Positions of a run: by a filter (all, first, rest, ids:LO-HI) or listed.
class TokenSet {
 public:
  TokenSet() = default;                                 // all
  TokenSet(PositionFilter filter) : filter_(filter) {}  // NOLINT: a filter is a set of tokens
  explicit TokenSet(IndexSet positions)
      : is_listed_(!positions.is_all()), positions_(std::move(positions)) {}
  static TokenSet parse(const std::string& text);

  bool matches(int position, int token_id) const;
  // The last listed position; -1 where a filter chooses.
  int last_listed() const { return is_listed_ ? positions_.members().back() : -1; }
  // Ascending positions of a run with these token ids.
  std::vector<int> of(const std::vector<int>& token_ids) const;
  std::string text() const;
  bool operator==(const TokenSet&) const = default;

 private:
  PositionFilter filter_;
  bool is_listed_ = false;
  IndexSet positions_;
};

}  // namespace sinkscope
