// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <string>

#include "core/what_if/edit.h"

namespace sinkscope {
namespace {

constexpr std::array kProbeModes = {"mean",        "zero",         "clamp",       "direct",
                                    "denominator", "direct_const", "remove_const"};
constexpr std::array kReplacements = {"none", "layernorm", "rmsnorm",     "rmsnorm_no_gain",
                                      "dyt",  "gatednorm", "tensor_gate", "preaffine"};
constexpr std::array kActivations = {"silu", "sigmoid", "gelu", "relu"};
constexpr std::array kEdits = {"residual.clip",   "residual.set",         "norm.probe",
                               "norm.replace",    "attention.normalizer", "attention.mask_key",
                               "attention.value", "attention.gate",       "mlp.activation"};
static_assert(kEdits.size() == std::variant_size_v<Edit>);

}  // namespace

const char* name_of(ProbeMode mode) { return kProbeModes[static_cast<std::size_t>(mode)]; }

std::optional<ProbeMode> probe_mode_named(const std::string& name) {
  for (std::size_t i = 0; i < kProbeModes.size(); ++i)
    if (name == kProbeModes[i]) return static_cast<ProbeMode>(i);
  return std::nullopt;
}

const char* name_of(NormReplace::With with) {
  return kReplacements[static_cast<std::size_t>(with)];
}

const char* name_of(MlpActivation::Kind kind) {
  return kActivations[static_cast<std::size_t>(kind)];
}

const char* name_of(const Edit& edit) { return kEdits[edit.index()]; }

}  // namespace sinkscope
