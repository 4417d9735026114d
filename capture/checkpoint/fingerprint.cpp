// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "core/sha256.h"

namespace sinkscope {
namespace {

constexpr std::uint64_t kEdge = 4096;

}  // namespace

std::string fingerprint(const Checkpoint& checkpoint) {
  const std::vector<TensorInfo>& tensors = checkpoint.tensors();
  std::vector<int> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return tensors[static_cast<std::size_t>(a)].name < tensors[static_cast<std::size_t>(b)].name;
  });
  Sha256 hash;
  std::vector<char> edge(kEdge);
  for (const int index : order) {
    const TensorInfo& tensor = tensors[static_cast<std::size_t>(index)];
    std::string header = tensor.name + '\0' + tensor.dtype + '\0';
    for (const std::int64_t dim : tensor.shape) header += std::to_string(dim) + ',';
    header += '\0';
    hash.add(header.data(), header.size());
    const std::uint64_t n = std::min(kEdge, tensor.n_bytes);
    for (const std::uint64_t offset : {std::uint64_t{0}, tensor.n_bytes - n}) {
      checkpoint.read_raw(index, offset, n, edge.data());
      hash.add(edge.data(), n);
    }
  }
  return hash.hex();
}

}  // namespace sinkscope
