// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/capture_reader.h"
#include "core/tensor.h"

namespace sinkscope {

// The states of residual/stream, at most 16 MiB at a time.

// Calls `visit` with consecutive rows [n, width] of one site and the position of the first of them.
// Throws Error{corrupt} unless the stream is [S > site, T, width].
void for_each_stream_block(const CaptureReader& reader, const std::string& run, int site, int width,
                           const std::function<void(int first, const ConstMapF& rows)>& visit);

struct StreamSite {
  int index = 0;  // in residual/sites
  int width = 0;
};

// The same of one site after the other; `slot` is the site's place in `sites`. Calls come in order
// and one at a time, but from another thread: the next block is read meanwhile.
void for_each_stream_block(
    const CaptureReader& reader, const std::string& run, const std::vector<StreamSite>& sites,
    const std::function<void(std::size_t slot, int first, const ConstMapF& rows)>& visit);

}  // namespace sinkscope
