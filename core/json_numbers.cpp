// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/json_numbers.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace sinkscope {

using Json = nlohmann::ordered_json;

Json JsonNumbers::number(double value) {
  if (std::isfinite(value)) return value;
  ++n_non_finite_;
  return nullptr;
}

Json JsonNumbers::list(const std::vector<double>& values) {
  Json out = Json::array();
  for (const double v : values) out.push_back(number(v));
  return out;
}

Json JsonNumbers::matrix(const MatrixD& values) {
  Json out = Json::array();
  for (Eigen::Index i = 0; i < values.rows(); ++i) {
    Json row = Json::array();
    for (Eigen::Index j = 0; j < values.cols(); ++j) row.push_back(number(values(i, j)));
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace sinkscope
