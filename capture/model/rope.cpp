// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace sinkscope {
namespace {

constexpr double kTwoPi = 2 * std::numbers::pi;

// Llama 3: long wavelengths are divided by the factor, short ones kept, a ramp between.
double llama3(const RopeSpec& rope, double f) {
  const double wavelength = kTwoPi / f;
  if (wavelength < rope.original_context / rope.high_freq_factor) return f;
  if (wavelength > rope.original_context / rope.low_freq_factor) return f / rope.factor;
  const double smooth = (rope.original_context / wavelength - rope.low_freq_factor) /
                        (rope.high_freq_factor - rope.low_freq_factor);
  return (1 - smooth) * f / rope.factor + smooth * f;
}

// YaRN (Peng et al. 2023): interpolate the slow dimensions, keep the fast ones, a ramp between.
struct Yarn {
  double low, high;

  Yarn(const RopeSpec& rope, double context) {
    const auto dim_of = [&](double rotations) {
      return rope.rotary_dim * std::log(context / (kTwoPi * rotations)) /
             (2 * std::log(rope.theta));
    };
    low = dim_of(rope.beta_fast);
    high = dim_of(rope.beta_slow);
    if (rope.truncate) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, rope.rotary_dim - 1.0);
    if (low == high) high += 0.001;
  }
  double operator()(const RopeSpec& rope, double f, int i) const {
    const double ramp = std::clamp((i - low) / (high - low), 0.0, 1.0);
    return f / rope.factor * ramp + f * (1 - ramp);
  }
};

double yarn_attention_scaling(const RopeSpec& rope) {
  const auto g = [](double scale, double m) {
    return scale <= 1 ? 1.0 : 0.1 * m * std::log(scale) + 1.0;
  };
  if (rope.attention_factor) return *rope.attention_factor;
  if (rope.mscale.value_or(0) != 0 && rope.mscale_all_dim.value_or(0) != 0)
    return g(rope.factor, *rope.mscale) / g(rope.factor, *rope.mscale_all_dim);
  return g(rope.factor, 1);
}

// Phi-3's scaling of long contexts: √(1 + ln(factor) / ln(context)).
double longrope_attention_scaling(const RopeSpec& rope, double context) {
  if (rope.attention_factor) return *rope.attention_factor;
  return rope.factor <= 1 ? 1.0 : std::sqrt(1 + std::log(rope.factor) / std::log(context));
}

}  // namespace

RopeFrequencies rope_frequencies(const RopeSpec& rope, int n_ctx, int seq_len,
                                 const std::vector<float>& divisors) {
  const int half = rope.rotary_dim / 2;
  const double context = rope.original_context > 0 ? rope.original_context : n_ctx;
  double theta = rope.theta;
  if (rope.scaling == RopeScaling::dynamic) {
    const double longest = std::max<double>(seq_len, n_ctx);
    theta *= std::pow(rope.factor * longest / n_ctx - (rope.factor - 1),
                      rope.rotary_dim / (rope.rotary_dim - 2.0));
  }
  if (!divisors.empty() && divisors.size() != static_cast<std::size_t>(half))
    throw Error(ErrorKind::corrupt,
                fmt::format("rope divisors: {} values, expected {}", divisors.size(), half));
  RopeSpec resolved = rope;
  resolved.original_context = context;
  const Yarn yarn(resolved, context);
  RopeFrequencies result;
  for (int i = 0; i < half; ++i) {
    double f = std::pow(theta, -2.0 * i / rope.rotary_dim);
    if (rope.scaling == RopeScaling::linear) f /= rope.factor;
    if (rope.scaling == RopeScaling::proportional && i >= static_cast<int>(half * rope.partial))
      f = 0;
    if (rope.scaling == RopeScaling::llama3) f = llama3(resolved, f);
    if (rope.scaling == RopeScaling::yarn) f = yarn(resolved, f, i);
    if (rope.scaling == RopeScaling::longrope)
      f /= (seq_len > context ? rope.long_factor : rope.short_factor)[static_cast<std::size_t>(i)];
    if (!divisors.empty()) f /= static_cast<double>(divisors[static_cast<std::size_t>(i)]);
    result.inverse.push_back(static_cast<float>(f));
  }
  if (rope.scaling == RopeScaling::yarn)
    result.attention_scaling = static_cast<float>(yarn_attention_scaling(rope));
  if (rope.scaling == RopeScaling::longrope)
    result.attention_scaling = static_cast<float>(longrope_attention_scaling(rope, context));
  return result;
}

}  // namespace sinkscope
