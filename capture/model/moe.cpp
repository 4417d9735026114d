// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/moe.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <vector>

#include "capture/checkpoint/read_together.h"
#include "capture/model/forward.h"
#include "capture/model/linear.h"
#include "capture/model/mlp_chunk.h"

namespace sinkscope {
namespace {

// Indices of the k largest along the last dimension.
at::Tensor largest(const at::Tensor& x, std::int64_t k) {
  const auto sorted = at::sort(x, /*stable=*/true, /*dim=*/-1, /*descending=*/true);
  return std::get<1>(sorted).narrow(-1, 0, k);
}

// Experts of the groups whose two best members sum highest keep their score, the others lose it.
at::Tensor within_groups(const MoeSpec& moe, const at::Tensor& choice) {
  if (moe.n_groups <= 1 || moe.n_groups_used >= moe.n_groups) return choice;
  const at::Tensor grouped = choice.unflatten(-1, {moe.n_groups, -1});
  const std::int64_t pair = std::min<std::int64_t>(2, grouped.size(-1));
  const at::Tensor best = std::get<0>(grouped.topk(pair, -1)).sum(-1);
  const at::Tensor kept =
      at::zeros_like(best, at::kBool).scatter_(-1, largest(best, moe.n_groups_used), true);
  const double rejected = moe.rejected_is_zero ? 0.0 : -std::numeric_limits<double>::infinity();
  return grouped.masked_fill(kept.logical_not().unsqueeze(-1), rejected).flatten(-2);
}

// c·tanh(x/c); x where c is 0.
at::Tensor capped(const at::Tensor& x, double cap) {
  return cap > 0 ? (x / cap).tanh_().mul_(cap) : x;
}

at::Tensor activated(const BlockPass& pass, const at::Tensor& gate, const at::Tensor& up) {
  const MoeSpec& moe = pass.spec.moe;
  if (!moe.has_own_unit()) return pass.edits.on_gate(pass.layer, gate, up, pass.spec.activation);
  if (moe.gate_cap > 0 || moe.up_cap > 0)  // Inkling 2: σ reads the gate itself
    return capped(gate, moe.gate_cap) * gate.sigmoid() * capped(up, moe.up_cap);
  // GPT-OSS: gate · σ(s·gate) · (up + 1), the gate clamped above only. DeepSeek-V4: up + 0.
  const at::Tensor g = gate.clamp_max(moe.clamp), u = up.clamp(-moe.clamp, moe.clamp);
  return g * (g * moe.sharpness).sigmoid() * (u + moe.up_shift);
}

// x [n, D] -> [n, D], a chunk of tokens at a time as in the dense MLP; undefined = canceled.
at::Tensor run_expert(const BlockPass& pass, const Expert& expert, const at::Tensor& x) {
  const std::int64_t n_tokens = x.size(0), width = expert.gate_up.size(0) / 2,
                     most = mlp_chunk(n_tokens, width);
  std::vector<at::Tensor> pieces;
  for (std::int64_t t = 0; t < n_tokens; t += most) {
    if (pass.listener.stop().stop_requested()) return {};
    const at::Tensor gate_up = linear_layer(x.narrow(0, t, std::min(most, n_tokens - t)),
                                            expert.gate_up, expert.gate_up_bias);
    const at::Tensor hidden =
        activated(pass, gate_up.narrow(-1, 0, width), gate_up.narrow(-1, width, width));
    pieces.push_back(linear_layer(hidden, expert.down, expert.down_bias));
  }
  return pieces.size() == 1 ? pieces.front() : at::cat(pieces, 0);
}

std::int64_t bytes_of(const Expert& expert) {
  std::int64_t bytes = 0;
  for (const at::Tensor& x : {expert.gate_up, expert.gate_up_bias, expert.down, expert.down_bias})
    if (x.defined()) bytes += static_cast<std::int64_t>(x.nbytes());
  return bytes;
}

}  // namespace

ExpertSource::ExpertSource(const ModelFiles& model, int layer, at::Device device,
                           at::ScalarType dtype)
    : model_(model), layer_(layer), device_(device), dtype_(dtype) {}

at::Tensor ExpertSource::rows(std::initializer_list<Role> roles, int index) const {
  std::int64_t n_rows = 0, cols = 0;
  for (const Role role : roles) {
    n_rows += model_.rows(role, layer_) / model_.spec().moe.n_experts;
    cols = model_.cols(role, layer_);
  }
  at::Tensor host = at::empty({n_rows, cols}, at::kFloat);
  float* into = host.data_ptr<float>();
  std::vector<Stretch> wanted;
  for (const Role role : roles) {
    const std::int64_t each = model_.rows(role, layer_) / model_.spec().moe.n_experts;
    wanted.push_back({role, index * each, (index + 1) * each, into});
    into += each * cols;
  }
  read_together(model_, layer_, wanted);
  return host.to(device_, dtype_);
}

const Expert& ExpertSource::expert(int index) {
  const auto [found, is_new] = experts_.try_emplace(index);
  Expert& expert = found->second;
  if (!is_new) return expert;
  expert.gate_up = rows({Role::expert_gate, Role::expert_up}, index);
  expert.down = rows({Role::expert_down}, index);
  if (model_.has(Role::expert_gate_bias, layer_)) {
    expert.gate_up_bias = rows({Role::expert_gate_bias, Role::expert_up_bias}, index).flatten();
    expert.down_bias = rows({Role::expert_down_bias}, index).flatten();
  }
  n_bytes_ += bytes_of(expert);
  return expert;
}

void ExpertSource::shrink(std::int64_t bytes) {
  while (n_bytes_ > bytes && !experts_.empty()) {
    const auto last = std::prev(experts_.end());
    n_bytes_ -= bytes_of(last->second);
    experts_.erase(last);
  }
}

Routing route(const MoeSpec& moe, const at::Tensor& logits, const at::Tensor& choice_bias,
              const at::Tensor& table) {
  const at::Tensor z = logits.to(at::kFloat);
  at::Tensor chosen, weights;  // [T, k]
  switch (moe.score) {
    case RouterScore::softmax: {
      const at::Tensor p = z.softmax(-1);
      chosen = largest(p, moe.n_used);
      weights = p.gather(-1, chosen);
      if (moe.renormalize) weights = weights / weights.sum(-1, /*keepdim=*/true);
      break;
    }
    case RouterScore::chosen_softmax:
      chosen = largest(z, moe.n_used);
      weights = z.gather(-1, chosen).softmax(-1);
      break;
    case RouterScore::sigmoid:
    case RouterScore::sqrt_softplus: {
      const at::Tensor s = moe.score == RouterScore::sigmoid ? z.sigmoid() : at::softplus(z).sqrt();
      chosen = table.defined()
                   ? table
                   : largest(within_groups(moe, choice_bias.defined() ? s + choice_bias : s),
                             moe.n_used);
      weights = s.gather(-1, chosen);
      if (moe.renormalize) weights = weights / (weights.sum(-1, /*keepdim=*/true) + 1e-20);
      break;
    }
  }
  return {z, at::zeros_like(z).scatter_add_(-1, chosen, weights * moe.scale)};
}

at::Tensor moe_block(const BlockPass& pass, const at::Tensor& n, const at::Tensor& routed) {
  const auto& w = pass.w;
  const at::Tensor x = n[0];  // [T, D]
  at::Tensor table;
  if (w.route_table.defined())
    table = w.route_table.index_select(
        0, at::tensor(*pass.state.token_ids, at::kInt).to(w.route_table.device(), at::kLong));
  Routing routing =
      route(pass.spec.moe, linear_layer(routed[0], w.router, w.router_bias), w.choice_bias, table);
  if (w.expert_scale.defined()) routing.weights = routing.weights * w.expert_scale;
  pass.listener.on_tap(Site::mlp_router_logits, pass.layer, routing.logits.unsqueeze(0));
  pass.listener.on_tap(Site::mlp_router, pass.layer, routing.weights.unsqueeze(0));
  at::Tensor out = at::zeros_like(x, at::kFloat);
  for (int e = 0; e < pass.spec.moe.n_experts; ++e) {
    const at::Tensor share = routing.weights.select(-1, e);
    const at::Tensor tokens = share.nonzero().squeeze(-1);
    if (tokens.size(0) == 0) continue;
    const at::Tensor y = run_expert(pass, w.experts->expert(e), x.index_select(0, tokens));
    if (!y.defined()) return {};
    out.index_add_(0, tokens, y.to(at::kFloat) * share.index_select(0, tokens).unsqueeze(-1));
  }
  if (w.shared.gate_up.defined()) {
    at::Tensor y = run_expert(pass, w.shared, x);
    if (!y.defined()) return {};
    y = y.to(at::kFloat);
    if (w.shared_router.defined()) {
      const at::Tensor share = linear_layer(x, w.shared_router, {}).to(at::kFloat).sigmoid();
      pass.listener.on_tap(Site::mlp_shared_gate, pass.layer, share.squeeze(-1).unsqueeze(0));
      y = y * share;
    }
    out = out + y;
  }
  return out.to(n.scalar_type()).unsqueeze(0);
}

}  // namespace sinkscope
