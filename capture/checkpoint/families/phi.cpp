// SPDX-License-Identifier: GPL-3.0-or-later
// Phi-3 and Phi-4-mini: a Llama block with fused projections.
#include "capture/checkpoint/families/families.h"

namespace sinkscope {
namespace {

constexpr TensorName kPhi3[] = {
    {Role::q, "self_attn.qkv_proj.weight", Packing::qkv_rows},
    {Role::k, "self_attn.qkv_proj.weight", Packing::qkv_rows},
    {Role::v, "self_attn.qkv_proj.weight", Packing::qkv_rows},
    {Role::gate, "mlp.gate_up_proj.weight", Packing::gate_up_rows},
    {Role::up, "mlp.gate_up_proj.weight", Packing::gate_up_rows},
};

void read_phi3(const JsonKeys& keys, HfConfig& out) {
  window_layers(keys, 0, out, [](int) { return true; });
}

constexpr Family kFamilies[] = {
    {.model_type = "phi3",
     .vocab_size = 32064,
     .d_mlp = 8192,
     .n_ctx = 4096,
     .bos_id = 1,
     .eos_id = 32000,
     .names = kPhi3,
     .read = read_phi3},
};

}  // namespace

std::span<const Family> phi_families() { return kFamilies; }

}  // namespace sinkscope
