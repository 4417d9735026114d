// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include "capture/checkpoint/model_files.h"

namespace sinkscope {

// Several residual streams (hyper-connections). A state is [1, T, N·D], the streams one after the
// other. Equations: StreamMix::gated is Qwen4-Exp's, StreamMix::balanced DeepSeek-V4's.

// The weights of the mix in front of a half, or behind the last block. Parts of the other kind are
// undefined.
struct StreamMixer {
  at::Tensor gain;              // gated: [N, D] float32, of the norm of each stream
  at::Tensor down, up, inject;  // [r, N·D], [N·D, r], [N, N·D]; no inject behind the last block
  at::Tensor factors, base, scale;  // balanced, float32: [(2+N)·N, N·D], [(2+N)·N], [3]; behind the
                                    // last block [N, N·D], [N], [1]
  bool exists() const { return gain.defined() || factors.defined(); }
  std::int64_t n_bytes() const;
};
// `first` is mix1_norm, mix2_norm or mix_final_norm.
StreamMixer read_stream_mixer(const ModelFiles& model, Role first, int layer, at::Device device,
                              at::ScalarType dtype);

// What a half reads, and how the streams take what it puts out.
struct StreamRead {
  at::Tensor mixed;         // [1, T, D] what is read, in the state's type
  at::Tensor normed, gate;  // [1, T, N, D]; the gate only where gated
  at::Tensor pre;           // balanced: [1, T, N]
  at::Tensor take;          // [1, T, N] share of the output that each stream takes
  at::Tensor comb;          // balanced: [1, T, N, N], from stream to stream; columns sum to 1
};
// gated:    Y_n = w ⊙ X_n / rms(X_n);  g = σ(W_up silu(W_down Y / N));  mixed = Σ_n g_n ⊙ Y_n / N;
//           take = 2 σ(W_inject Y / N)
// balanced: z = F X / rms(X);  pre = σ(z_p s_0 + b) + ε;  take = 2 σ(z_q s_1 + b);
//           comb = Sinkhorn(softmax(z_c s_2 + b) + ε);  mixed = Σ_n pre_n X_n
// The state itself without a mixer.
StreamRead read_streams(const ArchSpec& spec, const StreamMixer& mixer, const at::Tensor& x);

// gated: X_n + take_n · out;  balanced: take_k · out + Σ_j comb_jk X_j.
at::Tensor write_streams(const StreamRead& read, const at::Tensor& x, const at::Tensor& out);

// x / rms(x) over the last dimension, times a gain of its last two dimensions; float32.
at::Tensor group_norm(const at::Tensor& x, const at::Tensor& gain, double eps);

}  // namespace sinkscope
