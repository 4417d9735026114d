// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/capture_reader.h"
#include "core/mechanism_metrics.h"
#include "core/tensor.h"

namespace sinkscope {

// What the live mechanisms of a model did in one run, as far as it has them: norm gates, gates of
// the attention output, sinks that take a share, attention over depth, states of linear attention.

// A gated norm in one block. Over its dimensions, means over the tokens.
struct NormGate {
  std::string role;  // "ln1"
  int layer = 0;
  std::vector<double> mean, corr;  // [C]; corr with |y|, see gate_correlation()
};

// A mix over depth: what one half of a block, or the final norm, reads.
struct DepthMixUse {
  std::string target;  // "blocks.1.depth_attn"; with three inputs "blocks.1.depth_attn (keys)"
  int layer = -1;      // −1 = in front of the final norm
  DepthUse use;
};

struct Mechanisms {
  std::vector<NormGate> norm_gates;
  std::vector<int> gate_layers;   // [N] blocks whose attention output is gated
  MatrixD attn_gate;              // [N,H] mean gate over the tokens and the head's channels
  std::vector<int> sink_layers;   // [A] blocks with softmax attention, where some have a sink
  MatrixD sink_share;             // [A,H] mean over the tokens of the share that goes to no key
  std::vector<int> block_layers;  // attention over depth: blocks that restart the stream
  std::vector<DepthMixUse> depth;
  std::vector<int> linear_layers;       // [N] blocks of linear attention: no softmax there
  MatrixD state_norm, last_state_norm;  // [N,H_v] ‖S_t‖ (Frobenius), mean and last token

  bool empty() const {
    return norm_gates.empty() && gate_layers.empty() && sink_layers.empty() && depth.empty() &&
           linear_layers.empty();
  }
  // Most sources of a mix.
  int n_sources() const;
};

// Blocks from `layers_end` on are left out. Errors: those of the reader; corrupt for shapes that
// contradict each other.
Mechanisms read_mechanisms(const CaptureReader& reader, const std::string& run, int layers_end);

}  // namespace sinkscope
