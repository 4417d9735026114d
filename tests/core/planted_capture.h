// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/fake_capture.h"

namespace sinkscope::test {

// A capture whose sinks are known on paper. Two blocks, three heads, 12 tokens, 7 dimensions:
//   attention: all heads spread evenly but block 1's head 2, which sends everything to token 0;
//   stream: |h| = 1 everywhere, sign by parity, but for
//     dimension 4 of token 0: 5000 from blocks.0.hook_resid_post on (3 of the 5 sites),
//     dimension 5 of every later token: 40 + its position, at all sites.
struct Planted {
  static constexpr int n_layers = 2, n_heads = 3, n_tokens = 12, width = 7;
  static constexpr int massive_dim = 4, sink_dim = 5, sink_layer = 1, sink_head = 2;
};

inline std::vector<float> planted_pattern() {
  std::vector<float> maps;
  for (int cell = 0; cell < Planted::n_layers * Planted::n_heads; ++cell) {
    const bool sink = cell == Planted::sink_layer * Planted::n_heads + Planted::sink_head;
    for (int q = 0; q < Planted::n_tokens; ++q) {
      for (int k = 0; k < Planted::n_tokens; ++k) {
        const float even = k <= q ? 1.0F / static_cast<float>(q + 1) : 0.0F;
        maps.push_back(sink ? static_cast<float>(k == 0) : even);
      }
    }
  }
  return maps;
}

inline std::vector<float> planted_stream() {
  std::vector<float> stream;
  for (int site = 0; site < 2 * Planted::n_layers + 1; ++site) {
    for (int t = 0; t < Planted::n_tokens; ++t) {
      for (int d = 0; d < Planted::width; ++d) {
        float h = (t + d) % 2 == 0 ? 1.0F : -1.0F;
        if (d == Planted::massive_dim && t == 0 && site >= 2) h = -5000;
        if (d == Planted::sink_dim && t > 0) h = static_cast<float>(40 + t);
        stream.push_back(h);
      }
    }
  }
  return stream;
}

inline void add_planted_run(FakeCapture& capture, const std::string& run, bool record_stream = true,
                            const std::vector<float>& stream = planted_stream(),
                            const std::vector<float>& pattern = planted_pattern(),
                            const std::string& first_token = "<s>") {
  RunInput input;
  for (int t = 0; t < Planted::n_tokens; ++t) {
    input.token_ids.push_back(t == 0 ? 0 : 10 + t);
    input.token_text.push_back(t == 0 ? first_token : "w" + std::to_string(t));
  }
  input.bos_positions = {0};
  capture.add_run(run, input);
  capture.facts.name = "planted";
  capture.facts.architecture = "llama";
  capture.facts.n_layers = Planted::n_layers;
  capture.facts.n_heads = Planted::n_heads;
  capture.facts.n_kv_heads = 1;
  capture.facts.d_model = Planted::width;
  put_attention(capture, run, {0, 1}, Planted::n_heads, pattern);
  put_residual(capture, run, Planted::n_layers, Planted::width, stream, record_stream);
}

}  // namespace sinkscope::test
