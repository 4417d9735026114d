// SPDX-License-Identifier: GPL-3.0-or-later
// Granite: a Llama block with four multipliers.
#include "capture/checkpoint/families/families.h"

namespace sinkscope {
namespace {

void read_granite(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  read_attention_bias(keys, out);
  spec.mlp_bias = keys.boolean("mlp_bias").value_or(false);
  spec.embed_scale = keys.number("embedding_multiplier").value_or(1);
  spec.residual_scale = keys.number("residual_multiplier").value_or(1);
  spec.attention_scale = keys.number("attention_multiplier").value_or(1);
  const double divisor = keys.number("logits_scaling").value_or(1);
  if (!(divisor > 0)) out.obstacles.push_back("logits_scaling is not above 0");
  spec.logit_scale = 1 / divisor;
}

constexpr TensorName kSwa[] = {{Role::sink, "self_attn.sinks"}};

// Windows, sink logits, and a base of the rotary positions for each layer, 0 where there are none.
void read_granite_swa(const JsonKeys& keys, HfConfig& out) {
  read_granite(keys, out);
  ArchSpec& spec = out.spec;
  const auto n_layers = static_cast<std::size_t>(spec.n_layers);
  spec.sinks.assign(n_layers, true);
  window_layers(keys, 0, out, [](int layer) { return layer % 4 != 0; });
  const auto bases = keys.numbers("layer_rope_theta");
  if (!bases) return;
  if (bases->size() != n_layers) {
    out.obstacles.push_back("layer_rope_theta does not name every layer");
    return;
  }
  spec.layer_ropes.assign(n_layers, spec.rope);
  for (std::size_t layer = 0; layer < n_layers; ++layer) {
    RopeSpec& rope = spec.layer_ropes[layer];
    if ((*bases)[layer] > 0)
      rope.theta = (*bases)[layer];
    else
      rope.partial = 0;
  }
}

constexpr Family kFamilies[] = {
    {.model_type = "granite",
     .vocab_size = 32000,
     .d_mlp = 11008,
     .n_ctx = 2048,
     .bos_id = 1,
     .eos_id = 2,
     .read = read_granite},
    {.model_type = "granite_swa",
     .vocab_size = 32000,
     .d_mlp = 11008,
     .n_ctx = 2048,
     .bos_id = 1,
     .eos_id = 2,
     .tied = true,
     .names = kSwa,
     .read = read_granite_swa},
};

}  // namespace

std::span<const Family> granite_families() { return kFamilies; }

}  // namespace sinkscope
