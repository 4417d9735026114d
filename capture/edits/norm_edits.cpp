// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/edits/norm_edits.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "capture/model/forward.h"

namespace sinkscope {
namespace {

using With = NormReplace::With;

at::Tensor gate_of(const NormReplacement& by, const at::Tensor& y) {
  const double factor = by.doubles_gate ? 2 : 1;
  if (!by.gate_up.defined()) return at::full({1}, 0.5 * factor, y.options());
  const at::Tensor hidden = at::silu(y.matmul(by.gate_down.t()));
  return hidden.matmul(by.gate_up.t()).sigmoid() * factor;
}

// The norm as it is, but of another kind or without its gate.
at::Tensor bare_norm(const Norm& own, NormKind kind, const at::Tensor& x) {
  Norm norm = own;
  norm.kind = kind;
  norm.gate_down = norm.gate_up = at::Tensor();
  return apply_norm(norm, x).y;
}

// `values` [n] (or [1, T, n]) in the chosen dims of the chosen rows, x elsewhere.
at::Tensor with_dims(const at::Tensor& x, const ProbeTarget& at_, const at::Tensor& values) {
  const at::Tensor old = x.index_select(-1, at_.dims);
  const at::Tensor mask = at_.mask.view({1, -1, 1});
  at::Tensor out = x.clone();
  out.index_copy_(-1, at_.dims, at::where(mask, values.to(x.scalar_type()), old));
  return out;
}

at::Tensor mean_square(const at::Tensor& x) {
  return x.to(at::kDouble).square().mean(-1, /*keepdim=*/true);
}

at::Tensor without_dims(const at::Tensor& x, const at::Tensor& dims) {
  return x.index_fill(-1, dims, 0.0);
}

// What DyT is fitted to, a prompt a pair: rows x [n, D] of its inputs and the norm's output before
// gain and bias; γ² [D].
struct DytPairs {
  std::vector<at::Tensor> x, normed;
  at::Tensor weight;

  DytPairs(const std::vector<at::Tensor>& inputs, const Norm& norm, std::int64_t most_rows,
           at::ScalarType type)
      : weight(norm.gain.to(type).square()) {
    std::int64_t rows = 0;
    for (const at::Tensor& given : inputs) rows += given.size(1);
    const std::int64_t step = std::max<std::int64_t>(1, rows / most_rows);
    for (const at::Tensor& given : inputs) {
      x.push_back(given[0].slice(0, 0, std::nullopt, step).to(type));
      const bool is_centered = norm.kind == NormKind::layer_norm;
      const at::Tensor seen =
          is_centered ? x.back() - x.back().mean(-1, /*keepdim=*/true) : x.back();
      normed.push_back(seen * (mean_square(seen) + norm.eps).rsqrt().to(type));
    }
  }

  // Σ γ² (tanh(αx) − x/rms)²
  double distance(double alpha) const {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const at::Tensor gap = (x[i] * alpha).tanh_().sub_(normed[i]);
      sum += gap.square_().mul_(weight).sum(at::kDouble).item<double>();
    }
    return sum;
  }

  // Newton's, with t = tanh(αx), s = dt/dα = (1 − t²) x, ds/dα = −2 t s x:
  //   −Σ γ² (t − x/rms) s / Σ γ² (s² + (t − x/rms) ds/dα)
  double step(double alpha) const {
    double slope = 0, curvature = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const at::Tensor t = (x[i] * alpha).tanh_(), gap = t - normed[i],
                       s = (1 - t.square()).mul_(x[i]);
      slope += (gap * s).mul_(weight).sum(at::kDouble).item<double>();
      const at::Tensor bend = t.mul(s).mul_(x[i]).mul_(gap).mul_(-2);
      curvature += s.square().add_(bend).mul_(weight).sum(at::kDouble).item<double>();
    }
    return curvature > 0 ? -slope / curvature : 0;
  }
};

// Golden section on ln α: the distance has one minimum over the decades that matter.
double search_alpha(const DytPairs& pairs, int n_steps) {
  double low = std::log(1e-5), high = std::log(1e3);
  const double ratio = (std::sqrt(5.0) - 1) / 2;
  double a = high - ratio * (high - low), b = low + ratio * (high - low);
  double at_a = pairs.distance(std::exp(a)), at_b = pairs.distance(std::exp(b));
  for (int step = 0; step < n_steps; ++step) {
    if (at_a <= at_b) {
      high = b;
      b = a;
      at_b = at_a;
      a = high - ratio * (high - low);
      at_a = pairs.distance(std::exp(a));
    } else {
      low = a;
      a = b;
      at_a = at_b;
      b = low + ratio * (high - low);
      at_b = pairs.distance(std::exp(b));
    }
  }
  return std::exp((low + high) / 2);
}

}  // namespace

NormOutput replaced_norm(const NormReplacement& by, const at::Tensor& given, const Norm& own) {
  const at::Tensor x = given.to(at::kFloat);
  const auto plus_bias = [&](const at::Tensor& y) { return own.bias.defined() ? y + own.bias : y; };
  NormOutput out;
  switch (by.with) {
    case With::none:
      return {given, {}};
    case With::layernorm:
      out.y = bare_norm(own, NormKind::layer_norm, x);
      break;
    case With::rmsnorm:
      out.y = rms_norm(x, own.gain, own.eps);
      break;
    case With::rmsnorm_no_gain:
      out.y = rms_norm(x, at::ones_like(own.gain), own.eps);
      break;
    case With::dyt:
      out.y = plus_bias((x * by.dyt_alpha).tanh() * own.gain);
      break;
    case With::gatednorm:
    case With::tensor_gate:
      out.y = bare_norm(own, own.kind, x);
      out.y = gate_of(by, out.y) * out.y;
      break;
    case With::preaffine: {
      at::Tensor seen = by.own_pre_gain.defined() ? x / by.own_pre_gain : x;
      if (by.pre_gain.defined()) seen = seen * by.pre_gain;
      out = apply_norm(own, seen);
      break;
    }
  }
  out.y = out.y.to(given.scalar_type());
  return out;
}

double fit_dyt_alpha(const std::vector<at::Tensor>& inputs, const Norm& norm) {
  constexpr std::int64_t kRowsToSearch = 64, kAll = std::int64_t{1} << 40;
  const double found = search_alpha(DytPairs(inputs, norm, kRowsToSearch, at::kFloat), 24);
  const DytPairs pairs(inputs, norm, kAll, at::kDouble);
  double alpha = found;
  for (int i = 0; i < 20; ++i) {
    const double next = alpha + pairs.step(alpha);
    if (!(next > found / 4 && next < found * 4)) break;  // rows left out of the search disagree
    const bool has_converged = std::abs(next - alpha) <= 1e-9 * alpha;
    alpha = next;
    if (has_converged) return alpha;
  }
  return search_alpha(pairs, 40);
}

at::Tensor probed_input(const NormProbe& probe, const ProbeTarget& at_, const at::Tensor& x,
                        const at::Tensor& mean) {
  switch (probe.mode) {
    case ProbeMode::mean:
      return with_dims(x, at_, mean);
    case ProbeMode::zero:
    case ProbeMode::remove_const:
      return with_dims(x, at_, at::zeros({1}, x.options()));
    case ProbeMode::clamp: {
      const at::Tensor limit = mean_square(without_dims(x, at_.dims)).sqrt() * probe.tau;
      const at::Tensor old = x.index_select(-1, at_.dims).to(at::kDouble);
      return with_dims(x, at_, at::maximum(at::minimum(old, limit), -limit));
    }
    case ProbeMode::direct:
    case ProbeMode::denominator:
    case ProbeMode::direct_const:
      break;
  }
  return x;
}

at::Tensor probed_output(const NormProbe& probe, const ProbeTarget& at_, const at::Tensor& x,
                         const at::Tensor& y, double eps, const at::Tensor& mean) {
  switch (probe.mode) {
    case ProbeMode::direct:
      return with_dims(y, at_, at::zeros({1}, y.options()));
    case ProbeMode::direct_const:
    case ProbeMode::remove_const:
      return with_dims(y, at_, mean);
    case ProbeMode::denominator: {
      const at::Tensor factor =
          ((mean_square(x) + eps) / (mean_square(without_dims(x, at_.dims)) + eps)).sqrt();
      const at::Tensor scaled = (y.to(at::kDouble) * factor).to(y.scalar_type());
      const at::Tensor rows = at::where(at_.mask.view({1, -1, 1}), scaled, y);
      at::Tensor out = rows.clone();
      out.index_copy_(-1, at_.dims, y.index_select(-1, at_.dims));
      return out;
    }
    case ProbeMode::mean:
    case ProbeMode::zero:
    case ProbeMode::clamp:
      break;
  }
  return y;
}

}  // namespace sinkscope
