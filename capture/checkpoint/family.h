// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <string>

#include "capture/checkpoint/hf_config.h"
#include "capture/checkpoint/json_keys.h"
#include "capture/checkpoint/packing.h"
#include "capture/checkpoint/role_table.h"

namespace sinkscope {

// Where a role is found. Several lines of one role are spellings: the first that exists counts.
struct TensorName {
  Role role;
  const char* name;  // after the layer's number, or after the prefix; whole where it has {layer} or
                     // {layer-1}
  Packing packing = Packing::own;
  int only_layer = kNoLayer;  // a spelling of this block alone; then the name is whole
};

// One family as data, of Hugging Face folders or (gguf_families.h) of GGUF files. Defaults are
// those of transformers' configuration classes, for keys that config.json lacks; 0 = the key must
// be there.
struct Family {
  const char* model_type;
  int vocab_size = 0, d_mlp = 0, n_ctx = 0, bos_id = -1, eos_id = -1;
  int d_model = 0, n_layers = 0, n_heads = 0;
  bool tied = false;
  double rope_theta = 10000;
  double rotary_part = 1;  // partial_rotary_factor
  bool has_rope = true;
  bool has_delta = false;                         // layer type "linear_attention"
  const char* full_type = "full_attention";       // another word for it
  const char* window_type = "sliding_attention";  // and for windowed layers, and their width's key
  const char* window_key = "sliding_window";
  bool has_own_types = false;  // what layer_types say is read by `read`
  const char* activation = "silu";
  std::span<const TensorName> names = {};  // what differs from the Llama family, or from `usual`
  std::span<const TensorName> usual = {};
  const char* prefix = "model.";  // optional in the files
  const char* layers = "layers.";
  const char* reach_key = nullptr;  // another key for the window: how far back it goes, window − 1
  bool is_complete = false;         // names are all there are; the spec holds every size already
  float stored_offset = 0;          // the part of norm_offset that norms in the file hold already
  // Keys that only this family has; sizes, norms, windows by layer_types and rope are read already.
  void (*read)(const JsonKeys& keys, HfConfig& out) = nullptr;
};

// GPT-OSS as OpenAI's own files have it; no model_type that a config.json would say.
inline constexpr const char* kOpenAiGptOss = "gpt_oss (OpenAI)";

// Null for a model_type that is not known.
const Family* find_family(const std::string& model_type);
// The lines of one role, which stand together.
std::span<const TensorName> lines_of(std::span<const TensorName> names, Role role);
// Names of the Llama family, on which the others of Hugging Face build.
std::span<const TensorName> llama_names();
// Spellings of a role in a family's files; empty where it has none.
std::span<const TensorName> names_of(const Family& family, Role role);

// Shape of the stored tensor that a role lies in, and which part of it is the role's.
struct Packed {
  std::vector<std::int64_t> shape;
  std::string because;  // in the config's words
  TensorView view;
};
Packed packed(Packing packing, Role role, const ArchSpec& spec, int layer);

// For the families' readers. Windows of `width` on the layers that `is_windowed` names, where
// config.json has no layer_types; sliding_window null = none, absent = `fallback`.
template <class F>
void window_layers(const JsonKeys& keys, int fallback, HfConfig& out, const F& is_windowed) {
  if (!out.layer_types.empty()) return;
  std::optional<std::int64_t> width = keys.whole("sliding_window", 1, 1 << 26);
  if (!width && !keys.is_null("sliding_window") && fallback > 0) width = fallback;
  for (int layer = 0; layer < out.spec.n_layers && width; ++layer)
    if (is_windowed(layer))
      out.spec.window[static_cast<std::size_t>(layer)] = static_cast<int>(*width);
}

// Reads attention_bias into the spec: q, k, v and o alike.
void read_attention_bias(const JsonKeys& keys, HfConfig& out);
// Top-k of softmax over num_experts experts; sizes under the names that families give them.
void read_experts(const JsonKeys& keys, std::initializer_list<const char*> count,
                  std::initializer_list<const char*> used, const char* width, HfConfig& out);
// Blocks with experts as Qwen says it: not in mlp_only_layers, every decoder_sparse_step-th.
void read_sparse_layers(const JsonKeys& keys, std::vector<std::int64_t> fallback, HfConfig& out);

// Scores of latent attention, which grow with the contexts that yarn covers, by the square of its
// factor.
double latent_scale(const ArchSpec& spec);
// MLA: the latents' sizes, attention scale and mixers of all layers.
void read_latent(const JsonKeys& keys, HfConfig& out);
// DeepSeek's mixture: sigmoid scores, choice within groups, an ungated shared expert; which layers
// have it by mlp_layer_types, else from first_k_dense_replace on.
void read_grouped_experts(const JsonKeys& keys, HfConfig& out);

}  // namespace sinkscope
