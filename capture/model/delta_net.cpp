// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "capture/model/blocks.h"
#include "capture/model/linear.h"
#include "capture/model/short_convolution.h"

namespace sinkscope {
namespace {

// With a decay for each channel every pair of tokens in a chunk has d_k decays of its own.
constexpr int kChunk = 64, kChannelChunk = 16;

at::Tensor unit_length(const at::Tensor& x) {
  return x * (x.square().sum(-1, /*keepdim=*/true) + 1e-6).rsqrt();
}

// [1, T, heads·d] -> [heads, T, d]; each key head serves `repeat` neighboring value heads.
at::Tensor head_rows(const at::Tensor& x, std::int64_t heads, std::int64_t d, std::int64_t repeat) {
  return x[0].unflatten(-1, {heads, d}).transpose(0, 1).repeat_interleave(repeat, 0);
}

// ‖S_t‖ of the states inside a chunk, S_t = γ_t S + Σ_{j≤t} Γ_tj k_j f_jᵀ, without making them:
//   ‖S_t‖² = γ_t² ‖S‖² + 2 γ_t Σ_j Γ_tj k_jᵀ S f_j + Σ_jl Γ_tj Γ_tl (k_j·k_l)(f_j·f_l)
at::Tensor state_norms(const at::Tensor& state, const at::Tensor& k, const at::Tensor& fresh,
                       const at::Tensor& decay, const at::Tensor& growth) {
  const at::Tensor before = state.square().sum({1, 2}).view({-1, 1, 1});
  const at::Tensor cross = (k.matmul(state) * fresh).sum(-1, /*keepdim=*/true);
  const at::Tensor both = k.matmul(k.transpose(1, 2)) * fresh.matmul(fresh.transpose(1, 2));
  const at::Tensor own = (decay.matmul(both) * decay).sum(-1, /*keepdim=*/true);
  const at::Tensor square = growth.square() * before + 2 * growth * decay.matmul(cross) + own;
  return square.clamp_min(0).sqrt().squeeze(-1);
}

// ‖S_t‖ of the states inside a chunk as above, where every key channel d has a decay of its own;
// faded [H, n(t), n(j), d] is Γ_tjd k_jd:
//   ‖S_t‖² = Σ_d γ_td² ‖S_d‖² + 2 Σ_jd γ_td Γ_tjd k_jd (S f_j)_d
//            + Σ_jl (Σ_d Γ_tjd k_jd Γ_tld k_ld) (f_j·f_l)
at::Tensor channel_state_norms(const at::Tensor& state, const at::Tensor& fresh,
                               const at::Tensor& faded, const at::Tensor& growth) {
  const at::Tensor before = (growth.square() * state.square().sum(-1).unsqueeze(1)).sum(-1);
  const at::Tensor seen = fresh.matmul(state.transpose(1, 2)).unsqueeze(1);  // [H, 1, n(j), d]
  const at::Tensor cross = ((faded * seen).sum(2) * growth).sum(-1);
  const at::Tensor pairs = fresh.matmul(fresh.transpose(1, 2)).unsqueeze(1);
  const at::Tensor own = (faded.matmul(faded.transpose(2, 3)) * pairs).sum({2, 3});
  return (before + 2 * cross + own).clamp_min(0).sqrt();
}

// One chunk of a run.
struct Chunk {
  at::Tensor q, k, v;    // [H, n, d]
  at::Tensor beta;       // [H, n, 1]
  at::Tensor log_decay;  // summed from the chunk's first token on
  at::Tensor unseen;     // [n, n] true where j > i
  std::int64_t n;
};

// Chunk by chunk; step(chunk, state, norm) returns the outputs [H, n, d_v], takes the state over
// the chunk and, if `norm` is not null, says how long the states in it are, [H, n].
template <class Step>
at::Tensor in_chunks(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& log_decay, const at::Tensor& beta, std::int64_t chunk,
                     at::Tensor* state_norm, const std::stop_token& stop, const Step& step) {
  const std::int64_t T = q.size(1);
  chunk = std::min(chunk, T);
  const at::Tensor unseen =
      at::ones({chunk, chunk}, at::TensorOptions(at::kBool).device(q.device())).triu(1);
  at::Tensor state = at::zeros({q.size(0), k.size(2), v.size(2)}, q.options());
  std::vector<at::Tensor> outputs, norms;
  for (std::int64_t t = 0; t < T; t += chunk) {
    if (stop.stop_requested()) return {};
    const std::int64_t n = std::min(chunk, T - t);
    const auto rows = [&](const at::Tensor& x) { return x.narrow(1, t, n); };
    const Chunk c{rows(q),
                  rows(k),
                  rows(v),
                  rows(beta).unsqueeze(-1),
                  rows(log_decay).cumsum(1),
                  unseen.narrow(0, 0, n).narrow(1, 0, n),
                  n};
    at::Tensor norm;
    outputs.push_back(step(c, state, state_norm == nullptr ? nullptr : &norm));
    if (state_norm != nullptr) norms.push_back(norm);
  }
  if (state_norm != nullptr) *state_norm = at::cat(norms, 1);
  return at::cat(outputs, 1);
}

// X of M X = right, M lower triangular with ones on its diagonal.
at::Tensor solved(const at::Tensor& m, const at::Tensor& right) {
  return at::linalg_solve_triangular(m, right, /*upper=*/false, /*left=*/true,
                                     /*unitriangular=*/true);
}

constexpr double kNever = -std::numeric_limits<double>::infinity();

}  // namespace

at::Tensor delta_rule(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                      const at::Tensor& log_decay, const at::Tensor& beta, int chunk,
                      at::Tensor* state_norm, const std::stop_token& stop) {
  const auto step = [](const Chunk& c, at::Tensor& state, at::Tensor* norm) {
    const at::Tensor& G = c.log_decay;
    // Γ_ij = e^(G_i − G_j) for j ≤ i; masked before the exponential, which would overflow above.
    const at::Tensor decay =
        (G.unsqueeze(-1) - G.unsqueeze(-2)).masked_fill(c.unseen, kNever).exp();
    const at::Tensor A = (c.beta * c.k.matmul(c.k.transpose(1, 2)) * decay).tril(-1);
    const at::Tensor unit = at::eye(c.n, c.q.options()) + A;
    const at::Tensor growth = G.exp().unsqueeze(-1);
    const at::Tensor both = solved(unit, at::cat({c.beta * c.v, c.beta * growth * c.k}, -1));
    const at::Tensor fresh =
        both.narrow(-1, 0, c.v.size(2)) - both.narrow(-1, c.v.size(2), c.k.size(2)).matmul(state);
    const at::Tensor out =
        (c.q * growth).matmul(state) + (c.q.matmul(c.k.transpose(1, 2)) * decay).matmul(fresh);
    if (norm != nullptr) *norm = state_norms(state, c.k, fresh, decay, growth);
    const at::Tensor last = G.narrow(-1, c.n - 1, 1);
    const at::Tensor left = (last - G).exp().unsqueeze(-1);
    state = last.exp().unsqueeze(-1) * state + (c.k * left).transpose(1, 2).matmul(fresh);
    return out;
  };
  return in_chunks(q, k, v, log_decay, beta, chunk, state_norm, stop, step);
}

at::Tensor channel_delta_rule(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& log_decay, const at::Tensor& beta, int chunk,
                              at::Tensor* state_norm, const std::stop_token& stop) {
  const auto step = [](const Chunk& c, at::Tensor& state, at::Tensor* norm) {
    const at::Tensor& G = c.log_decay;  // [H, n, d]
    // Γ_ijd = e^(G_id − G_jd) for j ≤ i as it is: e^G_i / e^G_j would divide by what underflows.
    const at::Tensor faded = (G.unsqueeze(2) - G.unsqueeze(1))
                                 .masked_fill_(c.unseen.unsqueeze(-1), kNever)
                                 .exp_()
                                 .mul_(c.k.unsqueeze(1));
    const at::Tensor products = faded.matmul(at::stack({c.k, c.q}, -1));  // [H, n, n, 2]
    const at::Tensor unit =
        at::eye(c.n, c.q.options()) + (c.beta * products.select(-1, 0)).tril(-1);
    const at::Tensor growth = G.exp();
    const at::Tensor fresh = solved(unit, c.beta * (c.v - (growth * c.k).matmul(state)));
    const at::Tensor out = (growth * c.q).matmul(state) + products.select(-1, 1).matmul(fresh);
    if (norm != nullptr) *norm = channel_state_norms(state, fresh, faded, growth);
    state = growth.select(1, c.n - 1).unsqueeze(-1) * state +
            faded.select(1, c.n - 1).transpose(1, 2).matmul(fresh);
    return out;
  };
  return in_chunks(q, k, v, log_decay, beta, chunk, state_norm, stop, step);
}

at::Tensor delta_net(const BlockPass& pass, const at::Tensor& n1) {
  const auto& [spec, w, layer, rotary, listener, edits, state] = pass;
  const DeltaSpec& delta = spec.delta;
  const std::int64_t Nk = delta.n_key_heads, Nv = delta.n_value_heads, dk = delta.key_dim,
                     dv = delta.value_dim, repeat = Nv / Nk;
  const at::Tensor all = linear_layer(n1, w.qkv, {}).to(at::kFloat);
  const std::int64_t channels = delta.n_channels();
  const at::Tensor u = at::silu(short_convolution(all.narrow(-1, 0, channels), w.delta_conv));
  const at::Tensor q = unit_length(head_rows(u.narrow(-1, 0, Nk * dk), Nk, dk, repeat));
  const at::Tensor k = unit_length(head_rows(u.narrow(-1, Nk * dk, Nk * dk), Nk, dk, repeat));
  const at::Tensor v = head_rows(u.narrow(-1, 2 * Nk * dk, Nv * dv), Nv, dv, 1);
  // What follows q, k, v in the product: the gate, β, the decay; gate and decay perhaps narrow.
  const bool is_narrow = delta.narrow > 0;
  const std::int64_t gate_width = is_narrow ? delta.narrow : Nv * dv;
  const auto part = [&](std::int64_t first, std::int64_t n) {
    return all.narrow(-1, channels + first, n);
  };
  const auto widened = [&](const at::Tensor& x, const at::Tensor& up) {
    return up.defined() ? linear_layer(x.to(n1.scalar_type()), up, {}).to(at::kFloat) : x;
  };
  const at::Tensor z = heads_of(widened(part(0, gate_width), w.delta_gate_up), 0, Nv, dv);
  const at::Tensor beta = part(gate_width, Nv)[0].t().sigmoid().contiguous();  // [Nv, T]
  const at::Tensor step =
      at::softplus(widened(part(gate_width + Nv, is_narrow ? delta.narrow : Nv), w.delta_decay_up) +
                   w.delta_dt_bias)[0];
  const at::Tensor rate = -w.delta_log_rate.exp();
  const at::Tensor query = q / std::sqrt(static_cast<double>(dk));
  at::Tensor state_norm;
  at::Tensor* wanted = listener.wants(Site::linear_state_norm, layer) ? &state_norm : nullptr;
  const at::Tensor o =
      is_narrow
          ? channel_delta_rule(query, k, v,
                               rate.view({-1, 1, 1}) * step.unflatten(-1, {Nk, dk}).transpose(0, 1),
                               beta, kChannelChunk, wanted, listener.stop())
          : delta_rule(query, k, v, rate.unsqueeze(-1) * step.t(), beta, kChunk, wanted,
                       listener.stop());
  if (!o.defined()) return {};
  if (wanted != nullptr)
    listener.on_tap(Site::linear_state_norm, layer, state_norm.t().unsqueeze(0));
  const at::Tensor rows = o.transpose(0, 1).unsqueeze(0);  // [1, T, Nv, dv]
  const at::Tensor y = apply_norm(w.delta_norm, rows).y *
                       (is_narrow || spec.delta_sigmoid ? z.sigmoid() : at::silu(z));
  listener.on_tap(Site::linear_norm, layer, y);
  return linear_layer(y.flatten(2).to(n1.scalar_type()), w.o, {});
}

}  // namespace sinkscope
