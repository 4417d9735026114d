// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/capture_layout.h"
#include "core/capture_schema.h"
#include "core/capture_values.h"

namespace sinkscope {

// The shapes that one run of a capture must have by core/FORMAT.md, found from its model's numbers
// and its lists (token ids, layers, sites, …), so that whoever reads an array may index it by them.
class RunShapes {
 public:
  using Dims = std::vector<std::int64_t>;
  // Dimensions of a dataset of this run; empty when it is not there.
  using DimsOf = std::function<Dims(const std::string& path)>;

  // Throws Error{corrupt} when there is no list of token ids, or the residual stream's arrays are
  // of another number of layers. `dims_of` must outlive this.
  RunShapes(const ModelFacts& model, DimsOf dims_of, const std::string& where);

  // Throws Error{corrupt} unless `found` is the shape of `path`; paths that FORMAT.md does not know
  // have any shape.
  void check(const std::string& path, const Dims& found, const std::string& where);

  const RunSizes& sizes() const { return sizes_; }

 private:
  std::optional<std::int64_t> size_of(const std::string& symbol, const std::string& path);
  std::optional<std::int64_t> axis(const std::string& path, std::size_t rank, std::size_t i) const;

  void check_layers(const std::string& where) const;

  DimsOf dims_of_;
  RunSizes sizes_;
  Symbols symbols_;  // "T", and "stats/hook_resid_pre:D_s" for those of one group
};

}  // namespace sinkscope
