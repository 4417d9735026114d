// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/capture_values.h"

#include <fmt/format.h>

#include <limits>
#include <set>

#include "core/capture_schema.h"
#include "core/error.h"

namespace sinkscope {
namespace {

enum class Into { positions, layers, heads, vocabulary };

// `least`: −1 where "after the last block" is an index too. `reduced`: the one value −1 stands for
// all of the axis. `is_axis`: each value once.
struct ListRule {
  const char* path;
  Into into;
  int least;
  bool reduced, is_axis;
};
constexpr ListRule kLists[] = {
    {"input/token_ids", Into::vocabulary, 0, false, false},
    {"input/bos_positions", Into::positions, 0, false, true},
    {"attention/layers", Into::layers, 0, false, true},
    {"attention/pattern_layers", Into::layers, 0, true, true},
    {"attention/pattern_heads", Into::heads, 0, true, true},
    {"attention/pattern_rows", Into::positions, 0, false, true},
    {"norm/*/layers", Into::layers, -1, false, true},
    {"stats/*/layers", Into::layers, -1, false, true},
    {"taps/*/layers", Into::layers, -1, false, true},
};

constexpr const char* kCounts[] = {
    "attention/visible",
    "stats/*/dim_first/count",
    "stats/*/dim_rest/count",
    "stats/*/dim_first/argmax_count",
    "stats/*/dim_rest/argmax_count",
    "stats/*/token/n_nan",
    "stats/*/token/n_inf",
};

int end_of(Into into, const RunSizes& sizes) {
  switch (into) {
    case Into::layers:
      return sizes.n_layers;
    case Into::heads:
      return sizes.n_heads;
    case Into::vocabulary:
      return sizes.vocab_size > 0 ? sizes.vocab_size : std::numeric_limits<int>::max();
    case Into::positions:
      break;
  }
  return sizes.seq_len;
}

// −1 marks what was never written: rows of an unfinished recording, sites that an edit took away.
template <class T>
void check_counts_of(const std::string& path, const std::vector<T>& values,
                     const std::string& where) {
  for (const char* counts : kCounts) {
    if (!matches_pattern(counts, path)) continue;
    for (const T value : values)
      if (value < -1)
        throw Error(ErrorKind::corrupt, fmt::format("{}: expected counts, found {}", where, value));
    return;
  }
}

[[noreturn]] void corrupt(const std::string& message) { throw Error(ErrorKind::corrupt, message); }

}  // namespace

void check_list(const std::string& path, const std::vector<int>& values, const RunSizes& sizes,
                const std::string& where) {
  for (const ListRule& rule : kLists) {
    if (!matches_pattern(rule.path, path)) continue;
    if (rule.reduced && values == std::vector{-1}) return;
    const int end = end_of(rule.into, sizes);
    std::set<int> seen;
    for (const int value : values) {
      if (value < rule.least || value >= end)
        corrupt(fmt::format("{}: expected values from {} to {}, found {}", where, rule.least,
                            end - 1, value));
      if (rule.is_axis && !seen.insert(value).second)
        corrupt(fmt::format("{}: expected every value once, found {} twice", where, value));
    }
    return;
  }
  check_counts_of(path, values, where);
}

void check_names(const std::vector<std::string>& names, const std::string& where) {
  std::set<std::string> seen;
  for (const std::string& name : names)
    if (!seen.insert(name).second)
      corrupt(fmt::format("{}: expected every name once, found '{}' twice", where, name));
}

void check_counts(const std::string& path, const std::vector<double>& values,
                  const std::string& where) {
  check_counts_of(path, values, where);
}

}  // namespace sinkscope
