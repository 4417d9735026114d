// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/h5/box.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"

namespace sinkscope::h5 {

std::int64_t n_elements(const Dims& dims, const std::string& where) {
  constexpr std::int64_t kMost = std::int64_t{1} << 56;  // times any element's size it is a number
  std::int64_t n = 1;
  for (const std::int64_t dim : dims) {
    if (dim < 0 || (dim > 0 && n > kMost / dim)) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("{}: expected a shape that fits in memory, found [{}]", where,
                              fmt::join(dims, ", ")));
    }
    n *= dim;
  }
  return n;
}

void check_box(const Dims& dims, const Dims& start, const Dims& count, const std::string& where) {
  bool is_inside = start.size() == dims.size() && count.size() == dims.size();
  for (std::size_t i = 0; is_inside && i < dims.size(); ++i) {
    is_inside =
        start[i] >= 0 && count[i] >= 0 && start[i] <= dims[i] && count[i] <= dims[i] - start[i];
  }
  if (is_inside) return;
  throw Error(ErrorKind::invalid_argument,
              fmt::format("{}: box [{}] + [{}] is outside the shape [{}]", where,
                          fmt::join(start, ", "), fmt::join(count, ", "), fmt::join(dims, ", ")));
}

}  // namespace sinkscope::h5
