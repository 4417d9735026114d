// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/number_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sinkscope {
namespace {

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

int characters(const std::string& text) {
  return static_cast<int>(text.size() - static_cast<std::size_t>(std::count_if(
                                            text.begin(), text.end(), continues_character)));
}

}  // namespace

std::string readable(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "infinite" : "-infinite";
  const double size = std::abs(value);
  if (size < 999.95 || size >= 1e15) return fmt::format("{:.4g}", value);
  std::string digits = fmt::format("{:.1f}", value);
  const auto first = static_cast<std::ptrdiff_t>(value < 0 ? 1 : 0);
  for (auto i = static_cast<std::ptrdiff_t>(digits.find('.')) - 3; i > first; i -= 3) {
    digits.insert(static_cast<std::size_t>(i), 1, ',');
  }
  return digits;
}

std::string count_text(std::int64_t n) {
  std::string digits = std::to_string(n);
  for (int at = static_cast<int>(digits.size()) - 3; at > (n < 0 ? 1 : 0); at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

std::string readable_list(const std::vector<int>& values, int at_most) {
  const int n = static_cast<int>(values.size());
  const int shown = n > at_most ? at_most : n;
  std::string text;
  for (int i = 0; i < shown; ++i) {
    if (i > 0) text += i == n - 1 ? " and " : ", ";
    text += std::to_string(values[static_cast<std::size_t>(i)]);
  }
  if (shown < n) text += fmt::format(" and {} more", n - shown);
  return text;
}

std::string quoted(const std::string& text, int at_most) {
  if (text.empty()) return "";
  if (characters(text) <= at_most) return '"' + text + '"';
  std::size_t end = 0;
  for (int n = 0; end < text.size(); ++end) {
    if (!continues_character(text[end]) && n++ == at_most - 1) break;
  }
  return '"' + text.substr(0, end) + "…\"";
}

std::string pad_right(const std::string& text, int width) {
  return text + std::string(static_cast<std::size_t>(std::max(0, width - characters(text))), ' ');
}

std::string pad_left(const std::string& text, int width) {
  return std::string(static_cast<std::size_t>(std::max(0, width - characters(text))), ' ') + text;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string field = "\"";
  for (const char c : text) {
    if (c == '"') field += '"';
    field += c;
  }
  return field + '"';
}

std::string csv_number(double value) {
  return std::isnan(value) ? std::string() : fmt::format("{}", value);
}

}  // namespace sinkscope
