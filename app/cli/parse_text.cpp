// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/parse_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "core/error.h"
#include "core/what_if/index_set.h"

namespace sinkscope {
namespace {

constexpr int kMaxInt = std::numeric_limits<int>::max();

[[noreturn]] void refuse(const std::string& flag, const std::string& expected,
                         const std::string& found) {
  // A pasted list of ids can be long: the message shows its head.
  const std::string shown = found.size() > 60 ? found.substr(0, 57) + "..." : found;
  throw Error(ErrorKind::invalid_argument,
              fmt::format("{}: expected {}, found '{}'", flag, expected, shown));
}

// Digits only, so that "+1", " 1" and "0x1" are refused.
bool read_digits(const std::string& text, std::int64_t& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && !text.empty();
}

bool is_separator(char c) {
  return c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

}  // namespace

std::int64_t parse_integer(const std::string& flag, const std::string& text, std::int64_t low,
                           std::int64_t high) {
  std::int64_t value = 0;
  if (!read_digits(text, value) || value < low || value > high) {
    const bool is_open = high == std::numeric_limits<std::int64_t>::max() || high == kMaxInt;
    refuse(flag,
           is_open ? fmt::format("a whole number from {}", low)
                   : fmt::format("a whole number from {} to {}", low, high),
           text);
  }
  return value;
}

double parse_number(const std::string& flag, const std::string& text, double low, double high) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value) || value < low || value > high)
    refuse(flag, fmt::format("a number from {} to {}", low, high), text);
  return value;
}

std::int64_t parse_bytes(const std::string& flag, const std::string& text) {
  struct Unit {
    const char* name;
    double bytes;
  };
  static constexpr Unit kUnits[] = {{"", 1},
                                    {"B", 1},
                                    {"K", 1024.0},
                                    {"KiB", 1024.0},
                                    {"kB", 1e3},
                                    {"KB", 1e3},
                                    {"M", 1048576.0},
                                    {"MiB", 1048576.0},
                                    {"MB", 1e6},
                                    {"G", 1073741824.0},
                                    {"GiB", 1073741824.0},
                                    {"GB", 1e9},
                                    {"T", 0x1p40},
                                    {"TiB", 0x1p40},
                                    {"TB", 1e12}};
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  std::string unit(stop, end);
  unit.erase(0, unit.find_first_not_of(' '));
  const auto* known = std::find_if(std::begin(kUnits), std::end(kUnits),
                                   [&](const Unit& u) { return u.name == unit; });
  if (error != std::errc() || known == std::end(kUnits) || !(value >= 0))
    refuse(flag, "a size like 4GiB, 512MiB or a number of bytes", text);
  const double bytes = value * known->bytes;
  if (bytes < 1 || bytes > 0x1p60) refuse(flag, "a size from 1 byte to 1 EiB", text);
  return static_cast<std::int64_t>(bytes);
}

std::vector<int> parse_ranges(const std::string& flag, const std::string& text) {
  return IndexSet::parse(flag, text).members();
}

std::string format_ranges(const std::vector<int>& values) {
  return values.empty() ? "all" : IndexSet(values).text();
}

std::vector<int> parse_ids(const std::string& flag, const std::string& text) {
  std::vector<int> ids;
  std::size_t at = 0;
  while (at < text.size()) {
    if (is_separator(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && !is_separator(text[end])) ++end;
    const std::string word = text.substr(at, end - at);
    std::int64_t id = 0;
    if (!read_digits(word, id) || id < 0 || id > kMaxInt)
      refuse(fmt::format("{}, position {}", flag, ids.size()),
             "token ids separated by commas or white space", word);
    ids.push_back(static_cast<int>(id));
    at = end;
  }
  if (ids.empty()) refuse(flag, "at least one token id", text);
  return ids;
}

std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

RunPath parse_run_path(const std::string& text) {
  const auto mark = text.rfind("::");
  std::error_code ignored;
  if (mark == std::string::npos || std::filesystem::exists(text, ignored)) return {text, ""};
  return {text.substr(0, mark), text.substr(mark + 2)};
}

}  // namespace sinkscope
