// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/capture_copy.h"

#include <algorithm>
#include <vector>

namespace sinkscope {
namespace {

using Dims = std::vector<std::int64_t>;
constexpr std::int64_t kBytes = std::int64_t{16} << 20;

// What the writer does not know from its layout. Lists of blocks it does know are copied as well.
bool is_measured(const DatasetSpec& spec) {
  if (spec.type == ElementType::text || spec.n_bytes() == 0) return false;
  for (const char* known : {"input/", "model/", "norm/", "provenance/"})
    if (spec.path.starts_with(known)) return false;
  return true;
}

class RunCopy {
 public:
  RunCopy(const CaptureReader& from, const std::string& run, CaptureWriter& to, int to_run,
          const std::stop_token& stop)
      : from_(from), run_(run), to_(to), to_run_(to_run), stop_(stop) {}

  bool copy(const DatasetSpec& spec) {
    if (spec.path == "attention/pattern") return copy_pattern(spec);
    if (spec.type != ElementType::i32) return copy_rows(spec);
    const std::vector<int> values = from_.read_i32(run_, spec.path);
    to_.write(to_run_, spec.path, Dims(spec.dims.size(), 0), spec.dims, values.data());
    return !stop_.stop_requested();
  }

 private:
  bool copy_rows(const DatasetSpec& spec) {
    if (spec.dims.empty()) return true;  // there is no such number among what is measured
    const std::int64_t n = spec.dims.front(), row = spec.n_bytes() / n;
    const std::int64_t step = std::clamp<std::int64_t>(kBytes / row, 1, n);
    Dims start(spec.dims.size(), 0), count = spec.dims;
    for (std::int64_t begin = 0; begin < n; begin += step) {
      if (stop_.stop_requested()) return false;
      start.front() = begin;
      count.front() = std::min(step, n - begin);
      if (spec.type == ElementType::f64)
        to_.write(to_run_, spec.path, start, count,
                  from_.read_f64(run_, spec.path, start, count).data());
      else
        to_.write(to_run_, spec.path, start, count,
                  from_.read_f32(run_, spec.path, start, count).data());
    }
    return true;
  }

  // A row of chunks at a time; chunks in which no query sees a key stay absent.
  bool copy_pattern(const DatasetSpec& spec) {
    const std::int64_t R = spec.dims[2], T = spec.dims[3];
    const std::int64_t step = std::clamp<std::int64_t>(spec.chunk.at(2), 1, R);
    for (std::int64_t slot = 0; slot < spec.dims[0]; ++slot)
      for (std::int64_t head = 0; head < spec.dims[1]; ++head)
        for (std::int64_t row = 0; row < R; row += step) {
          if (stop_.stop_requested()) return false;
          const std::int64_t n = std::min(step, R - row);
          const std::vector<float> values =
              from_.read_f32(run_, spec.path, {slot, head, row, 0}, {1, 1, n, T});
          std::int64_t begin = T, end = 0;
          for (std::int64_t i = 0; i < n * T; ++i) {
            if (values[static_cast<std::size_t>(i)] == 0) continue;
            begin = std::min(begin, i % T);
            end = std::max(end, i % T + 1);
          }
          if (begin < end)
            to_.write_pattern(to_run_, static_cast<int>(slot), static_cast<int>(head), 1,
                              static_cast<int>(row), static_cast<int>(n), static_cast<int>(begin),
                              static_cast<int>(end), values.data());
        }
    return true;
  }

  const CaptureReader& from_;
  const std::string& run_;
  CaptureWriter& to_;
  int to_run_;
  const std::stop_token& stop_;
};

}  // namespace

bool holds_run(const CaptureReader& from, const std::string& run, const CaptureLayout& layout,
               int to_run) {
  const std::vector<DatasetSpec> specs = datasets_of(layout, to_run);
  return std::all_of(specs.begin(), specs.end(), [&](const DatasetSpec& spec) {
    return !is_measured(spec) ||
           (from.has(run, spec.path) && from.is_dataset(run, spec.path) &&
            from.type(run, spec.path) == spec.type && from.dims(run, spec.path) == spec.dims);
  });
}

bool copy_run(const CaptureReader& from, const std::string& run, CaptureWriter& to, int to_run,
              const std::stop_token& stop) {
  RunCopy copy(from, run, to, to_run, stop);
  for (const DatasetSpec& spec : datasets_of(to.layout(), to_run))
    if (is_measured(spec) && !copy.copy(spec)) return false;
  return true;
}

}  // namespace sinkscope
