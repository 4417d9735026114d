// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/capture_layout.h"

namespace sinkscope::test {

// One run of a made-up model with one key/value head: every layer's attention maps and
// hook_resid_post.
inline CaptureLayout layout_of_maps(int n_layers, int n_heads, int n_tokens, int width) {
  CaptureLayout layout;
  layout.model = {"m", "m", "f", "llama", "{}", n_layers, n_heads, 1, 8, width, 100};
  layout.runs.resize(1);
  layout.runs[0].token_ids.assign(static_cast<std::size_t>(n_tokens), 1);
  for (int i = 0; i < n_layers; ++i) layout.attention_layers.push_back(i);
  layout.pattern.layers = layout.attention_layers;
  layout.sites = {{"hook_resid_post", layout.attention_layers, width, false, true}};
  return layout;
}

// Value i of a layer: tells both.
inline float value_at(int layer, int i) { return static_cast<float>(layer * 1000 + i % 997 + 1); }

}  // namespace sinkscope::test
