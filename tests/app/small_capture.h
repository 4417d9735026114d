// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <string>

namespace sinkscope {
struct CaptureLayout;
}

namespace sinkscope::test {

// Sizes of the small capture, all different.
inline constexpr int kLayers = 3, kHeads = 4, kKvHeads = 2, kTokens = 6, kWidth = 7;

// Writes "small.h5" into `folder`: two runs (6 and 9 tokens; the second is called "long"), stream,
// maps of layers 0 and 2 and heads 1 to 3, one tap. Values that tests rely on:
//   residual/stream [S,T,D]     1000·site + 10·token + dim
//   attention/pattern           1000·layer + 100·head + 10·row + key where key ≤ row, else 0
//   taps/attn.hook_z [N,H,T,·]  running index from 0 in each layer
// Everything else is filled with small numbers. `change` may alter the layout first. Returns the
// path.
std::string small_capture(const std::string& folder,
                          const std::function<void(CaptureLayout&)>& change = {});

}  // namespace sinkscope::test
