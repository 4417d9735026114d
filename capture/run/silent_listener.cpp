// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/run/silent_listener.h"

namespace sinkscope {

at::Tensor SilentListener::on_attention(int /*layer*/, const AttentionCall& call) {
  const auto T = static_cast<int>(call.q.size(0)), H = static_cast<int>(call.q.size(1)),
             G = static_cast<int>(call.k.size(1));
  AttentionStats stats(H, G, T);
  const TileGeometry tile = tile_geometry(T, H, G);
  return is_cpu_ && fused_knows(call) ? attend_fused(call, tile, stats, nullptr, stop_)
                                      : attend_reference(call, tile, stats, nullptr, stop_);
}

}  // namespace sinkscope
