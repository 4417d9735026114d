// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/streams.h"

#include "capture/model/linear.h"
#include "capture/model/read_weights.h"

namespace sinkscope {
namespace {

// z · scale_i + base over one part of the factors.
at::Tensor scaled(const StreamMixer& mixer, const at::Tensor& z, std::int64_t first, std::int64_t n,
                  std::int64_t which) {
  return z.narrow(-1, first, n) * mixer.scale.select(0, which) + mixer.base.narrow(0, first, n);
}

// Rows and columns of C [..., N, N] are divided by their sums in turn; the columns last.
at::Tensor sinkhorn(at::Tensor c, int n_rounds, double eps) {
  c = c / (c.sum(-2, /*keepdim=*/true) + eps);
  for (int round = 1; round < n_rounds; ++round) {
    c = c / (c.sum(-1, /*keepdim=*/true) + eps);
    c = c / (c.sum(-2, /*keepdim=*/true) + eps);
  }
  return c;
}

StreamRead read_gated(const ArchSpec& spec, const StreamMixer& mixer, const at::Tensor& x) {
  const std::int64_t N = spec.streams.n;
  StreamRead read;
  read.normed = group_norm(x.unflatten(-1, {N, -1}), mixer.gain, spec.norm_eps);
  const at::Tensor mean = read.normed.flatten(-2).to(x.scalar_type()) / static_cast<double>(N);
  read.gate = linear_layer(at::silu(linear_layer(mean, mixer.down, {})), mixer.up, {})
                  .to(at::kFloat)
                  .sigmoid()
                  .unflatten(-1, {N, -1});
  read.mixed = (read.gate * read.normed).mean(-2).to(x.scalar_type());
  if (mixer.inject.defined())
    read.take = linear_layer(mean, mixer.inject, {}).to(at::kFloat).sigmoid() * 2;
  return read;
}

StreamRead read_balanced(const ArchSpec& spec, const StreamMixer& mixer, const at::Tensor& x) {
  const StreamSpec& streams = spec.streams;
  const std::int64_t N = streams.n;
  const at::Tensor state = x.to(at::kFloat);
  const at::Tensor unit =
      state * (state.square().mean(-1, /*keepdim=*/true) + spec.norm_eps).rsqrt();
  const at::Tensor z = linear_layer(unit, mixer.factors, {});
  StreamRead read;
  read.normed = unit.unflatten(-1, {N, -1});
  read.pre = scaled(mixer, z, 0, N, 0).sigmoid() + streams.eps;
  read.mixed = (read.pre.unsqueeze(-1) * state.unflatten(-1, {N, -1})).sum(-2).to(x.scalar_type());
  if (z.size(-1) == N) return read;  // behind the last block
  read.take = scaled(mixer, z, N, N, 1).sigmoid() * 2;
  const at::Tensor between =
      scaled(mixer, z, 2 * N, N * N, 2).unflatten(-1, {N, N}).softmax(-1) + streams.eps;
  read.comb = sinkhorn(between, streams.n_rounds, streams.eps);
  return read;
}

}  // namespace

std::int64_t StreamMixer::n_bytes() const {
  std::int64_t n = 0;
  for (const at::Tensor* part : {&gain, &down, &up, &inject, &factors, &base, &scale})
    if (part->defined()) n += static_cast<std::int64_t>(part->nbytes());
  return n;
}

StreamMixer read_stream_mixer(const ModelFiles& model, Role first, int layer, at::Device device,
                              at::ScalarType dtype) {
  const bool is_final = first == Role::mix_final_norm;
  const auto role = [first](int n) { return static_cast<Role>(static_cast<int>(first) + n); };
  const auto matrix = [&](Role r, at::ScalarType type) {
    return read_matrix(model, r, layer, 0, model.rows(r, layer), device, type);
  };
  StreamMixer mixer;
  if (model.has(first, layer)) {
    const std::int64_t N = model.spec().streams.n;
    mixer.gain =
        at::tensor(model.norm_gain(first, layer).effective, at::kFloat).view({N, -1}).to(device);
    mixer.down = matrix(role(1), dtype);
    mixer.up = matrix(role(2), dtype);
    if (!is_final) mixer.inject = matrix(role(3), dtype);
  }
  const int at = is_final ? 3 : 4;
  if (model.has(role(at), layer)) {
    mixer.factors = matrix(role(at), at::kFloat);
    mixer.base = matrix(role(at + 1), at::kFloat)[0];
    mixer.scale = matrix(role(at + 2), at::kFloat)[0];
  }
  return mixer;
}

StreamRead read_streams(const ArchSpec& spec, const StreamMixer& mixer, const at::Tensor& x) {
  if (!mixer.exists()) return {x, {}, {}, {}, {}, {}};
  return spec.streams.mix == StreamMix::gated ? read_gated(spec, mixer, x)
                                              : read_balanced(spec, mixer, x);
}

at::Tensor write_streams(const StreamRead& read, const at::Tensor& x, const at::Tensor& out) {
  const at::Tensor streams = x.to(at::kFloat).unflatten(-1, {read.take.size(-1), -1});
  const at::Tensor taken = read.take.unsqueeze(-1) * out.to(at::kFloat).unsqueeze(-2);
  // Σ_j comb_jk X_j
  const at::Tensor kept =
      read.comb.defined() ? read.comb.transpose(-1, -2).matmul(streams) : streams;
  return (kept + taken).flatten(-2).to(x.scalar_type());
}

at::Tensor group_norm(const at::Tensor& x, const at::Tensor& gain, double eps) {
  const at::Tensor h = x.to(at::kFloat);
  return h * (h.square().mean(-1, /*keepdim=*/true) + eps).rsqrt() * gain;
}

}  // namespace sinkscope
