// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/gguf_readers.h"

#include <algorithm>
#include <cmath>

#include "capture/checkpoint/family.h"
#include "capture/checkpoint/gguf_file.h"

namespace sinkscope {

namespace {

bool has_tensor(const GgufFile& file, const std::string& name) { return file.find(name) >= 0; }

}  // namespace

// Experts where a block has a router; their width under its own key or the MLP's.
void read_mixture(const GgufKeys& keys, const GgufFile& file, GgufModel& model) {
  ArchSpec& spec = model.spec;
  MoeSpec& moe = spec.moe;
  moe.n_experts = keys.whole("expert_count", 0, 1 << 20).value_or(0);
  if (moe.n_experts == 0) return;
  moe.n_used = keys.required("expert_used_count", 1, moe.n_experts);
  moe.d_expert = keys.whole("expert_feed_forward_length", 1, 1 << 24).value_or(spec.d_mlp);
  bool all = true;
  for (int layer = 0; layer < spec.n_layers; ++layer) {
    spec.moe_layers.push_back(
        has_tensor(file, "blk." + std::to_string(layer) + ".ffn_gate_inp.weight"));
    all = all && spec.moe_layers.back();
  }
  if (all) spec.d_mlp = 0;
}

void read_qwen2(const GgufKeys&, const GgufFile&, GgufModel& model) { model.spec.qkv_bias = true; }

void read_qwen3(const GgufKeys&, const GgufFile&, GgufModel& model) {
  model.spec.qk_norm = QkNorm::per_head;
}

void read_qwen3_moe(const GgufKeys& keys, const GgufFile& file, GgufModel& model) {
  read_qwen3(keys, file, model);
  read_mixture(keys, file, model);
}

void read_gpt(const GgufKeys& keys, const GgufFile&, GgufModel& model) {
  ArchSpec& spec = model.spec;
  spec.norm_kind = NormKind::layer_norm;
  spec.norm_bias = spec.qkv_bias = spec.o_bias = spec.mlp_bias = true;
  spec.mlp_gated = false;
  spec.activation = Activation::gelu_tanh;
  if (spec.architecture == "gptneox") {
    spec.activation = Activation::gelu;
    spec.parallel = keys.truth("use_parallel_residual").value_or(true);
  } else {
    spec.learned_positions = true;
    spec.rope = RopeSpec();
    spec.rope.partial = 0;
  }
}

void read_gemma(const GgufKeys& keys, const GgufFile&, GgufModel& model) {
  ArchSpec& spec = model.spec;
  spec.has_ln1_post = spec.has_ln2_post = true;
  spec.activation = Activation::gelu_tanh;
  spec.embed_scale = std::sqrt(static_cast<double>(spec.d_model));
  const bool is_second = spec.architecture == "gemma2";
  spec.score_cap = keys.number("attn_logit_softcapping").value_or(is_second ? 50 : 0);
  spec.logit_cap = keys.number("final_logit_softcapping").value_or(is_second ? 30 : 0);
  // The 27B models scale by width / heads, which no key says; they are known by their depth.
  if (!keys.has("attention.scale") && spec.n_heads > 0 && spec.n_layers == (is_second ? 46 : 62))
    spec.attention_scale = 1 / std::sqrt(static_cast<double>(spec.d_model) / spec.n_heads);
  if (is_second) return;
  spec.qk_norm = QkNorm::per_head;
  RopeSpec local;
  local.rotary_dim = spec.rope.rotary_dim;
  local.theta = keys.number("rope.freq_base_swa").value_or(10000);
  for (const int window : spec.window) spec.layer_ropes.push_back(window > 0 ? local : spec.rope);
}

void read_olmo2(const GgufKeys&, const GgufFile&, GgufModel& model) {
  ArchSpec& spec = model.spec;
  spec.has_ln1 = spec.has_ln2 = false;
  spec.has_ln1_post = spec.has_ln2_post = true;
  spec.qk_norm = QkNorm::whole;
  const bool is_windowed =
      std::any_of(spec.window.begin(), spec.window.end(), [](int w) { return w > 0; });
  if (!is_windowed) return;
  RopeSpec local = spec.rope;  // OLMo 3: scaling belongs to the layers that see everything
  local.scaling = RopeScaling::none;
  for (const int window : spec.window) spec.layer_ropes.push_back(window > 0 ? local : spec.rope);
}

namespace {

std::vector<double> small_vector(const GgufFile& file, const std::string& name, std::int64_t n) {
  const int tensor = file.find(name);
  if (tensor < 0 || file.tensors()[static_cast<std::size_t>(tensor)].n_elements() != n) return {};
  std::vector<float> values(static_cast<std::size_t>(n));
  file.read_rows(tensor, 0, 1, values.data());
  return {values.begin(), values.end()};
}

}  // namespace

void read_phi3(const GgufKeys& keys, const GgufFile& file, GgufModel& model) {
  RopeSpec& rope = model.spec.rope;
  if (!has_tensor(file, "rope_factors_long.weight")) return;
  rope.scaling = RopeScaling::longrope;
  rope.long_factor = small_vector(file, "rope_factors_long.weight", rope.rotary_dim / 2);
  rope.short_factor = small_vector(file, "rope_factors_short.weight", rope.rotary_dim / 2);
  rope.original_context =
      keys.number("rope.scaling.original_context_length").value_or(model.spec.n_ctx);
  rope.factor = rope.original_context > 0 ? model.spec.n_ctx / rope.original_context : 1;
  rope.attention_factor = keys.number("rope.scaling.attn_factor");
  if (rope.long_factor.empty() || rope.short_factor.empty())
    model.obstacles.push_back("rope_factors_long and rope_factors_short do not fit the heads");
}

void read_granite(const GgufKeys& keys, const GgufFile&, GgufModel& model) {
  ArchSpec& spec = model.spec;
  spec.embed_scale = keys.number("embedding_scale").value_or(1);
  spec.residual_scale = keys.number("residual_scale").value_or(1);
  const double divisor = keys.number("logit_scale").value_or(1);
  spec.logit_scale = divisor > 0 ? 1 / divisor : 1;
}

void read_gpt_oss(const GgufKeys& keys, const GgufFile& file, GgufModel& model) {
  ArchSpec& spec = model.spec;
  spec.qkv_bias = spec.o_bias = true;
  spec.sinks.assign(static_cast<std::size_t>(spec.n_layers), true);
  spec.rope.truncate = false;  // as OpenAI's code; llama.cpp rounds
  read_mixture(keys, file, model);
  spec.moe.score = RouterScore::chosen_softmax;
  spec.moe.router_bias = spec.moe.expert_bias = true;
  spec.moe.clamp = 7;
  spec.moe.sharpness = 1.702;
}

void read_qwen3_next(const GgufKeys& keys, const GgufFile& file, GgufModel& model) {
  ArchSpec& spec = model.spec;
  read_qwen3_moe(keys, file, model);
  spec.attn_gate = AttnGate::elementwise;
  spec.moe.d_shared = keys.whole("expert_shared_feed_forward_length", 0, 1 << 24).value_or(0);
  spec.moe.shared_router = spec.moe.d_shared > 0;
  DeltaSpec& delta = spec.delta;
  delta.key_dim = keys.required("ssm.state_size", 1, 1 << 16);
  delta.n_key_heads = keys.required("ssm.group_count", 1, 1 << 14);
  delta.n_value_heads = keys.required("ssm.time_step_rank", 1, 1 << 14);
  delta.n_taps = keys.required("ssm.conv_kernel", 1, 1 << 16);
  const int values = keys.required("ssm.inner_size", 1, 1 << 24);
  delta.value_dim = delta.n_value_heads > 0 ? values / delta.n_value_heads : 0;
  const int interval = keys.whole("full_attention_interval", 1, 1 << 16).value_or(4);
  for (int layer = 0; layer < spec.n_layers; ++layer)
    spec.mixers.push_back((layer + 1) % interval == 0 ? Mixer::attention : Mixer::delta);
}

void read_bert(const GgufKeys&, const GgufFile& file, GgufModel& model) {
  ArchSpec& spec = model.spec;
  spec.norm_kind = NormKind::layer_norm;
  spec.norm_bias = spec.qkv_bias = spec.o_bias = spec.mlp_bias = true;
  spec.bidirectional = spec.post_norm = spec.embed_norm = spec.learned_positions = true;
  spec.has_ln1 = spec.has_ln2 = spec.has_final_norm = spec.has_head = false;
  spec.has_ln1_post = spec.has_ln2_post = true;
  spec.mlp_gated = false;
  spec.activation = Activation::gelu;
  spec.rope = RopeSpec();
  spec.rope.partial = 0;
  const int types = file.find("token_types.weight");
  if (types >= 0)
    spec.n_types = static_cast<int>(
        std::min<std::int64_t>(file.tensors()[static_cast<std::size_t>(types)].n_rows(), 1 << 20));
}

// Every 4th layer does without positions; no key says so.
void read_smollm3(const GgufKeys&, const GgufFile&, GgufModel& model) {
  ArchSpec& spec = model.spec;
  spec.layer_ropes.assign(static_cast<std::size_t>(spec.n_layers), spec.rope);
  for (std::size_t layer = 3; layer < spec.layer_ropes.size(); layer += 4)
    spec.layer_ropes[layer].partial = spec.layer_ropes[layer].rotary_dim = 0;
}

namespace {

// Queries grow with the windows of the original context that lie behind them.
void read_growth(const GgufKeys& keys, ArchSpec& spec) {
  spec.query_growth = keys.number("attention.temperature_scale").value_or(0);
  if (spec.query_growth == 0) return;
  spec.query_growth_context =
      keys.number("attention.temperature_length")
          .value_or(keys.number("rope.scaling.original_context_length").value_or(spec.n_ctx));
}

}  // namespace

void read_mistral3(const GgufKeys& keys, const GgufFile& file, GgufModel& model) {
  read_growth(keys, model.spec);
  read_mixture(keys, file, model);
}

namespace {

void read_grouped(const GgufKeys& keys, const GgufFile& file, GgufModel& model) {
  read_mixture(keys, file, model);
  MoeSpec& moe = model.spec.moe;
  if (moe.n_experts == 0) return;
  const int score = keys.whole("expert_gating_func", 0, 3).value_or(0);
  moe.score = score == 2   ? RouterScore::sigmoid
              : score == 3 ? RouterScore::chosen_softmax
                           : RouterScore::softmax;
  moe.renormalize = keys.truth("expert_weights_norm").value_or(false);
  moe.scale = keys.number("expert_weights_scale").value_or(1);
  if (moe.scale == 0) moe.scale = 1;
  moe.n_groups = std::max(keys.whole("expert_group_count", 0, moe.n_experts).value_or(1), 1);
  moe.n_groups_used =
      std::max(keys.whole("expert_group_used_count", 0, moe.n_groups).value_or(moe.n_groups), 1);
  moe.d_shared = keys.whole("expert_shared_count", 0, 1 << 10).value_or(0) * moe.d_expert;
  for (const TensorInfo& tensor : file.tensors())
    moe.choice_bias = moe.choice_bias || tensor.name.find(".exp_probs_b") != std::string::npos;
  if (moe.n_groups > 1 && moe.score != RouterScore::sigmoid)
    model.obstacles.push_back("groups of experts that are not scored by a sigmoid");
}

}  // namespace

void read_deepseek2(const GgufKeys& keys, const GgufFile& file, GgufModel& model) {
  ArchSpec& spec = model.spec;
  LatentSpec& latent = spec.latent;
  latent.q_rank = keys.whole("attention.q_lora_rank", 0, 1 << 20).value_or(0);
  latent.kv_rank = keys.required("attention.kv_lora_rank", 1, 1 << 20);
  latent.rope_dim = spec.rope.rotary_dim;
  latent.nope_dim = spec.head_dim - latent.rope_dim;
  spec.mixers.assign(static_cast<std::size_t>(spec.n_layers), Mixer::latent);
  // The converter writes a tenth of mscale_all_dim, and takes mscale for the same.
  RopeSpec& rope = spec.rope;
  if (rope.mscale_all_dim) rope.mscale = rope.mscale_all_dim = *rope.mscale_all_dim / 0.1;
  spec.attention_scale = latent_scale(spec);
  read_growth(keys, spec);
  read_grouped(keys, file, model);
}

}  // namespace sinkscope
