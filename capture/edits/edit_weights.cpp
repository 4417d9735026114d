// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/edits/edit_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capture/checkpoint/safetensors_file.h"
#include "core/error.h"

namespace sinkscope {

EditWeights::EditWeights(const std::string& path, at::Device device)
    : path_(path), device_(device), file_(SafetensorsCheckpoint::open({path})) {}

EditWeights::~EditWeights() = default;

at::Tensor EditWeights::find(const std::string& name,
                             const std::vector<std::int64_t>& shape) const {
  const int index = file_->find(name);
  if (index < 0) return {};
  const std::vector<std::int64_t>& found = file_->tensors()[static_cast<std::size_t>(index)].shape;
  bool fits = found.size() == shape.size();
  for (std::size_t i = 0; fits && i < shape.size(); ++i)
    fits = shape[i] < 0 || shape[i] == found[i];
  if (!fits)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: {}: expected the shape [{}], found [{}]", path_, name,
                            fmt::join(shape, ", "), fmt::join(found, ", ")));
  at::Tensor host = at::empty(found, at::kFloat);
  const std::int64_t rows = found.size() == 1 ? 1 : found[0];
  file_->read_rows(index, 0, rows, host.data_ptr<float>());
  return host.to(device_);
}

at::Tensor EditWeights::read(const std::string& name,
                             const std::vector<std::int64_t>& shape) const {
  at::Tensor tensor = find(name, shape);
  if (!tensor.defined())
    throw Error(ErrorKind::not_found, fmt::format("{}: no tensor {}", path_, name));
  return tensor;
}

std::string norm_name(const char* role, int layer) {
  return layer < 0 ? std::string(role) : fmt::format("blocks.{}.{}", layer, role);
}

}  // namespace sinkscope
