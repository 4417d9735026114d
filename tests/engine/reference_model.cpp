// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/engine/reference_model.h"

#include <algorithm>
#include <cmath>

namespace sinkscope::test {
namespace {

Rows matrix(const ModelFiles& model, Role role, int layer) {
  const std::int64_t n = model.rows(role, layer), m = model.cols(role, layer);
  std::vector<float> values(static_cast<std::size_t>(n * m));
  model.read_rows(role, layer, 0, n, values.data());
  Rows rows(static_cast<std::size_t>(n), Row(static_cast<std::size_t>(m)));
  for (std::size_t i = 0; i < values.size(); ++i)
    rows[i / static_cast<std::size_t>(m)][i % static_cast<std::size_t>(m)] = values[i];
  return rows;
}

Row gain_of(const ModelFiles& model, Role role, int layer) {
  const std::vector<float> gain = model.norm_gain(role, layer).effective;
  return {gain.begin(), gain.end()};
}

double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Rows times(const Rows& x, const Rows& w) {  // x [T][in], w [out][in]
  Rows y(x.size(), Row(w.size()));
  for (std::size_t t = 0; t < x.size(); ++t)
    for (std::size_t o = 0; o < w.size(); ++o) y[t][o] = dot(x[t], w[o]);
  return y;
}

void add(Rows& x, const Rows& y) {
  for (std::size_t t = 0; t < x.size(); ++t)
    for (std::size_t i = 0; i < x[t].size(); ++i) x[t][i] += y[t][i];
}

Rows columns(const Rows& x, int begin, int n) {
  Rows part;
  for (const Row& row : x) part.emplace_back(row.begin() + begin, row.begin() + begin + n);
  return part;
}

void rotate(Rows& x, double theta) {  // rotate-half
  const std::size_t half = x[0].size() / 2;
  for (std::size_t t = 0; t < x.size(); ++t)
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(t) *
                           std::pow(theta, -static_cast<double>(i) / static_cast<double>(half));
      const double a = x[t][i], b = x[t][i + half];
      x[t][i] = a * std::cos(angle) - b * std::sin(angle);
      x[t][i + half] = b * std::cos(angle) + a * std::sin(angle);
    }
}

double capped(double x, double cap) { return cap > 0 ? cap * std::tanh(x / cap) : x; }

struct Reference {
  const ModelFiles& model;
  const ReferenceHooks& hooks;
  const ArchSpec& spec = model.spec();

  void state(Site site, int layer, Rows& x) const {
    if (hooks.residual) hooks.residual(site, layer, x);
  }
  Rows norm(Role role, int layer, const Rows& x) const {
    if (!model.has(role, layer)) return x;
    const Row gain = gain_of(model, role, layer);
    if (hooks.norm) return hooks.norm(role, layer, x, gain, spec.norm_eps);
    Rows y;
    for (const Row& row : x) y.push_back(reference_rms_norm(row, gain, spec.norm_eps));
    return y;
  }
  // W x + b
  Rows linear(Role weight, Role bias, int layer, const Rows& x) const {
    Rows y = times(x, matrix(model, weight, layer));
    if (!model.has(bias, layer)) return y;
    const std::vector<float> b = model.read_vector(bias, layer);
    add(y, Rows(y.size(), Row(b.begin(), b.end())));
    return y;
  }
  void head_norm(Role role, int layer, Rows& x) const {
    if (!model.has(role, layer)) return;
    for (Row& row : x) row = reference_rms_norm(row, gain_of(model, role, layer), spec.norm_eps);
  }
  Rows attention(int layer, const Rows& n1) const {
    Rows q = linear(Role::q, Role::q_bias, layer, n1), k = linear(Role::k, Role::k_bias, layer, n1);
    const Rows v = linear(Role::v, Role::v_bias, layer, n1);
    const bool whole = spec.qk_norm == QkNorm::whole;
    if (whole) head_norm(Role::q_norm, layer, q), head_norm(Role::k_norm, layer, k);
    const int d = spec.head_dim, window = spec.window[static_cast<std::size_t>(layer)];
    Rows out(n1.size());
    for (int h = 0; h < spec.n_heads; ++h) {
      const int kv = h / (spec.n_heads / spec.n_kv_heads);
      Rows qh = columns(q, h * d, d), kh = columns(k, kv * d, d), vh = columns(v, kv * d, d);
      if (!whole) head_norm(Role::q_norm, layer, qh), head_norm(Role::k_norm, layer, kh);
      rotate(qh, spec.rope.theta);
      rotate(kh, spec.rope.theta);
      if (hooks.values) hooks.values(layer, h, vh);
      Rows z(n1.size(), Row(static_cast<std::size_t>(d), 0.0));
      for (std::size_t i = 0; i < n1.size(); ++i) {
        Row scores;
        for (std::size_t j = 0; j <= i; ++j) {
          const bool is_seen = window == 0 || static_cast<int>(i - j) < window;
          const double score = capped(dot(qh[i], kh[j]) * spec.scale_of(layer), spec.score_cap);
          scores.push_back(is_seen ? score : -HUGE_VAL);
        }
        const Row p = hooks.weights ? hooks.weights(layer, h, static_cast<int>(i), scores)
                                    : reference_softmax(scores);
        for (std::size_t j = 0; j <= i; ++j)
          for (std::size_t c = 0; c < z[i].size(); ++c) z[i][c] += p[j] * vh[j][c];
      }
      if (hooks.z) hooks.z(layer, h, n1, z);
      for (std::size_t t = 0; t < out.size(); ++t)
        out[t].insert(out[t].end(), z[t].begin(), z[t].end());
    }
    return linear(Role::o, Role::o_bias, layer, out);
  }
  double own_activation(double g) const {
    if (spec.activation != Activation::gelu_tanh) return g / (1 + std::exp(-g));
    return .5 * g * (1 + std::tanh(std::sqrt(2 / M_PI) * (g + .044715 * g * g * g)));
  }
  // The stream with what a half adds to it.
  void add_half(Role post, int layer, Rows& x, const Rows& out) const {
    add(x, model.has(post, layer) ? norm(post, layer, out) : out);
  }
  Rows mlp(int layer, const Rows& n2) const {
    Rows gate = times(n2, matrix(model, Role::gate, layer));
    const Rows up = times(n2, matrix(model, Role::up, layer));
    for (std::size_t t = 0; t < gate.size(); ++t)
      for (std::size_t i = 0; i < gate[t].size(); ++i) {
        const double g = gate[t][i];
        gate[t][i] = (hooks.activation ? hooks.activation(g) : own_activation(g)) * up[t][i];
      }
    return times(gate, matrix(model, Role::down, layer));
  }
};

}  // namespace

Row reference_softmax(const Row& scores) {
  const double top = *std::max_element(scores.begin(), scores.end());
  Row p;
  double sum = 0;
  for (double s : scores) sum += p.emplace_back(std::exp(s - top));
  for (double& value : p) value /= sum;
  return p;
}

Row reference_rms_norm(const Row& x, const Row& gain, double eps) {
  const double rms = std::sqrt(dot(x, x) / static_cast<double>(x.size()) + eps);
  Row y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = gain[i] * x[i] / rms;
  return y;
}

Row reference_loss(const ModelFiles& model, const std::vector<int>& ids,
                   const ReferenceHooks& hooks) {
  const Reference pass{model, hooks};
  const Rows embedding = matrix(model, Role::embed, kNoLayer);
  Rows x;
  for (int id : ids) {
    x.push_back(embedding[static_cast<std::size_t>(id)]);
    for (double& h : x.back()) h *= pass.spec.embed_scale;
  }
  for (int layer = 0; layer < pass.spec.n_layers; ++layer) {
    if (layer == 0) pass.state(Site::resid_pre, layer, x);
    pass.add_half(Role::ln1_post, layer, x, pass.attention(layer, pass.norm(Role::ln1, layer, x)));
    pass.state(Site::resid_mid, layer, x);
    pass.add_half(Role::ln2_post, layer, x, pass.mlp(layer, pass.norm(Role::ln2, layer, x)));
    pass.state(Site::resid_post, layer, x);
  }
  const Role head = model.has(Role::unembed, kNoLayer) ? Role::unembed : Role::embed;
  Rows logits = times(pass.norm(Role::ln_final, kNoLayer, x), matrix(model, head, kNoLayer));
  for (Row& row : logits)
    for (double& logit : row) logit = capped(logit, pass.spec.logit_cap);
  Row loss;
  for (std::size_t t = 0; t + 1 < ids.size(); ++t)
    loss.push_back(-std::log(reference_softmax(logits[t])[static_cast<std::size_t>(ids[t + 1])]));
  return loss;
}

}  // namespace sinkscope::test
