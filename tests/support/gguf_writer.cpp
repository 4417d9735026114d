// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/gguf_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <stdexcept>
#include <vector>

#include "capture/checkpoint/model_files.h"
#include "tests/support/gguf_bytes.h"

namespace sinkscope::test {
namespace {

struct BlockTensor {
  Role role;
  const char* name;
};

constexpr BlockTensor kBlockTensors[] = {
    {Role::ln1, "attn_norm.weight"},      {Role::q, "attn_q.weight"},
    {Role::k, "attn_k.weight"},           {Role::v, "attn_v.weight"},
    {Role::o, "attn_output.weight"},      {Role::q_bias, "attn_q.bias"},
    {Role::k_bias, "attn_k.bias"},        {Role::v_bias, "attn_v.bias"},
    {Role::o_bias, "attn_output.bias"},   {Role::q_norm, "attn_q_norm.weight"},
    {Role::k_norm, "attn_k_norm.weight"}, {Role::ln2, "ffn_norm.weight"},
    {Role::gate, "ffn_gate.weight"},      {Role::up, "ffn_up.weight"},
    {Role::down, "ffn_down.weight"},      {Role::gate_bias, "ffn_gate.bias"},
    {Role::up_bias, "ffn_up.bias"},       {Role::down_bias, "ffn_down.bias"},
};

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
      if (rope.mscale || rope.mscale_all_dim || rope.attention_factor)
        throw std::invalid_argument("GGUF has no key for this yarn scaling");
      file.key(key("scaling.type"), "yarn");
      real("scaling.factor", rope.factor);
      file.key(key("scaling.original_context_length"),
               static_cast<std::uint32_t>(rope.original_context > 0 ? rope.original_context
                                                                    : spec.n_ctx));
      real("scaling.yarn_beta_fast", rope.beta_fast);
      real("scaling.yarn_beta_slow", rope.beta_slow);
      return;
    case RopeScaling::dynamic:
      throw std::invalid_argument("GGUF cannot say dynamic rope scaling");
  }
}

void write_keys(const ArchSpec& spec, const std::string& arch, GgufBytes& file) {
  const auto count = [&](const char* name, int value) {
    file.key(arch + "." + name, static_cast<std::uint32_t>(value));
  };
  file.key("general.architecture", arch).key("general.name", spec.name);
  count("block_count", spec.n_layers);
  count("context_length", spec.n_ctx);
  count("embedding_length", spec.d_model);
  count("feed_forward_length", spec.d_mlp);
  count("vocab_size", spec.vocab_size);
  count("attention.head_count", spec.n_heads);
  count("attention.head_count_kv", spec.n_kv_heads);
  count("attention.key_length", spec.head_dim);
  count("attention.value_length", spec.head_dim);
  file.key(arch + ".attention.layer_norm_rms_epsilon", static_cast<float>(spec.norm_eps));
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
  if (spec.bos_id >= 0)
    file.key("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(spec.bos_id));
  if (spec.eos_id >= 0)
    file.key("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(spec.eos_id));
}

}  // namespace

std::string write_gguf(const ModelFiles& model, const std::string& path) {
  const ArchSpec& spec = model.spec();
  const std::string arch = spec.architecture == "mistral" ? "llama" : spec.architecture;
  GgufBytes file;
  write_keys(spec, arch, file);
  write_rope(spec, arch, file);
  const auto add = [&](Role role, int layer, const std::string& name) {
    const std::int64_t n_rows = model.rows(role, layer), n_cols = model.cols(role, layer);
    const bool is_vector = n_rows == 1;
    std::vector<float> values(static_cast<std::size_t>(n_rows * n_cols));
    model.read_rows(role, layer, 0, n_rows, values.data());
    if (arch == "llama" && is_rotated(role)) {
      values = into_pairs(values, is_vector ? n_cols : n_rows, spec.head_dim, spec.rope.rotary_dim);
    }
    const std::vector<std::int64_t> matrix = {n_rows, n_cols};
    file.floats(name, is_vector ? std::vector<std::int64_t>{n_cols} : matrix, values);
  };
  add(Role::embed, kNoLayer, "token_embd.weight");
  add(Role::ln_final, kNoLayer, "output_norm.weight");
  if (!spec.tied && spec.has_head) add(Role::unembed, kNoLayer, "output.weight");
  for (int layer = 0; layer < spec.n_layers; ++layer) {
    for (const BlockTensor& tensor : kBlockTensors) {
      if (model.has(tensor.role, layer))
        add(tensor.role, layer, fmt::format("blk.{}.{}", layer, tensor.name));
    }
  }
  return file.write(path);
}

}  // namespace sinkscope::test
