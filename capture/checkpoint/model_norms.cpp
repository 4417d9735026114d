// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/model_norms.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"

namespace sinkscope {
namespace {

// What is read of one norm; bias is empty where there is none.
struct OneNorm {
  NormGain gain;
  std::vector<float> bias;
};

OneNorm read_norm(const ModelFiles& model, Role role, int layer) {
  OneNorm norm{model.norm_gain(role, layer), {}};
  if (model.spec().norm_bias && model.has(bias_of(role), layer))
    norm.bias = model.read_vector(bias_of(role), layer);
  return norm;
}

void append_padded(std::vector<float> values, std::size_t width, std::vector<float>& to) {
  values.resize(width, std::nanf(""));
  to.insert(to.end(), values.begin(), values.end());
}

// The role's norms in the given layers, rows as long as the widest.
void append(const ModelFiles& model, Role role, int begin, int end, NamedNorms& norms,
            std::vector<std::string>& unread) {
  NormFacts& facts = norms.facts;
  std::vector<OneNorm> read;
  for (int layer = begin; layer < end; ++layer) {
    if (!model.has(role, layer)) continue;
    try {
      read.push_back(read_norm(model, role, layer));
      facts.layers.push_back(layer);
      norms.tensors.push_back(model.tensor_name(role, layer));
      facts.width = std::max(facts.width, static_cast<int>(read.back().gain.raw.size()));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported) throw;
      unread.emplace_back(error.what());
    }
  }
  const auto width = static_cast<std::size_t>(facts.width);
  for (OneNorm& norm : read) {
    append_padded(std::move(norm.gain.effective), width, facts.gain);
    append_padded(std::move(norm.gain.raw), width, facts.gain_raw);
    if (!norm.bias.empty()) append_padded(std::move(norm.bias), width, facts.bias);
  }
}

// All layers have them or none: a spec promises them as a whole.
void append_pre_gains(const ModelFiles& model, Role role, NormFacts& facts) {
  for (const int layer : facts.layers) {
    if (!model.has(role, layer)) return;
    const std::vector<float> gain = model.read_vector(role, layer);
    facts.pre_gain.insert(facts.pre_gain.end(), gain.begin(), gain.end());
  }
}

}  // namespace

ModelNorms read_norms(const ModelFiles& model) {
  static constexpr std::pair<Role, const char*> kRoles[] = {{Role::ln1, "ln1"},
                                                            {Role::ln1_k, "ln1_k"},
                                                            {Role::ln1_v, "ln1_v"},
                                                            {Role::ln2, "ln2"},
                                                            {Role::ln1_post, "ln1_post"},
                                                            {Role::ln2_post, "ln2_post"},
                                                            {Role::q_norm, "q_norm"},
                                                            {Role::k_norm, "k_norm"},
                                                            {Role::ln_final, "ln_final"},
                                                            {Role::q_a_norm, "q_latent"},
                                                            {Role::kv_a_norm, "kv_latent"},
                                                            {Role::delta_norm, "linear_out"},
                                                            {Role::mix1_norm, "hyper_attn"},
                                                            {Role::mix2_norm, "hyper_mlp"},
                                                            {Role::mix_final_norm, "hyper_final"},
                                                            {Role::compress_norm, "compressed"}};
  static constexpr std::pair<Role, Role> kPreRoles[] = {
      {Role::ln1, Role::ln1_pre}, {Role::ln2, Role::ln2_pre}, {Role::ln_final, Role::ln_final_pre}};
  const ArchSpec& spec = model.spec();
  // Neither a config nor an architecture file: what stands in the spec is made up.
  const bool is_unknown = model.config_text().empty() && !model.obstacles().empty();
  ModelNorms result;
  for (const auto& [role, name] : kRoles) {
    NamedNorms norms;
    norms.facts.role = name;
    norms.facts.kind = spec.norm_kind == NormKind::rms ? "rms" : "layer_norm";
    norms.facts.eps = norm_eps(spec, role);
    norms.facts.offset = role == Role::delta_norm ? 0 : spec.norm_offset;
    if (is_unknown) norms.facts.eps = norms.facts.offset = std::nan("");
    const bool is_final = !is_layer_role(role);
    append(model, role, is_final ? kNoLayer : 0, is_final ? kNoLayer + 1 : spec.n_layers, norms,
           result.unread);
    for (const auto& [of, pre] : kPreRoles)
      if (of == role) append_pre_gains(model, pre, norms.facts);
    if (!norms.facts.layers.empty()) result.roles.push_back(std::move(norms));
  }
  return result;
}

}  // namespace sinkscope
