// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/position_filter.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "core/error.h"

namespace sinkscope {
namespace {

std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || stop != end || value < 0) return std::nullopt;
  return value;
}

}  // namespace

PositionFilter PositionFilter::parse(const std::string& text) {
  if (text == "all") return {.kind = Kind::all};
  if (text == "first") return {.kind = Kind::first};
  if (text == "rest") return {.kind = Kind::rest};
  const std::string_view view = text;
  if (view.starts_with("ids:")) {
    const std::string_view range = view.substr(4);
    const auto dash = range.find('-');
    const auto lo = whole_number(range.substr(0, dash));
    const auto hi = dash == std::string_view::npos ? lo : whole_number(range.substr(dash + 1));
    if (lo && hi && *lo <= *hi) return {.kind = Kind::ids, .id_lo = *lo, .id_hi = *hi};
  }
  throw Error(ErrorKind::invalid_argument,
              fmt::format("positions: expected all, first, rest or ids:LO-HI, found '{}'", text));
}

std::string PositionFilter::text() const {
  switch (kind) {
    case Kind::all:
      return "all";
    case Kind::first:
      return "first";
    case Kind::rest:
      return "rest";
    case Kind::ids:
      return fmt::format("ids:{}-{}", id_lo, id_hi);
  }
  return "";
}

bool PositionFilter::matches(int position, int token_id) const {
  switch (kind) {
    case Kind::all:
      return true;
    case Kind::first:
      return position == 0;
    case Kind::rest:
      return position != 0;
    case Kind::ids:
      return id_lo <= token_id && token_id <= id_hi;
  }
  return false;
}

}  // namespace sinkscope
