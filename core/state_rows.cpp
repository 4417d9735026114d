// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/state_rows.h"

#include <fmt/format.h>

namespace sinkscope {

std::vector<float> read_state_rows(const CaptureReader& reader, const std::string& run,
                                   const std::string& path, std::int64_t site, std::int64_t begin,
                                   std::int64_t n) {
  const StateBox box = state_box(reader.dims(run, path), site, begin, n);
  return reader.read_f32(run, path, box.start, box.count);
}

StateBox state_box(const std::vector<std::int64_t>& dims, std::int64_t site, std::int64_t begin,
                   std::int64_t n) {
  StateBox box{{site, begin}, {1, n}};
  for (std::size_t axis = 2; axis < dims.size(); ++axis) {
    box.start.push_back(0);
    box.count.push_back(dims[axis]);
  }
  return box;
}

std::vector<std::int64_t> state_place(const std::vector<std::int64_t>& dims, std::int64_t site,
                                      std::int64_t token, std::int64_t dim) {
  if (dims.size() < 4) return {site, token, dim};
  return {site, token, dim / dims[3], dim % dims[3]};
}

std::string streams_note(const ModelFacts& model) {
  if (model.n_streams < 2) return "";
  return fmt::format("{0} residual streams of {1} dimensions; dimension s·{1} + d is d of stream s",
                     model.n_streams, model.d_model);
}

}  // namespace sinkscope
