// SPDX-License-Identifier: GPL-3.0-or-later
// OLMo 2 and 3: no norm before a sub-layer, one after it; q and k normed over all heads at once.
#include "capture/checkpoint/families/families.h"

namespace sinkscope {
namespace {

constexpr TensorName kOlmo[] = {
    {Role::ln1_post, "post_attention_layernorm.weight"},
    {Role::ln2_post, "post_feedforward_layernorm.weight"},
};

void read_olmo2(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  spec.has_ln1 = spec.has_ln2 = false;
  spec.has_ln1_post = spec.has_ln2_post = true;
  spec.qk_norm = QkNorm::whole;
  read_attention_bias(keys, out);
}

void read_olmo3(const JsonKeys& keys, HfConfig& out) {
  read_olmo2(keys, out);
  ArchSpec& spec = out.spec;
  window_layers(keys, 4096, out, [](int layer) { return (layer + 1) % 4 != 0; });
  if (!spec.layer_ropes.empty()) return;
  // Old spelling: scaling belongs to the layers that see everything.
  RopeSpec local = spec.rope;
  local.scaling = RopeScaling::none;
  for (const int window : spec.window) spec.layer_ropes.push_back(window > 0 ? local : spec.rope);
}

constexpr Family kFamilies[] = {
    {.model_type = "olmo2",
     .vocab_size = 50304,
     .d_mlp = 11008,
     .n_ctx = 2048,
     .eos_id = 50279,
     .names = kOlmo,
     .read = read_olmo2},
    {.model_type = "olmo3",
     .vocab_size = 50304,
     .d_mlp = 11008,
     .n_ctx = 2048,
     .eos_id = 50279,
     .rope_theta = 500000,
     .names = kOlmo,
     .read = read_olmo3},
};

}  // namespace

std::span<const Family> olmo_families() { return kFamilies; }

}  // namespace sinkscope
