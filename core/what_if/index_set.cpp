// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/what_if/index_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string_view>

#include "core/error.h"

namespace sinkscope {
namespace {

// More positions or dimensions than anything has that fits this program; a range of a stranger's
// must not cost seconds.
constexpr int kMaxIndex = 1 << 20;

[[noreturn]] void refuse(const std::string& what, const std::string& text) {
  throw Error(
      ErrorKind::invalid_argument,
      fmt::format("{}: expected \"all\", or indices and ranges like \"0-3,7\", each at most "
                  "{}, found '{}'",
                  what, kMaxIndex, text));
}

// The number in front of `text`, which is cut off; −1 when there is none.
int take_number(std::string_view& text) {
  int value = -1;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || value < 0 || value > kMaxIndex) return -1;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace

IndexSet::IndexSet(std::vector<int> members) : is_all_(false), members_(std::move(members)) {
  if (!std::is_sorted(members_.begin(), members_.end()))
    std::sort(members_.begin(), members_.end());
  members_.erase(std::unique(members_.begin(), members_.end()), members_.end());
  if (!members_.empty() && members_.front() < 0)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("expected indices from 0 on, found {}", members_.front()));
}

IndexSet IndexSet::parse(const std::string& what, const std::string& text) {
  if (text == "all") return {};
  std::vector<int> members;
  std::string_view rest = text;
  while (true) {
    const int low = take_number(rest);
    int high = low;
    if (rest.starts_with('-')) {
      rest.remove_prefix(1);
      high = take_number(rest);
    }
    if (low < 0 || high < low) refuse(what, text);
    if (members.size() + static_cast<std::size_t>(high - low) > kMaxIndex) refuse(what, text);
    for (int i = low; i <= high; ++i) members.push_back(i);
    if (rest.empty()) return IndexSet(std::move(members));
    if (!rest.starts_with(',')) refuse(what, text);
    rest.remove_prefix(1);
  }
}

bool IndexSet::contains(int index) const {
  return is_all_ || std::binary_search(members_.begin(), members_.end(), index);
}

std::vector<int> IndexSet::within(int n, const std::string& what) const {
  if (!is_all_) {
    if (!members_.empty() && members_.back() >= n)
      throw Error(
          ErrorKind::invalid_argument,
          fmt::format("{}: {} does not exist, expected 0 to {}", what, members_.back(), n - 1));
    return members_;
  }
  std::vector<int> all(static_cast<std::size_t>(std::max(0, n)));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::string IndexSet::text() const {
  if (is_all_) return "all";
  std::string text;
  for (std::size_t i = 0; i < members_.size();) {
    std::size_t last = i;
    while (last + 1 < members_.size() && members_[last + 1] == members_[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == i ? fmt::format("{}", members_[i])
                      : fmt::format("{}-{}", members_[i], members_[last]);
    i = last + 1;
  }
  return text;
}

TokenSet TokenSet::parse(const std::string& text) {
  const bool is_filter =
      text == "all" || text == "first" || text == "rest" || text.starts_with("ids:");
  if (is_filter) return {PositionFilter::parse(text)};
  return TokenSet(IndexSet::parse("tokens", text));
}

bool TokenSet::matches(int position, int token_id) const {
  return is_listed_ ? positions_.contains(position) : filter_.matches(position, token_id);
}

std::vector<int> TokenSet::of(const std::vector<int>& token_ids) const {
  std::vector<int> positions;
  const auto n = static_cast<int>(token_ids.size());
  for (int t = 0; t < n; ++t)
    if (matches(t, token_ids[static_cast<std::size_t>(t)])) positions.push_back(t);
  return positions;
}

std::string TokenSet::text() const { return is_listed_ ? positions_.text() : filter_.text(); }

}  // namespace sinkscope
