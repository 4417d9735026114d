// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

namespace sinkscope {

// One float32 tensor to write; `fill` puts rows [begin, end) (of a vector: the one row) at `out`.
struct TensorToWrite {
  std::string name;
  std::vector<std::int64_t> shape;
  std::function<void(std::int64_t begin, std::int64_t end, float* out)> fill;
};

// Writes a safetensors file of these tensors, a few rows at a time, beside its place and then
// renamed. false: stopped, and nothing is left. Throws Error: invalid_argument for a file that is
// there already, io.
bool write_safetensors(const std::string& path, const std::vector<TensorToWrite>& tensors,
                       const std::stop_token& stop = {});

}  // namespace sinkscope
