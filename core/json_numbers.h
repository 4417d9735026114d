// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "core/tensor.h"

namespace sinkscope {

// JSON has no NaN and no infinity: both become null here, and are counted, so that a reader of the
// file knows that something is missing on purpose.
class JsonNumbers {
 public:
  nlohmann::ordered_json number(double value);
  nlohmann::ordered_json list(const std::vector<double>& values);
  nlohmann::ordered_json matrix(const MatrixD& values);  // one list a row

  std::int64_t n_non_finite() const { return n_non_finite_; }

 private:
  std::int64_t n_non_finite_ = 0;
};

}  // namespace sinkscope
