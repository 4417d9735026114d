// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/format_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/number_text.h"

namespace sinkscope {

std::string format_bytes(std::int64_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  int unit = 0;
  // 1023.95 would print as 1024.0.
  while (value >= 1023.95 && unit < 5) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string format_count(std::int64_t count) { return count_text(count); }

std::string format_duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::clamp(seconds, 0.0, 1e9)));
  const std::int64_t hours = whole / 3600, minutes = whole / 60 % 60, rest = whole % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, rest);
  return fmt::format("{}:{:02}", minutes, rest);
}

std::string format_shape(const std::vector<std::int64_t>& dims) {
  return dims.empty() ? "scalar" : fmt::format("[{}]", fmt::join(dims, ", "));
}

}  // namespace sinkscope
