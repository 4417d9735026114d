// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/normalizer.h"
#include "core/what_if/index_set.h"

namespace sinkscope {

// What can be changed in a forward pass, as plain values with a JSON form: one object an edit,
// {"edit":"residual.clip","limit":100,"sites":["hook_resid_post"]}. Every list defaults to all.

// Names of sites or norms; all of them when empty. Sites are hook names with or without their
// block ("hook_resid_post", "blocks.3.hook_resid_mid"); norms are roles (ln1, ln2, ln1_post, …).
using NameList = std::vector<std::string>;

// h ← clamp(h, −limit, limit), on the stream itself (2601.22966; two-sided).
struct ResidualClip {
  double limit = 0;  // > 0
  IndexSet layers;
  TokenSet tokens;
  NameList sites;
  bool operator==(const ResidualClip&) const = default;
};

// h_d ← value, its mean, or scale · h_d, on the stream itself. Exactly one of the three.
struct ResidualSet {
  enum class How { value, mean, scale };
  How how = How::value;
  double number = 0;  // the value or the factor
  IndexSet layers, dims;
  TokenSet tokens;
  NameList sites;
  bool operator==(const ResidualSet&) const = default;
};

// What one norm sees, the stream untouched (science reference, causal probes). E is the mean over
// the edited tokens of all runs, at that norm, in the edited forward pass.
//   mean          x_d ← E x_d                      zero          x_d ← 0
//   clamp         |x_d| ≤ τ · rms(x without d)     direct        y_d ← 0, the other y kept
//   denominator   y_{j≠d} *= rms(x) / rms(x with x_d = 0), y_d kept
//   direct_const  y_d ← E y_d                      remove_const  zero in the norm, then y_d ← E y_d
enum class ProbeMode { mean, zero, clamp, direct, denominator, direct_const, remove_const };
const char* name_of(ProbeMode mode);
std::optional<ProbeMode> probe_mode_named(const std::string& name);

struct NormProbe {
  ProbeMode mode = ProbeMode::zero;
  double tau = 0;  // clamp only, > 0
  IndexSet layers, dims;
  TokenSet tokens;
  NameList norms;
  bool operator==(const NormProbe&) const = default;
};

// Another normalizer in place of a norm; the model is not retrained.
//   none         y = x                       layernorm  (x − μ)/σ · gain
//   rmsnorm      its own gain, no gate, no bias   rmsnorm_no_gain
//   dyt          γ ⊙ tanh(αx), γ the gain, plus the norm's own bias if it has one, α fitted by
//                least squares to the norm's own inputs and outputs (Newton)
//   gatednorm    g ⊙ y, y what the norm puts out before a gate of its own, which goes;
//                g = sigmoid(W_up swish(W_down y)); start "identity": 2σ with W_up = 0, y bit for
//                bit; "paper": σ with W_up = 0, halves y; or weights of a file
//   tensor_gate  one g a token: sigmoid(wᵀ swish(W_down y)), same starts
//   preaffine    norm(λ₁ ⊙ x), all else as it is, in place of the model's own λ₁ if it has one; λ₁
//                of a file, or `lambda` in `dims` and 1 elsewhere
struct NormReplace {
  enum class With {
    none,
    layernorm,
    rmsnorm,
    rmsnorm_no_gain,
    dyt,
    gatednorm,
    tensor_gate,
    preaffine
  };
  With with = With::none;
  std::string start = "identity";  // identity | paper; gates only
  int rank = 16;                   // gates without weights
  std::string weights;             // a safetensors file: blocks.N.ln1.{gate_down,gate_up,pre_gain}
  double lambda = 1;               // preaffine without weights, like dims
  IndexSet layers, dims;
  NameList norms;
  bool operator==(const NormReplace&) const = default;
};
const char* name_of(NormReplace::With with);

// Whether an edit that has `dims` is about them as it is.
template <class AnyEdit>
bool is_of_dims(const AnyEdit& /*edit*/) {
  return true;
}
inline bool is_of_dims(const NormReplace& edit) {
  return edit.with == NormReplace::With::preaffine && edit.weights.empty();
}

struct AttentionNormalizer {
  Normalizer normalizer;
  std::vector<double> sink_logits;  // one a head of `heads`; empty = normalizer.sink_logit for all
  bool from_checkpoint = false;     // b out of the model
  IndexSet layers, heads;
  bool operator==(const AttentionNormalizer&) const = default;
};

// Queries do not see these keys; the query at a masked position keeps its own key. Renormalizing
// shares the lost mass among the others; without, it goes nowhere.
struct AttentionMaskKey {
  IndexSet keys, layers, heads;
  bool renormalize = true;
  bool operator==(const AttentionMaskKey&) const = default;
};

// v_t ← scale · v_t.
struct AttentionValue {
  double scale = 0;
  TokenSet tokens;
  IndexSet layers, heads;
  bool operator==(const AttentionValue&) const = default;
};

// z ← g ⊙ z before W_o: a constant, or sigmoid(W_g n1) with weights of a file
// (blocks.N.attn.gate [H or H·d_h, D]).
struct AttentionGate {
  double value = 1;     // constant gate
  std::string weights;  // empty = constant
  IndexSet layers, heads;
  bool operator==(const AttentionGate&) const = default;
};

// W_down(act(gate) ⊙ up).
struct MlpActivation {
  enum class Kind { silu, sigmoid, gelu, relu };
  Kind kind = Kind::sigmoid;
  IndexSet layers;
  bool operator==(const MlpActivation&) const = default;
};
const char* name_of(MlpActivation::Kind kind);

using Edit = std::variant<ResidualClip, ResidualSet, NormProbe, NormReplace, AttentionNormalizer,
                          AttentionMaskKey, AttentionValue, AttentionGate, MlpActivation>;

// "residual.clip" and so on.
const char* name_of(const Edit& edit);

nlohmann::ordered_json edit_json(const Edit& edit);
// Throws Error{invalid_argument} naming the edit and the key: an unknown key, a missing or doubled
// one, a value of the wrong type or outside its range.
Edit edit_from_json(const nlohmann::json& json);

}  // namespace sinkscope
