// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sinkscope {

namespace {

// 1, 2 or 5 times a power of ten, not below `least`.
double nice_step(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

std::string grouped(std::string digits) {
  const std::size_t sign = digits.starts_with('-') ? 1 : 0;
  std::size_t end = std::min(digits.find('.'), digits.size());
  while (end > sign + 3) digits.insert(end -= 3, ",");
  return digits;
}

std::vector<Tick> ticks_at(const std::vector<double>& values, const ValueRange& range,
                           double step) {
  std::vector<Tick> ticks;
  for (const double value : values)
    ticks.push_back({std::clamp(normalized(value, range), 0.0, 1.0),
                     step > 0 ? tick_text(value, step) : tick_text(value), false});
  return ticks;
}

std::vector<Tick> linear_ticks(const ValueRange& range, int at_most) {
  const std::vector<double> values = nice_values(range.lo, range.hi, at_most);
  return ticks_at(values, range, values.size() > 1 ? values[1] - values[0] : 0);
}

// Powers of ten within [lo, hi], every `stride`-th of them.
std::vector<double> powers(double lo, double hi, int at_most) {
  const int first = static_cast<int>(std::ceil(std::log10(lo) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log10(hi) + 1e-9));
  std::vector<double> values;
  if (first > last || at_most < 1) return values;
  const int stride = std::max(1, (last - first + at_most) / at_most);
  for (int e = first; e <= last; ++e)
    if (e % stride == 0) values.push_back(std::pow(10.0, e));
  return values;
}

std::vector<Tick> log_ticks(const ValueRange& range, int at_most) {
  std::vector<double> values = powers(range.lo, range.hi, at_most);
  if (values.size() >= 3 || range.hi / range.lo > 1000) return ticks_at(values, range, 0);
  // Less than two decades: 2 and 5 times the powers as well, or plain numbers within one.
  std::vector<double> fine;
  for (const double power : powers(range.lo / 10, range.hi, 10))
    for (const double factor : {1.0, 2.0, 5.0})
      if (factor * power >= range.lo * (1 - 1e-9) && factor * power <= range.hi * (1 + 1e-9))
        fine.push_back(factor * power);
  if (fine.size() < 2) return linear_ticks(range, at_most);
  return ticks_at(static_cast<int>(fine.size()) <= at_most ? fine : values, range, 0);
}

std::vector<Tick> symlog_ticks(const ValueRange& range, int at_most) {
  const double threshold = range.threshold;
  if (std::max(std::abs(range.lo), std::abs(range.hi)) <= threshold)
    return linear_ticks(range, at_most);
  std::vector<double> values;
  const int a_side = range.lo < 0 && range.hi > 0 ? std::max(1, (at_most - 1) / 2) : at_most - 1;
  if (-range.lo >= threshold)
    for (const double power : powers(std::max(threshold, -range.hi), -range.lo, a_side))
      values.push_back(-power);
  std::reverse(values.begin(), values.end());
  if (range.lo <= 0 && range.hi >= 0) values.push_back(0);
  if (range.hi >= threshold)
    for (const double power : powers(std::max(threshold, range.lo), range.hi, a_side))
      values.push_back(power);
  return ticks_at(values, range, 0);
}

}  // namespace

std::vector<double> nice_values(double lo, double hi, int at_most) {
  if (!(lo < hi) || at_most < 1) return {};
  // Halved, so that the extent of the largest possible range is finite.
  const double extent = hi / 2 - lo / 2;
  // Where powers of ten have no precision left, the ends have to do.
  if (extent < 1e-300) return at_most >= 2 ? std::vector<double>{lo, hi} : std::vector<double>{lo};
  std::vector<double> values;
  for (double step = nice_step(extent / at_most * 2); std::isfinite(step);
       step = nice_step(step * 1.01)) {
    const double first = std::ceil(lo / step - 1e-9), last = std::floor(hi / step + 1e-9);
    if (last - first + 1 > at_most) continue;
    // Below the resolution of a double near lo no two multiples differ.
    for (double i = first; i <= last && values.size() < static_cast<std::size_t>(at_most); ++i)
      values.push_back(i == 0 ? 0.0 : i * step);
    return values;
  }
  return values;
}

std::vector<Tick> value_ticks(const ValueRange& range, int at_most) {
  switch (range.scale) {
    case Scale::log:
      return log_ticks(range, at_most);
    case Scale::symlog:
      return symlog_ticks(range, at_most);
    case Scale::linear:
      break;
  }
  return linear_ticks(range, at_most);
}

std::vector<int> tick_cells(int first, int last, double step) {
  const int stride = step <= 1 ? 1 : static_cast<int>(std::min(nice_step(step), 1e9));
  std::vector<int> cells;
  for (std::int64_t c = (std::int64_t{first} + stride - 1) / stride * stride; c <= last;
       c += stride)
    cells.push_back(static_cast<int>(c));
  return cells;
}

std::vector<int> tick_cells(int first, int last, double step,
                            const std::vector<int>& first_of_all) {
  std::vector<int> cells;
  for (const int cell : first_of_all)
    if (first <= cell && cell <= last) cells.push_back(cell);
  std::sort(cells.begin(), cells.end());
  const std::vector<int> chosen = cells;
  for (const int cell : tick_cells(first, last, step)) {
    const auto near = std::lower_bound(chosen.begin(), chosen.end(), cell);
    const bool free_right = near == chosen.end() || *near - cell >= step;
    const bool free_left = near == chosen.begin() || cell - *std::prev(near) >= step;
    if (free_right && free_left) cells.push_back(cell);
  }
  std::sort(cells.begin(), cells.end());
  return cells;
}

std::string tick_text(double value, double step) {
  const double size = std::max(std::abs(value), step);
  if (size >= 1e7 || (size > 0 && size < 1e-4)) return fmt::format("{:.4g}", value);
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 12);
  std::string text = grouped(fmt::format("{:.{}f}", value, decimals));
  return text == "-0" ? "0" : text;
}

std::string tick_text(double value) {
  const double size = std::abs(value);
  if (value == 0) return "0";
  if (size >= 1e7 || size < 1e-3) return fmt::format("{:.3g}", value);
  return grouped(fmt::format("{:.6g}", value));
}

}  // namespace sinkscope
