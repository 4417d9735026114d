// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace sinkscope {

// Finds the texts of a set that another text begins with. The texts themselves are the caller's and
// must outlive the index.
class PrefixIndex {
 public:
  struct Entry {
    std::string_view text;
    int id;
  };

  PrefixIndex() = default;
  // Of equal texts the first counts; empty ones are left out.
  explicit PrefixIndex(std::vector<Entry> entries) : entries_(std::move(entries)) {
    std::erase_if(entries_, [](const Entry& e) { return e.text.empty(); });
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const Entry& a, const Entry& b) { return a.text < b.text; });
    entries_.erase(std::unique(entries_.begin(), entries_.end(),
                               [](const Entry& a, const Entry& b) { return a.text == b.text; }),
                   entries_.end());
  }

  // Calls visit(length, id) for every one that `text` begins with, shortest first.
  template <class Visit>
  void prefixes_of(std::string_view text, const Visit& visit) const {
    // Those that agree in the first n bytes are neighbors: the range shrinks with every byte.
    auto begin = entries_.begin(), end = entries_.end();
    for (std::size_t n = 0; n < text.size() && begin != end; ++n) {
      const auto byte = [n](const Entry& e) { return static_cast<unsigned char>(e.text[n]); };
      const auto wanted = static_cast<unsigned char>(text[n]);
      begin = std::partition_point(begin, end, [&](const Entry& e) { return byte(e) < wanted; });
      end = std::partition_point(begin, end, [&](const Entry& e) { return byte(e) == wanted; });
      if (begin == end || begin->text.size() != n + 1) continue;
      visit(static_cast<std::int64_t>(n) + 1, begin->id);
      ++begin;
    }
  }

 private:
  std::vector<Entry> entries_;
};

}  // namespace sinkscope
