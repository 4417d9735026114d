// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/gguf_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <set>
#include <stdexcept>
#include <vector>

#include "capture/checkpoint/model_files.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/gguf_convert.h"

namespace sinkscope::test {
namespace {

struct BlockTensor {
  Role role;
  const char* name;
};

constexpr BlockTensor kBlockTensors[] = {
    {Role::ln1, "attn_norm.weight"},
    {Role::q, "attn_q.weight"},
    {Role::k, "attn_k.weight"},
    {Role::v, "attn_v.weight"},
    {Role::o, "attn_output.weight"},
    {Role::q_bias, "attn_q.bias"},
    {Role::k_bias, "attn_k.bias"},
    {Role::v_bias, "attn_v.bias"},
    {Role::o_bias, "attn_output.bias"},
    {Role::q_norm, "attn_q_norm.weight"},
    {Role::k_norm, "attn_k_norm.weight"},
    {Role::ln2, "ffn_norm.weight"},
    {Role::ln1_bias, "attn_norm.bias"},
    {Role::ln2_bias, "ffn_norm.bias"},
    {Role::sink, "attn_sinks.weight"},
    {Role::ln1_post, "post_attention_norm.weight"},
    {Role::ln2_post, "post_ffw_norm.weight"},
    {Role::router, "ffn_gate_inp.weight"},
    {Role::router_bias, "ffn_gate_inp.bias"},
    {Role::expert_gate, "ffn_gate_exps.weight"},
    {Role::expert_up, "ffn_up_exps.weight"},
    {Role::expert_down, "ffn_down_exps.weight"},
    {Role::expert_gate_bias, "ffn_gate_exps.bias"},
    {Role::expert_up_bias, "ffn_up_exps.bias"},
    {Role::expert_down_bias, "ffn_down_exps.bias"},
    {Role::gate, "ffn_gate.weight"},
    {Role::up, "ffn_up.weight"},
    {Role::down, "ffn_down.weight"},
    {Role::gate_bias, "ffn_gate.bias"},
    {Role::up_bias, "ffn_up.bias"},
    {Role::down_bias, "ffn_down.bias"},
    {Role::choice_bias, "exp_probs_b.bias"},
    {Role::shared_gate, "ffn_gate_shexp.weight"},
    {Role::shared_up, "ffn_up_shexp.weight"},
    {Role::shared_down, "ffn_down_shexp.weight"},
    {Role::delta_norm, "ssm_norm.weight"},
    {Role::q_a, "attn_q_a.weight"},
    {Role::q_a_norm, "attn_q_a_norm.weight"},
    {Role::kv_a, "attn_kv_a_mqa.weight"},
    {Role::kv_a_norm, "attn_kv_a_norm.weight"},
    {Role::ln1_post_bias, "post_attention_norm.bias"},
    {Role::ln2_post_bias, "post_ffw_norm.bias"},
};

constexpr BlockTensor kOuterTensors[] = {
    {Role::embed, "token_embd.weight"},
    {Role::ln_final, "output_norm.weight"},
    {Role::ln_final_bias, "output_norm.bias"},
    {Role::pos_embed, "position_embd.weight"},
    {Role::type_embed, "token_types.weight"},
    {Role::embed_norm, "token_embd_norm.weight"},
    {Role::embed_norm_bias, "token_embd_norm.bias"},
};

// Names that some families have instead.
std::string name_of(const BlockTensor& tensor, const std::string& arch) {
  const std::string name = tensor.name;
  if ((arch == "gpt-oss" || arch == "qwen3next") && tensor.role == Role::ln2)
    return "post_attention_norm.weight";
  if (arch == "deepseek2" && tensor.role == Role::q) return "attn_q_b.weight";
  if (arch == "bert" && name.starts_with("post_attention_norm"))
    return "attn_output_norm" + name.substr(19);
  if (arch == "bert" && name.starts_with("post_ffw_norm"))
    return "layer_output_norm" + name.substr(13);
  return name;
}

std::string gguf_architecture(const std::string& model_type) {
  static const std::map<std::string, std::string> other = {
      {"mistral", "llama"},        {"mixtral", "llama"},        {"qwen3_moe", "qwen3moe"},
      {"gpt_neox", "gptneox"},     {"gemma3_text", "gemma3"},   {"gpt_oss", "gpt-oss"},
      {"olmo3", "olmo2"},          {"qwen3_next", "qwen3next"}, {"ministral3", "mistral3"},
      {"deepseek_v3", "deepseek2"}};
  const auto found = other.find(model_type);
  return found == other.end() ? model_type : found->second;
}

bool is_stored_in_pairs(const std::string& arch) {
  return arch == "llama" || arch == "granite" || arch == "smollm3" || arch == "mistral3";
}

bool is_rotated(Role role) {
  return role == Role::q || role == Role::k || role == Role::q_bias || role == Role::k_bias;
}

// GGUF row (head h, 2j+s) = Hugging Face row (head h, j + s*n/2) for the n rotary rows of a head.
std::vector<float> into_pairs(const std::vector<float>& values, std::int64_t n_rows,
                              std::int64_t head_dim, std::int64_t rotary_dim) {
  const auto row_size = static_cast<std::ptrdiff_t>(values.size()) / n_rows;
  std::vector<float> permuted = values;
  for (std::int64_t head = 0; head < n_rows / head_dim; ++head) {
    for (std::int64_t j = 0; j < rotary_dim / 2; ++j) {
      for (std::int64_t s = 0; s < 2; ++s) {
        const std::int64_t from = head * head_dim + j + s * (rotary_dim / 2);
        const std::int64_t to = head * head_dim + 2 * j + s;
        std::copy_n(values.begin() + from * row_size, row_size, permuted.begin() + to * row_size);
      }
    }
  }
  return permuted;
}

// What llama3 scaling divides each inverse frequency by.
std::vector<float> llama3_divisors(const RopeSpec& rope, int n_ctx) {
  const double context = rope.original_context > 0 ? rope.original_context : n_ctx;
  std::vector<float> divisors;
  for (int i = 0; i < rope.rotary_dim; i += 2) {
    const double frequency = std::pow(rope.theta, -static_cast<double>(i) / rope.rotary_dim);
    const double wavelength = 2 * std::numbers::pi / frequency;
    double divisor = 1;
    if (wavelength > context / rope.low_freq_factor) {
      divisor = rope.factor;
    } else if (wavelength >= context / rope.high_freq_factor) {
      const double smooth = (context / wavelength - rope.low_freq_factor) /
                            (rope.high_freq_factor - rope.low_freq_factor);
      divisor = 1 / ((1 - smooth) / rope.factor + smooth);
    }
    divisors.push_back(static_cast<float>(divisor));
  }
  return divisors;
}

void write_rope(const ArchSpec& spec, const std::string& arch, GgufBytes& file) {
  const RopeSpec& rope = spec.rope;
  const auto key = [&](const char* name) { return arch + ".rope." + name; };
  const auto real = [&](const char* name, double value) {
    file.key(key(name), static_cast<float>(value));
  };
  file.key(key("dimension_count"), static_cast<std::uint32_t>(rope.rotary_dim));
  real("freq_base", rope.theta);
  switch (rope.scaling) {
    case RopeScaling::none:
      return;
    case RopeScaling::llama3:
      file.floats("rope_freqs.weight", {rope.rotary_dim / 2}, llama3_divisors(rope, spec.n_ctx));
      return;
    case RopeScaling::linear:
      file.key(key("scaling.type"), "linear");
      real("scaling.factor", rope.factor);
      return;
    case RopeScaling::yarn:
      if (arch == "mistral3" && rope.mscale == 1.0)
        real("scaling.yarn_log_multiplier", *rope.mscale_all_dim);
      else if (arch == "deepseek2" && rope.mscale == rope.mscale_all_dim)
        real("scaling.yarn_log_multiplier", 0.1 * *rope.mscale_all_dim);
      else if (rope.mscale || rope.mscale_all_dim)
        throw std::invalid_argument("GGUF has no key for this yarn scaling");
      if (rope.attention_factor)  // beside the usual growth
        real("scaling.attn_factor", *rope.attention_factor / (0.1 * std::log(rope.factor) + 1));
      file.key(key("scaling.type"), "yarn");
      real("scaling.factor", rope.factor);
      file.key(key("scaling.original_context_length"),
               static_cast<std::uint32_t>(rope.original_context > 0 ? rope.original_context
                                                                    : spec.n_ctx));
      real("scaling.yarn_beta_fast", rope.beta_fast);
      real("scaling.yarn_beta_slow", rope.beta_slow);
      return;
    case RopeScaling::longrope: {
      const auto floats = [](const std::vector<double>& values) {
        return std::vector<float>(values.begin(), values.end());
      };
      file.floats("rope_factors_long.weight", {rope.rotary_dim / 2}, floats(rope.long_factor));
      file.floats("rope_factors_short.weight", {rope.rotary_dim / 2}, floats(rope.short_factor));
      file.key(key("scaling.original_context_length"),
               static_cast<std::uint32_t>(rope.original_context));
      return;
    }
    case RopeScaling::proportional:
    case RopeScaling::dynamic:
      throw std::invalid_argument("GGUF cannot say this rope scaling");
  }
}

// Writes whole numbers under the architecture's name: count("block_count", 3).
auto counts_of(const std::string& arch, GgufBytes& file) {
  return [&](const char* name, int value) {
    file.key(arch + "." + name, static_cast<std::uint32_t>(value));
  };
}

void write_delta_keys(const ArchSpec& spec, const std::string& arch, GgufBytes& file) {
  const DeltaSpec& delta = spec.delta;
  const auto count = counts_of(arch, file);
  count("ssm.state_size", delta.key_dim);
  count("ssm.group_count", delta.n_key_heads);
  count("ssm.time_step_rank", delta.n_value_heads);
  count("ssm.inner_size", delta.n_value_heads * delta.value_dim);
  count("ssm.conv_kernel", delta.n_taps);
  const auto first = std::find(spec.mixers.begin(), spec.mixers.end(), Mixer::attention);
  count("full_attention_interval", static_cast<int>(first - spec.mixers.begin()) + 1);
}

// The current form caches the latent as one key: its sizes stand in the usual keys.
void write_head_keys(const ArchSpec& spec, const std::string& arch, GgufForm form,
                     GgufBytes& file) {
  const auto count = counts_of(arch, file);
  const LatentSpec& latent = spec.latent;
  const bool is_latent = latent.kv_rank > 0, is_one = is_latent && form == GgufForm::current;
  count("attention.head_count", spec.n_heads);
  count("attention.head_count_kv", is_one ? 1 : spec.n_kv_heads);
  count("attention.key_length", is_one ? latent.kv_rank + latent.rope_dim : spec.head_dim);
  count("attention.value_length", is_one ? latent.kv_rank : spec.d_value());
  if (!is_latent) return;
  count("attention.kv_lora_rank", latent.kv_rank);
  if (latent.q_rank > 0) count("attention.q_lora_rank", latent.q_rank);
  if (!is_one) return;
  count("attention.key_length_mla", spec.head_dim);
  count("attention.value_length_mla", spec.d_value());
}

void write_expert_keys(const ArchSpec& spec, const std::string& arch, GgufBytes& file) {
  const MoeSpec& moe = spec.moe;
  const auto count = counts_of(arch, file);
  count("expert_count", moe.n_experts);
  count("expert_used_count", moe.n_used);
  count("expert_feed_forward_length", moe.d_expert);
  if (arch == "qwen3next") count("expert_shared_feed_forward_length", moe.d_shared);
  if (arch != "deepseek2") return;
  count("expert_shared_count", moe.d_shared / moe.d_expert);
  count("expert_gating_func", moe.score == RouterScore::sigmoid ? 2 : 1);
  count("expert_group_count", moe.n_groups);
  count("expert_group_used_count", moe.n_groups_used);
  file.key(arch + ".expert_weights_norm", moe.renormalize);
  file.key(arch + ".expert_weights_scale", static_cast<float>(moe.scale));
}

void write_keys(const ArchSpec& spec, const std::string& arch, GgufForm form, GgufBytes& file) {
  const auto count = counts_of(arch, file);
  file.key("general.architecture", arch).key("general.name", spec.name);
  count("block_count", spec.n_layers);
  count("context_length", spec.n_ctx);
  count("embedding_length", spec.d_model);
  count("feed_forward_length", spec.d_mlp > 0 ? spec.d_mlp : spec.moe.d_expert);
  count("vocab_size", spec.vocab_size);
  write_head_keys(spec, arch, form, file);
  const bool is_rms = spec.norm_kind == NormKind::rms;
  const auto real = [&](const char* name, double value) {
    file.key(arch + "." + name, static_cast<float>(value));
  };
  real(is_rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", spec.norm_eps);
  if (arch != "deepseek2" &&
      spec.attention_scale != 1 / std::sqrt(static_cast<double>(spec.head_dim)))
    real("attention.scale", spec.attention_scale);
  if (spec.score_cap > 0) real("attn_logit_softcapping", spec.score_cap);
  if (spec.logit_cap > 0) real("final_logit_softcapping", spec.logit_cap);
  if (arch == "granite") {
    real("embedding_scale", spec.embed_scale);
    real("residual_scale", spec.residual_scale);
    real("logit_scale", 1 / spec.logit_scale);
  }
  if (arch == "gptneox") file.key("gptneox.use_parallel_residual", spec.parallel);
  if (spec.moe.n_experts > 0) write_expert_keys(spec, arch, file);
  if (spec.delta.n_key_heads > 0) write_delta_keys(spec, arch, file);
  if (spec.query_growth != 0) real("attention.temperature_scale", spec.query_growth);
  if (spec.bidirectional) file.key(arch + ".attention.causal", false);
  const int window =
      spec.window.empty() ? 0 : *std::max_element(spec.window.begin(), spec.window.end());
  if (window > 0) {
    count("attention.sliding_window", window);
    std::vector<bool> windowed;
    for (const int width : spec.window) windowed.push_back(width > 0);
    std::string flags =
        GgufBytes::raw(std::uint32_t{7}) + GgufBytes::raw(std::uint64_t{windowed.size()});
    for (const bool flag : windowed) flags += flag ? '\1' : '\0';
    file.key_raw(arch + ".attention.sliding_window_pattern", 9, flags);
  }
  for (std::size_t layer = 0; arch == "gemma3" && layer < spec.window.size(); ++layer)
    if (spec.window[layer] > 0) {
      real("rope.freq_base_swa", spec.layer_ropes[layer].theta);
      break;
    }
  if (spec.bos_id >= 0)
    file.key("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(spec.bos_id));
  if (spec.eos_id >= 0)
    file.key("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(spec.eos_id));
}

}  // namespace

std::string write_gguf(const ModelFiles& model, const std::string& path, GgufForm form) {
  const ArchSpec& spec = model.spec();
  const std::string arch = gguf_architecture(spec.architecture);
  GgufBytes file;
  write_keys(spec, arch, form, file);
  if (spec.rope.rotary_dim > 0) write_rope(spec, arch, file);
  const auto add = [&](Role role, int layer, const std::string& name) {
    if (!model.has(role, layer)) return;
    const std::int64_t n_rows = model.rows(role, layer), n_cols = model.cols(role, layer);
    const bool is_vector = n_rows == 1;
    std::vector<float> values = converted_values(model, role, layer);
    if (is_stored_in_pairs(arch) && is_rotated(role)) {
      values = into_pairs(values, is_vector ? n_cols : n_rows, spec.head_dim, spec.rope.rotary_dim);
    }
    std::vector<std::int64_t> shape = {n_rows, n_cols};
    if (is_vector) shape = {n_cols};
    if (role == Role::expert_gate || role == Role::expert_up || role == Role::expert_down)
      shape = {spec.moe.n_experts, n_rows / spec.moe.n_experts, n_cols};
    file.floats(name, shape, values);
  };
  for (const BlockTensor& tensor : kOuterTensors) add(tensor.role, kNoLayer, tensor.name);
  // Converters write GPT-2's tied head a second time.
  if ((!spec.tied || arch == "gpt2") && spec.has_head)
    add(Role::unembed, kNoLayer, "output.weight");
  for (int layer = 0; layer < spec.n_layers; ++layer) {
    std::set<Role> converted;
    for (const ConvertedTensor& tensor : converted_tensors(model, arch, layer, form)) {
      file.floats(fmt::format("blk.{}.{}", layer, tensor.name), tensor.shape, tensor.values);
      converted.insert(tensor.roles.begin(), tensor.roles.end());
    }
    for (const BlockTensor& tensor : kBlockTensors)
      if (!converted.contains(tensor.role))
        add(tensor.role, layer, fmt::format("blk.{}.{}", layer, name_of(tensor, arch)));
  }
  return file.write(path);
}

}  // namespace sinkscope::test
