// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sinkscope {

// The one registry of attention normalizers: how a row of scores becomes a row of weights, over
// tokens and over depth alike. This is the scalar reference; capture/model holds the tensor twin.
//
//   softmax     p_j = e^{z_j} / Σ e^z
//   softmax1    p_j = e^{z_j} / (1 + Σ e^z)                  (Miller 2023; 2605.17887)
//   sink_logit  p_j = e^{z_j} / (e^b + Σ e^z), no value      (GPT-OSS; b = −∞ is softmax, 0
//   softmax1) clipped     clip((ζ−γ)·softmax(z) + γ, 0, 1)             (Bondarenko et al.
//   2306.12929) sparsemax   Euclidean projection on the simplex          (Martins & Astudillo 2016)
//   entmax15    α-entmax at α = 1.5                          (Peters et al. 1905.05702)
//   sigmoid     p_j = 1 / (1 + e^{−z_j})                     (Gu et al. 2410.10781)
enum class NormalizerKind { softmax, softmax1, sink_logit, clipped, sparsemax, entmax15, sigmoid };

struct NormalizerFacts {
  NormalizerKind kind;
  const char* name;      // as in an edit's "kind"
  const char* formula;   // one line, for help texts
  bool rows_sum_to_one;  // without null route
};
const std::vector<NormalizerFacts>& normalizers();
const char* name_of(NormalizerKind kind);
std::optional<NormalizerKind> normalizer_named(const std::string& name);

struct Normalizer {
  NormalizerKind kind = NormalizerKind::softmax;
  double sink_logit = 0;       // b; −∞ allowed
  double gamma = 0, zeta = 1;  // clipped: γ ≤ 0, ζ ≥ 1
  bool operator==(const Normalizer&) const = default;
};

// ln Σ e^z, −∞ for an empty row or one that is −∞ throughout.
double log_sum_exp(std::span<const double> z);

struct NormalizedRow {
  std::vector<double> p;  // as long as the row
  // The share that goes nowhere: sigmoid(b − LSE) for sink logits; for rows that need not sum to 1
  // (clipped, sigmoid) max(0, 1 − Σp); 0 otherwise.
  double null_mass = 0;
};

// Scores may be −∞ (masked), not NaN and not +∞. A row that is −∞ throughout gets p = 0.
// Throws Error{invalid_argument} for γ > 0 or ζ < 1.
NormalizedRow normalize(const Normalizer& normalizer, std::span<const double> z);

}  // namespace sinkscope
