// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cstdint>

namespace sinkscope {

// Tokens that a dense MLP of `width` takes at a time, so that gate, up and their product hold at
// most 64 MiB as float32: whole where they fit, else a multiple of 64 and at least 128 tokens, as
// fewer do not pay for reading the weights. By shapes alone: no budget changes what a row is
// multiplied with.
inline std::int64_t mlp_chunk(std::int64_t seq_len, std::int64_t width) {
  constexpr std::int64_t kValues = std::int64_t{16} << 20;
  const std::int64_t fitting = kValues / std::max<std::int64_t>(1, 3 * width);
  return seq_len <= fitting ? seq_len : std::max<std::int64_t>(128, fitting / 64 * 64);
}

}  // namespace sinkscope
