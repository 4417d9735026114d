// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "capture/checkpoint/model_files.h"

namespace sinkscope {

struct BlockPass;

// Embeddings of hashed n-grams that some blocks of Qwen4-Exp add to the streams in front of their
// attention. The table is never read whole: only the rows of the prompt's n-grams.
class Ngrams {
 public:
  Ngrams(const ModelFiles& model, int layer, at::Device device, at::ScalarType dtype);

  // [1, T, P] of the tokens.
  at::Tensor embedding(const std::vector<int>& ids) const;
  std::int64_t n_bytes() const;

  at::Tensor key, value;                       // [N·D, P], [D, P]
  at::Tensor key_gain, query_gain, conv_gain;  // [N, D] float32
  at::Tensor conv;                             // [N·D, taps] float32

 private:
  const ModelFiles& model_;
  int layer_;
  at::Device device_;
  at::ScalarType dtype_;
  std::vector<std::int64_t> multipliers_, sizes_, offsets_;
};

// The rows of the table for each token and hash, [T · n_hashes]. For n-grams of k = 2 … longest
// tokens: id = xor_s<k (token_{t−s} · multiplier_s) in 64 bits that wrap, row = id mod size +
// offset. A token before the start, or at or before the last `eos` that comes strictly before t,
// counts as eos.
std::vector<std::int64_t> ngram_rows(const NgramSpec& ngram, const std::vector<int>& ids, int eos,
                                     const std::vector<std::int64_t>& multipliers,
                                     const std::vector<std::int64_t>& sizes,
                                     const std::vector<std::int64_t>& offsets);

// The streams [1, T, N·D] with what the n-grams add, tapped:
//   c_n = K_n · Q_n / √D of the normed keys W_k e and streams;  c = sign(c) √max(|c|, 1e-6)
//   V_n = σ(c_n) W_v e;  X + V + silu(conv(norm(V)))
at::Tensor with_ngrams(const BlockPass& pass, const at::Tensor& x);

}  // namespace sinkscope
