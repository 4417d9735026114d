// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include "core/draw/pyramid.h"
#include "core/error.h"

namespace sinkscope {

std::string_view reduction_text(Reduction reduction) {
  switch (reduction) {
    case Reduction::min:
      return "min";
    case Reduction::max:
      return "max";
    case Reduction::mean:
      return "mean";
    case Reduction::from_one:
      return "from_one";
    case Reduction::max_abs:
      break;
  }
  return "max_abs";
}

Reduction parse_reduction(std::string_view text) {
  for (const Reduction reduction :
       {Reduction::max_abs, Reduction::min, Reduction::max, Reduction::mean, Reduction::from_one})
    if (reduction_text(reduction) == text) return reduction;
  throw Error(ErrorKind::invalid_argument,
              fmt::format("reduction \"{}\" is none of max_abs, min, max, mean, from_one", text));
}

std::string_view reduction_label(Reduction reduction) {
  switch (reduction) {
    case Reduction::min:
      return "min of each pixel";
    case Reduction::max:
      return "max of each pixel";
    case Reduction::mean:
      return "mean of each pixel";
    case Reduction::from_one:
      return "value farthest from 1 of each pixel";
    case Reduction::max_abs:
      break;
  }
  return "max |x| of each pixel";
}

}  // namespace sinkscope
