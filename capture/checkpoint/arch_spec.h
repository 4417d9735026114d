// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sinkscope {

enum class NormKind { rms, layer_norm };
enum class QkNorm { none, per_head };  // per_head: RMSNorm over head_dim on each head, before RoPE
enum class RopeScaling { none, linear, dynamic, llama3, yarn };

// Rotary positions as the model applies them (rotate-half after loading, whatever the file holds).
// Keys and formulas: formats of `rope_scaling` / `rope_parameters` in Hugging Face configs.
struct RopeSpec {
  double theta = 10000.0;
  int rotary_dim = 0;  // leading dims of a head that are rotated; 0 = no rotary positions
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;
  double low_freq_factor = 1.0, high_freq_factor = 4.0;  // llama3
  double original_context = 0;                           // llama3, yarn, dynamic; 0 = n_ctx
  double beta_fast = 32, beta_slow = 1;                  // yarn
  bool truncate = true;                                  // yarn
  std::optional<double> attention_factor, mscale, mscale_all_dim;
  bool has_divisors = false;  // a tensor (Role::rope_divisors) divides the inverse frequencies
  bool operator==(const RopeSpec&) const = default;
};

// An architecture as data: everything the one forward pass branches on. Names as in
// TransformerLens; the translation from Hugging Face and GGUF keys happens in one place each
// (hf_config.cpp, gguf_config.cpp). Sizes are elements.
struct ArchSpec {
  std::string architecture;  // "llama", "mistral", "qwen2", "qwen3": model_type or GGUF's name
  std::string name;          // the model's own name if it has one, else its folder or file name
  int n_layers = 0, n_heads = 0, n_kv_heads = 0, head_dim = 0;
  int d_model = 0, d_mlp = 0, vocab_size = 0, n_ctx = 0;
  NormKind norm_kind = NormKind::rms;
  double norm_eps = 1e-5;
  double norm_offset = 0;  // effective gain = stored weight + offset (1 for zero-centered norms)
  QkNorm qk_norm = QkNorm::none;
  bool pre_affine = false;  // norms read gain₁ ⊙ x (PreAffine, 2601.22966)
  bool qkv_bias = false, o_bias = false, mlp_bias = false;
  double attention_scale = 0;  // scores = q·k · this; head_dim^-1/2 for the Llama family
  RopeSpec rope;
  std::vector<int> window;  // [n_layers] keys a query sees, its own included; 0 = all before it
  bool has_head = true;     // false: the run ends at the final norm, there are no logits
  bool tied = false;        // the head is the embedding (or the other way round)
  int bos_id = -1, eos_id = -1;  // -1 = none
  bool operator==(const ArchSpec&) const = default;

  int kv_head_of(int head) const { return head / (n_heads / n_kv_heads); }
  int q_width() const { return n_heads * head_dim; }
  int kv_width() const { return n_kv_heads * head_dim; }
};

// What a tensor is for. Layer roles take a block index, the others take kNoLayer.
enum class Role {
  embed,
  unembed,
  ln_final,
  rope_divisors,
  ln1,
  q,
  k,
  v,
  o,
  q_bias,
  k_bias,
  v_bias,
  o_bias,
  q_norm,
  k_norm,
  ln1_post,
  ln2,
  gate,
  up,
  down,
  gate_bias,
  up_bias,
  down_bias,
  ln2_post,
  ln1_pre,
  ln2_pre,
  ln_final_pre,  // PreAffine gains in front of a norm
};
inline constexpr int kNoLayer = -1;

const char* to_string(Role role);      // "embed", "ln1", "q", …
std::string to_string(RopeScaling s);  // "none", "linear", …

}  // namespace sinkscope
