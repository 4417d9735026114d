// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/capture_reader.h"

namespace sinkscope {

// Residual states as one row a token. A model with several residual streams has them one after the
// other: dimension s·d_model + d is dimension d of stream s.

// Rows [begin, begin + n) of site `site` of residual/stream or residual/window, [n, state_width].
std::vector<float> read_state_rows(const CaptureReader& reader, const std::string& run,
                                   const std::string& path, std::int64_t site, std::int64_t begin,
                                   std::int64_t n);

// Where they lie in an array of these dimensions, [site, token, dim] or [site, token, stream, dim].
struct StateBox {
  std::vector<std::int64_t> start, count;
};
StateBox state_box(const std::vector<std::int64_t>& dims, std::int64_t site, std::int64_t begin,
                   std::int64_t n);

// Where one value lies in such an array: [site, token, dim], or [site, token, stream, dim].
std::vector<std::int64_t> state_place(const std::vector<std::int64_t>& dims, std::int64_t site,
                                      std::int64_t token, std::int64_t dim);

// What the dimensions of the states are, in words; "" for a model with one stream.
std::string streams_note(const ModelFacts& model);

}  // namespace sinkscope
