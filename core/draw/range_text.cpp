// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "core/draw/value_range.h"
#include "core/error.h"

namespace sinkscope {

namespace {

double parse_bound(std::string_view text, std::string_view whole) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    throw Error(ErrorKind::invalid_argument,
                fmt::format("range \"{}\" is none of minmax, percentile, meansd, LO,HI", whole));
  return value;
}

}  // namespace

RangeRequest parse_range_request(std::string_view range, std::string_view scale) {
  RangeRequest request;
  request.scale = parse_scale(scale);
  if (range == "percentile") {
    request.mode = RangeMode::percentile;
  } else if (range == "minmax") {
    request.mode = RangeMode::min_max;
  } else if (range == "meansd") {
    request.mode = RangeMode::mean_sd;
  } else {
    const std::size_t comma = range.find(',');
    request.mode = RangeMode::fixed;
    request.lo = parse_bound(range.substr(0, comma), range);
    request.hi = parse_bound(comma == std::string_view::npos ? "" : range.substr(comma + 1), range);
    if (!(request.lo < request.hi))
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("range \"{}\": {} is not below {}", range, request.lo, request.hi));
    if (request.scale == Scale::log && request.lo <= 0)
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("range \"{}\": a log scale starts above 0", range));
  }
  return request;
}

std::string range_text(const RangeRequest& request) {
  switch (request.mode) {
    case RangeMode::min_max:
      return "minmax";
    case RangeMode::percentile:
      return "percentile";
    case RangeMode::mean_sd:
      return "meansd";
    case RangeMode::fixed:
      break;
  }
  return fmt::format("{},{}", request.lo, request.hi);
}

Scale parse_scale(std::string_view text) {
  for (const Scale scale : {Scale::linear, Scale::log, Scale::symlog})
    if (scale_text(scale) == text) return scale;
  throw Error(ErrorKind::invalid_argument,
              fmt::format("scale \"{}\" is none of linear, log, symlog", text));
}

std::string_view scale_text(Scale scale) {
  switch (scale) {
    case Scale::log:
      return "log";
    case Scale::symlog:
      return "symlog";
    case Scale::linear:
      break;
  }
  return "linear";
}

std::string_view range_mode_label(RangeMode mode) {
  switch (mode) {
    case RangeMode::min_max:
      return "min–max";
    case RangeMode::percentile:
      return "percentile 1–99";
    case RangeMode::mean_sd:
      return "mean ± 3 sd";
    case RangeMode::fixed:
      break;
  }
  return "fixed";
}

}  // namespace sinkscope
