// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/compare/array_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/site_name.h"

namespace sinkscope {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class T>
std::vector<T> read_box(const ComparedRun& side, const std::string& path,
                        const std::vector<std::int64_t>& start,
                        const std::vector<std::int64_t>& count) {
  if constexpr (sizeof(T) == sizeof(float))
    return side.reader->read_f32(side.run, path, start, count);
  else
    return side.reader->read_f64(side.run, path, start, count);
}

// Goes through the elements below one index of the first axis (or all, where it is no layer axis).
template <class T>
class Slab {
 public:
  Slab(const ComparedRun& a, const ComparedRun& b, const std::string& path,
       const std::vector<CommonAxis>& axes, std::int64_t tile_elements)
      : a_(a),
        b_(b),
        path_(path),
        axes_(axes),
        tile_elements_(tile_elements),
        at_(axes.size(), 0) {}

  // `first`: the index along the layer axis; without one 0.
  SiteDifference difference(std::size_t first) {
    out_ = SiteDifference{};
    out_.low = out_.high = kNaN;
    const std::size_t n_fixed = !axes_.empty() && axes_.front().is_layer ? 1 : 0;
    if (n_fixed == 1) at_[0] = first;
    for (std::size_t i = n_fixed; i < axes_.size(); ++i) {
      out_.is_whole &= axes_[i].is_whole;
      if (axes_[i].size() == 0) return out_;
    }
    n_fixed_ = n_fixed;
    rows_ = axes_.size() >= n_fixed + 2 ? axes_.size() - 2 : axes_.size();
    cols_ = axes_.size() >= n_fixed + 1 ? axes_.size() - 1 : axes_.size();
    outer(n_fixed);
    return out_;
  }

 private:
  // All indices of the axes in front of the last two.
  void outer(std::size_t axis) {
    const std::size_t end = std::min(rows_, cols_);
    if (axis >= end) return tiles();
    for (at_[axis] = 0; at_[axis] < axes_[axis].size(); ++at_[axis]) outer(axis + 1);
    at_[axis] = 0;
  }

  // How far indices follow each other on both sides, from `begin` on.
  static std::size_t run_length(const CommonAxis& axis, std::size_t begin, std::size_t limit) {
    std::size_t n = 1;
    while (n < limit && begin + n < axis.size() &&
           axis.a[begin + n] == axis.a[begin] + static_cast<int>(n) &&
           axis.b[begin + n] == axis.b[begin] + static_cast<int>(n))
      ++n;
    return n;
  }

  void tiles() {
    const std::size_t n_rows = rows_ < axes_.size() ? axes_[rows_].size() : 1;
    const std::size_t n_cols = cols_ < axes_.size() ? axes_[cols_].size() : 1;
    const auto limit = static_cast<std::size_t>(tile_elements_);
    for (std::size_t col = 0; col < n_cols;) {
      const std::size_t wide = cols_ < axes_.size() ? run_length(axes_[cols_], col, limit) : 1;
      for (std::size_t row = 0; row < n_rows;) {
        const std::size_t tall =
            rows_ < axes_.size()
                ? run_length(axes_[rows_], row, std::max<std::size_t>(1, limit / wide))
                : 1;
        tile(row, tall, col, wide);
        row += tall;
      }
      col += wide;
    }
  }

  std::vector<T> values(const ComparedRun& side, std::vector<int> CommonAxis::*places,
                        std::size_t tall, std::size_t wide) const {
    std::vector<std::int64_t> start, count(axes_.size(), 1);
    for (std::size_t i = 0; i < axes_.size(); ++i) start.push_back((axes_[i].*places)[at_[i]]);
    if (rows_ < axes_.size()) count[rows_] = static_cast<std::int64_t>(tall);
    if (cols_ < axes_.size()) count[cols_] = static_cast<std::int64_t>(wide);
    return read_box<T>(side, path_, start, count);
  }

  void tile(std::size_t row, std::size_t tall, std::size_t col, std::size_t wide) {
    if (rows_ < axes_.size()) at_[rows_] = row;
    if (cols_ < axes_.size()) at_[cols_] = col;
    const std::vector<T> left = values(a_, &CommonAxis::a, tall, wide),
                         right = values(b_, &CommonAxis::b, tall, wide);
    std::size_t largest = left.size();
    for (std::size_t i = 0; i < left.size(); ++i)
      if (take(static_cast<double>(left[i]), static_cast<double>(right[i]))) largest = i;
    if (largest == left.size()) return;
    out_.place.clear();
    for (std::size_t i = n_fixed_; i < axes_.size(); ++i) {
      const std::size_t inside = i == cols_ ? largest % wide : i == rows_ ? largest / wide : 0;
      out_.place.emplace_back(axes_[i].name, axes_[i].value[at_[i] + inside]);
    }
  }

  // Whether this is the largest difference so far.
  bool take(double a, double b) {
    if (std::isfinite(a)) widen(a);
    if (std::isfinite(b)) widen(b);
    if (!std::isfinite(a) || !std::isfinite(b)) {
      const bool is_same = a == b || (std::isnan(a) && std::isnan(b));
      out_.n_non_finite += !is_same;
      return false;
    }
    const double difference = std::abs(b - a);
    ++out_.n_compared;
    out_.n_unequal += difference != 0;
    out_.sum_squares += difference * difference;
    out_.scaled = std::max(out_.scaled, difference / std::max({1.0, std::abs(a), std::abs(b)}));
    if (!(difference > out_.largest)) return false;
    out_.largest = difference;
    out_.value_a = a;
    out_.value_b = b;
    return true;
  }

  void widen(double value) {
    if (!(value >= out_.low)) out_.low = value;
    if (!(value <= out_.high)) out_.high = value;
  }

  const ComparedRun &a_, &b_;
  const std::string& path_;
  const std::vector<CommonAxis>& axes_;
  std::int64_t tile_elements_;
  std::vector<std::size_t> at_;  // where the tile begins along each axis
  std::size_t n_fixed_ = 0, rows_ = 0, cols_ = 0;
  SiteDifference out_;
};

std::string block_text(int layer) { return fmt::format("blocks.{}", layer); }

// "blocks.3.hook_resid_post", "blocks.3.ln1.hook_out dim_rest/mean", "blocks.3 attention/lse".
std::string site_text(const std::string& path, const std::vector<CommonAxis>& axes,
                      std::size_t index) {
  if (path == "residual/final_norm") return "ln_final.hook_out";
  if (axes.empty() || !axes.front().is_layer) return path;
  const CommonAxis& axis = axes.front();
  const int value = axis.value[index];
  if (axis.name == "site")
    return axis.texts[index] +
           (path == "residual/stream" ? "" : " " + path.substr(path.find('/') + 1));
  if (axis.name == "state") {
    const SiteName site =
        value == 0 ? SiteName{"hook_resid_pre", 0} : SiteName{"hook_resid_post", value - 1};
    return site.text() + " " + path.substr(path.find('/') + 1);
  }
  if (path == "attention/pattern")
    return value < 0 ? "attn.hook_pattern, over layers"
                     : SiteName{"attn.hook_pattern", value}.text();
  if (path.starts_with("taps/") || path.starts_with("stats/")) {
    const std::size_t begin = path.find('/') + 1, end = path.find('/', begin);
    const std::string site = SiteName{path.substr(begin, end - begin), value}.text();
    return path.starts_with("taps/") ? site : site + " " + path.substr(end + 1);
  }
  return value < 0 ? path : block_text(value) + " " + path;
}

int block_of(const CommonAxis& axis, std::size_t index) {
  return axis.name == "state" ? std::max(0, axis.value[index] - 1) : axis.value[index];
}

}  // namespace

double SiteDifference::rms() const {
  return n_compared == 0 ? 0 : std::sqrt(sum_squares / static_cast<double>(n_compared));
}

std::vector<SiteDifference> array_differences(const ComparedRun& a, const ComparedRun& b,
                                              const std::string& path,
                                              const std::vector<CommonAxis>& axes,
                                              std::int64_t tile_elements) {
  if (axes.empty()) return {};
  const bool has_layers = axes.front().is_layer;
  const std::size_t n = has_layers ? axes.front().size() : 1;
  const bool in_floats = a.reader->type(a.run, path) == ElementType::f32 &&
                         b.reader->type(b.run, path) == ElementType::f32;
  Slab<float> floats(a, b, path, axes, tile_elements);
  Slab<double> doubles(a, b, path, axes, tile_elements);
  std::vector<SiteDifference> differences;
  for (std::size_t i = 0; i < n; ++i) {
    SiteDifference found = in_floats ? floats.difference(i) : doubles.difference(i);
    found.dataset = path;
    found.site = site_text(path, axes, i);
    if (has_layers) found.layer = block_of(axes.front(), i);
    differences.push_back(std::move(found));
  }
  return differences;
}

}  // namespace sinkscope
