// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stop_token>
#include <utility>

#include "capture/model/blocks.h"

namespace sinkscope {
namespace {

struct Inputs {
  at::Tensor q, k, v, log_decay, beta;
};

// Unit keys, decays below 1, β in (0, 1); no two sizes agree.
Inputs random_inputs(int H, int T, int dk, int dv) {
  auto generator = at::detail::createCPUGenerator(11);
  const auto normal = [&](std::vector<std::int64_t> shape) {
    return at::randn(shape, generator, at::kFloat);
  };
  const at::Tensor k = normal({H, T, dk});
  return {normal({H, T, dk}), k / k.norm(2, -1, true), normal({H, T, dv}),
          -at::softplus(normal({H, T})), normal({H, T}).sigmoid()};
}

// The recurrence as it is written, in double.
at::Tensor recurrence(const Inputs& in) {
  const auto d = [](const at::Tensor& x) { return x.to(at::kDouble); };
  const at::Tensor q = d(in.q), k = d(in.k), v = d(in.v), g = d(in.log_decay), b = d(in.beta);
  at::Tensor o = at::empty_like(v);
  for (std::int64_t h = 0; h < q.size(0); ++h) {
    at::Tensor S = at::zeros({k.size(2), v.size(2)}, at::kDouble);
    for (std::int64_t t = 0; t < q.size(1); ++t) {
      S = S * g[h][t].exp();
      S = S + at::outer(k[h][t], b[h][t] * (v[h][t] - S.t().mv(k[h][t])));
      o[h][t].copy_(S.t().mv(q[h][t]));
    }
  }
  return o;
}

TEST(DeltaRule, ChunksOfAnySizeEqualTheRecurrence) {
  const Inputs in = random_inputs(3, 70, 5, 7);
  const at::Tensor expected = recurrence(in);
  for (const int chunk : {1, 3, 64, 100}) {
    const at::Tensor o = delta_rule(in.q, in.k, in.v, in.log_decay, in.beta, chunk);
    EXPECT_LT((o - expected).abs().max().item<double>(), 2e-5) << chunk;
  }
}

// diag(e^g) in place of e^g, in double; the norms of its states too.
std::pair<at::Tensor, at::Tensor> channel_recurrence(const Inputs& in, const at::Tensor& decay) {
  const auto d = [](const at::Tensor& x) { return x.to(at::kDouble); };
  const at::Tensor q = d(in.q), k = d(in.k), v = d(in.v), g = d(decay), b = d(in.beta);
  at::Tensor o = at::empty_like(v), norms = at::empty({q.size(0), q.size(1)}, at::kDouble);
  for (std::int64_t h = 0; h < q.size(0); ++h) {
    at::Tensor S = at::zeros({k.size(2), v.size(2)}, at::kDouble);
    for (std::int64_t t = 0; t < q.size(1); ++t) {
      S = g[h][t].exp().unsqueeze(-1) * S;
      S = S + at::outer(k[h][t], b[h][t] * (v[h][t] - S.t().mv(k[h][t])));
      o[h][t].copy_(S.t().mv(q[h][t]));
      norms[h][t].copy_(S.norm());
    }
  }
  return {o, norms};
}

// One decay for all channels is the same rule; unequal ones, from none to complete within a token
// (e^−200 is no float), equal the recurrence with diag(e^g), in chunks of any size.
TEST(DeltaRule, ADecayForEachChannel) {
  const Inputs in = random_inputs(3, 70, 5, 7);
  const at::Tensor same = in.log_decay.unsqueeze(-1).expand({3, 70, 5}).contiguous();
  const at::Tensor unequal = same * at::tensor({0.0f, 0.2f, 1.8f, 30.0f, 200.0f});
  const auto [expected, norms] = channel_recurrence(in, unequal);
  for (const int chunk : {1, 3, 16, 100}) {
    const at::Tensor o = channel_delta_rule(in.q, in.k, in.v, same, in.beta, chunk);
    EXPECT_LT((o - recurrence(in)).abs().max().item<double>(), 2e-5) << chunk;
    at::Tensor got_norms;
    const at::Tensor got =
        channel_delta_rule(in.q, in.k, in.v, unequal, in.beta, chunk, &got_norms);
    EXPECT_LT((got - expected).abs().max().item<double>(), 2e-5) << chunk;
    EXPECT_LT((got_norms - norms).abs().max().item<double>(), 1e-4) << chunk;
  }
}

// A request to stop is seen between chunks.
TEST(DeltaRule, StopsBetweenChunks) {
  const Inputs in = random_inputs(2, 40, 5, 3);
  std::stop_source stop;
  stop.request_stop();
  const at::Tensor decay = in.log_decay.unsqueeze(-1).expand({2, 40, 5});
  EXPECT_FALSE(
      delta_rule(in.q, in.k, in.v, in.log_decay, in.beta, 8, nullptr, stop.get_token()).defined());
  EXPECT_FALSE(
      channel_delta_rule(in.q, in.k, in.v, decay, in.beta, 8, nullptr, stop.get_token()).defined());
}

// The states' norms, made without the states.
TEST(DeltaRule, StateNormsEqualThoseOfTheRecurrence) {
  const Inputs in = random_inputs(3, 70, 5, 7);
  at::Tensor expected = at::empty({3, 70}, at::kDouble);
  const at::Tensor k = in.k.to(at::kDouble), v = in.v.to(at::kDouble);
  for (int h = 0; h < 3; ++h) {
    at::Tensor S = at::zeros({5, 7}, at::kDouble);
    for (int t = 0; t < 70; ++t) {
      S = S * in.log_decay[h][t].to(at::kDouble).exp();
      S = S + at::outer(k[h][t], in.beta[h][t].to(at::kDouble) * (v[h][t] - S.t().mv(k[h][t])));
      expected[h][t] = S.norm();
    }
  }
  for (const int chunk : {1, 3, 64}) {
    at::Tensor norms;
    delta_rule(in.q, in.k, in.v, in.log_decay, in.beta, chunk, &norms);
    EXPECT_LT((norms - expected).abs().max().item<double>(), 1e-4) << chunk;
  }
  at::Tensor norms;
  const at::Tensor same = in.log_decay.unsqueeze(-1).expand({3, 70, 5}).contiguous();
  channel_delta_rule(in.q, in.k, in.v, same, in.beta, 16, &norms);
  EXPECT_LT((norms - expected).abs().max().item<double>(), 1e-4);
}

// β = 1, no decay, orthonormal keys: a query equal to a stored key recalls its value.
TEST(DeltaRule, OrthonormalKeysRecallTheirValues) {
  const int n = 4;
  const at::Tensor keys = at::eye(n).unsqueeze(0), none = at::zeros({1, n}), all = at::ones({1, n});
  const at::Tensor values = at::arange(n * 3, at::kFloat).view({1, n, 3});
  const at::Tensor o = delta_rule(keys, keys, values, none, all, 64);
  EXPECT_LT((o - values).abs().max().item<float>(), 1e-6);
}

// Complete decay forgets: each token sees only itself, o_t = β (q·k) v.
TEST(DeltaRule, CompleteDecayForgets) {
  Inputs in = random_inputs(2, 20, 5, 3);
  in.log_decay.fill_(-1e4);
  const at::Tensor own = (in.beta * (in.q * in.k).sum(-1)).unsqueeze(-1) * in.v;
  const at::Tensor o = delta_rule(in.q, in.k, in.v, in.log_decay, in.beta, 8);
  EXPECT_LT((o - own).abs().max().item<float>(), 1e-5);
}

}  // namespace
}  // namespace sinkscope
