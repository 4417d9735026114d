// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/checkpoint.h"

#include <fmt/format.h>

namespace sinkscope {

std::int64_t TensorInfo::n_elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dim : shape) product *= dim;
  return product;
}

std::int64_t TensorInfo::n_rows() const {
  std::int64_t product = 1;
  for (std::size_t axis = 0; axis + 1 < shape.size(); ++axis) product *= shape[axis];
  return product;
}

std::int64_t TensorInfo::row_size() const { return shape.empty() ? 1 : shape.back(); }

int Checkpoint::find(const std::string& name) const {
  const std::vector<TensorInfo>& all = tensors();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

std::string Checkpoint::refusal(int index) const {
  return fmt::format("{} cannot be decoded here",
                     tensors().at(static_cast<std::size_t>(index)).dtype);
}

}  // namespace sinkscope
