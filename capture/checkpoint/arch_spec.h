// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capture/checkpoint/role.h"

namespace sinkscope {

enum class NormKind { rms, layer_norm };
// per_head: over head_dim on each head; whole: over all heads' dims at once. Both before RoPE.
enum class QkNorm { none, per_head, whole };
// proportional: the whole head turns, but of its pairs only the first part has
// a frequency.
enum class RopeScaling { none, linear, dynamic, llama3, yarn, longrope, proportional };
enum class Activation { silu, gelu, gelu_tanh, relu };
// What a block mixes tokens with: softmax attention, the same over latents (MLA), a gated
// delta-net, which has no attention map, softmax attention with logits by distance (RelativeSpec);
// shared: one head that is key and value of every query head, beside compressed entries
// (DeepSeek-V4).
enum class Mixer { attention, latent, delta, relative, shared };

// How z is gated by the σ of a projection of what the query is made of: not at all, with a value
// for each channel, or with one for each head (2505.06708).
enum class AttnGate { none, elementwise, headwise };

// Rotary positions as the model applies them (rotate-half after loading, whatever the file holds).
// Keys and formulas: formats of `rope_scaling` / `rope_parameters` in Hugging Face configs.
struct RopeSpec {
  double theta = 10000.0;
  int rotary_dim = 0;  // leading dims of a head that are rotated; 0 = no rotary positions
  double partial = 1;  // rotary_dim / head_dim, as a Hugging Face config says
                       // it; proportional: the part of the pairs that turns
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;
  double low_freq_factor = 1.0, high_freq_factor = 4.0;  // llama3
  double original_context = 0;           // llama3, yarn, dynamic, longrope; 0 = n_ctx
  double beta_fast = 32, beta_slow = 1;  // yarn
  bool truncate = true;                  // yarn
  std::optional<double> attention_factor, mscale, mscale_all_dim;
  std::vector<double> short_factor, long_factor;  // longrope [rotary_dim/2]
  bool has_divisors = false;  // a tensor (Role::rope_divisors) divides the inverse frequencies
  bool operator==(const RopeSpec&) const = default;
};

// Which experts a token goes to, and with what weights.
enum class RouterScore {
  softmax,         // softmax over all experts, the k largest
  chosen_softmax,  // softmax over the k largest logits alone
  sigmoid,         // σ of each logit; the choice may add a bias and go by groups
  sqrt_softplus,   // √ln(1 + e^logit), as with sigmoid
};

// The mixture of experts of a block; E = n_experts.
struct MoeSpec {
  int n_experts = 0, n_used = 0, d_expert = 0;  // 0: no block has one
  RouterScore score = RouterScore::softmax;
  bool renormalize = true;  // weights of the chosen ones sum to 1
  double scale = 1;         // factor on the weights
  int n_groups = 1, n_groups_used = 1;
  bool rejected_is_zero = false;  // experts of other groups compete with 0, not −∞
  bool router_bias = false, choice_bias = false, expert_bias = false;
  double clamp = 0, sharpness = 1;  // > 0: min(gate, c), clamp(up, ±c), gate·σ(s·gate)·(up + shift)
  double up_shift = 1;
  double gate_cap = 0, up_cap = 0;  // > 0: cap(g)·σ(g)·cap'(u), cap(x) = c·tanh(x/c)
  int d_shared = 0;                 // width of the shared expert; 0 = none
  bool shared_router = false;       // its share is gated
  bool beside_dense = false;        // the dense MLP runs too, both normed before they are added;
                                    // the router reads the stream, each expert has a factor
  // A gated unit of the experts' own in place of the activation.
  bool has_own_unit() const { return clamp > 0 || gate_cap > 0 || up_cap > 0; }
  bool operator==(const MoeSpec&) const = default;
};

struct LatentSpec {  // MLA; of a shared mixer: its query's rank and the parts of its heads
  int q_rank = 0, kv_rank = 0, nope_dim = 0, rope_dim = 0;
  bool rope_in_pairs = true;
  bool query_sees_both = false;  // q and gate read [normed latent | latent]
  bool operator==(const LatentSpec&) const = default;
};

struct IndexSpec {  // sparse selection: each query sees the top_k best keys; 0 = all
  int n_heads = 0, head_dim = 0, top_k = 0;
  int block = 0;  // > 0: the best blocks of so many keys, and the incomplete one
  bool operator==(const IndexSpec&) const = default;
};

struct DeltaSpec {  // gated delta-net
  int n_key_heads = 0, n_value_heads = 0, key_dim = 0, value_dim = 0, n_taps = 0;
  int narrow = 0;  // > 0: a decay for each key channel; gate and decay go through this width (KDA)
  int n_channels() const { return 2 * n_key_heads * key_dim + n_value_heads * value_dim; }
  bool operator==(const DeltaSpec&) const = default;
};

// Mixer::relative: no rotary positions; r_i · profile[:, i − j] joins the score of a key that is
// less than the profile's length behind. Keys, values and what a half puts out go through short
// convolutions. Blocks without a window read three inputs (for q, k and v), each behind a norm of
// its own, and the taps of their key and value convolutions depend on them.
struct RelativeSpec {
  int dim = 0;               // of r
  std::vector<int> extents;  // [n_layers] lengths of the profiles
  int n_taps = 0;
  double qk_limit = 0, r_limit = 0;     // lengths of a head's q and k, and of r, at most; 0 = any
  double growth = 0, growth_floor = 1;  // without a window: q, r ·= 1 + g·ln(max(1, (t+1)/floor))
  bool operator==(const RelativeSpec&) const = default;
};

// Several residual streams (hyper-connections): what a half reads is a mix of them, and each takes
// its share of what the half puts out.
enum class StreamMix {
  gated,     // gates on every element of the normed streams, which are only added to (Qwen4-Exp)
  balanced,  // a factor a stream, and a doubly stochastic matrix between them (DeepSeek-V4)
};

struct StreamSpec {
  int n = 1;
  StreamMix mix = StreamMix::gated;
  int rank = 0;      // gated: of the gates
  int n_rounds = 0;  // balanced: Sinkhorn's rounds
  double eps = 0;    // balanced: in factors and divisors
  bool operator==(const StreamSpec&) const = default;
};

struct NgramSpec {  // embeddings of hashed n-grams, added to the streams in front of some layers
  int width = 0;    // of all heads together; 0 = none
  int longest = 0;  // tokens; there are n-grams of 2 and more
  int n_heads = 0;  // of each length
  int n_taps = 0;   // of the convolution behind it
  int n_shards = 1;
  int n_hashes() const { return (longest - 1) * n_heads; }
  bool operator==(const NgramSpec&) const = default;
};

// An architecture as data: everything the one forward pass branches on. Names as in
// TransformerLens; the translation from Hugging Face and GGUF keys happens in one place each
// (hf_config.cpp with families/, gguf_config.cpp). Sizes are elements. Lists by layer hold n_layers
// entries, or none where all layers are alike.
struct ArchSpec {
  std::string architecture;  // "llama", "qwen3_moe", "gpt_neox": model_type or GGUF's name
  std::string name;          // the model's own name if it has one, else its folder or file name
  int n_layers = 0, n_heads = 0, n_kv_heads = 0, head_dim = 0;
  int value_dim = 0;                                      // of a head's values; 0 = head_dim
  std::vector<int> layer_kv_heads, layer_head_dims;       // where they differ from layer to layer
  int d_model = 0, d_mlp = 0, vocab_size = 0, n_ctx = 0;  // d_mlp 0: experts everywhere
  std::vector<int> layer_mlps;                            // d_mlp, where it differs

  NormKind norm_kind = NormKind::rms;
  double norm_eps = 1e-5;
  double norm_offset = 0;  // effective gain = stored weight + offset (1 for zero-centered norms)
  bool norm_bias = false;
  bool has_ln1 = true, has_ln2 = true;              // norms before attention and MLP
  bool has_ln1_post = false, has_ln2_post = false;  // norms of what they put out
  bool post_norm = false;                           // those stand behind the add: x ← N(x + f(x))
  bool has_final_norm = true;
  bool embed_norm = false;  // a norm of the embedding
  QkNorm qk_norm = QkNorm::none;
  bool pre_affine = false;  // norms read gain₁ ⊙ x (PreAffine, 2601.22966)
  int norm_gate_rank = 0;   // > 0: GatedNorm at ln1, and at ln2 of blocks with experts

  StreamSpec streams;
  NgramSpec ngram;
  std::vector<bool> ngram_layers;
  bool parallel = false;      // attention and MLP read the same state: no resid_mid
  double embed_scale = 1;     // of the embedding rows
  double residual_scale = 1;  // of what a sub-layer adds
  double logit_scale = 1;     // of the logits, before the cap
  double logit_cap = 0;       // c·tanh(x/c); 0 = none
  bool learned_positions = false;
  int position_offset = 0;   // row of position 0
  int n_types = 0;           // > 0: token types, of which row 0 is added everywhere
  int d_per_layer = 0;       // > 0: a small input of its own for every layer, added behind its MLP
  bool layer_scale = false;  // what a layer puts out is multiplied by a number of its own
  // > 0: attention over depth. The stream restarts every so many layers, and each half reads a mix
  // of the sums before (the first of them the embedding) and of the stream (depth_mix.h).
  int depth_block = 0;

  std::vector<Mixer> mixers;
  bool bidirectional = false;  // a query sees later keys, too
  bool qkv_bias = false, o_bias = false;
  bool value_norm = false;           // v / rms(v), no gain
  std::vector<bool> keys_as_values;  // layers whose values are their keys,
                                     // before norm and rope
  std::vector<int> kv_source;        // the layer whose keys and values it uses:
                                     // itself, or an earlier one
  AttnGate attn_gate = AttnGate::none;
  double attention_scale = 0;  // scores = q·k · this; head_dim^-1/2 for the Llama family; 0: that
  double score_cap = 0;        // c·tanh(s/c) before the mask; 0 = none
  double value_scale = 1;
  double query_growth = 0, query_growth_context = 0;  // q ·= 1 + b·ln(1 + ⌊t/context⌋)
  std::vector<bool> sinks;                            // layers with a logit for no key
  bool sink_projection = false;  // that logit is a projection of what the query was made of
  RopeSpec rope;
  std::vector<RopeSpec> layer_ropes;  // where they differ from layer to layer
  std::vector<int> window;  // [n_layers] keys a query sees, its own included; 0 = all before it
  LatentSpec latent;
  IndexSpec index;
  DeltaSpec delta;
  RelativeSpec relative;
  bool delta_sigmoid = false;        // the delta-net's gate is σ, not silu
  std::vector<int> compress;         // tokens of a compressed key; 0 = the layer has none
  std::vector<bool> compress_pairs;  // entries see two windows, and the index chooses among them
  int o_groups = 1, o_rank = 0;      // rank > 0: the output goes through a narrow layer by groups

  Activation activation = Activation::silu;
  bool mlp_gated = true;  // act(gate)·up; false: act(up)
  bool mlp_bias = false;
  MoeSpec moe;
  std::vector<bool> moe_layers;
  std::vector<bool> table_layers;  // experts by a table of tokens instead of the router's choice

  bool has_head = true;          // false: the run ends at the final norm, there are no logits
  int n_logits = 0;              // tokens that can be predicted; 0 = all vocab_size
  bool tied = false;             // the head is the embedding (or the other way round)
  int bos_id = -1, eos_id = -1;  // -1 = none
  bool operator==(const ArchSpec&) const = default;

  bool has_streams() const { return streams.n > 1; }
  int state_width() const { return d_model * streams.n; }  // of a residual state, all streams
  bool has_ngrams(int layer) const { return !ngram_layers.empty() && ngram_layers[at(layer)]; }
  int compress_of(int layer) const { return compress.empty() ? 0 : compress[at(layer)]; }
  bool compresses_pairs(int layer) const {
    return !compress_pairs.empty() && compress_pairs[at(layer)];
  }
  bool has_index(int layer) const {
    return index.n_heads > 0 && mixer(layer) != Mixer::delta &&
           (mixer(layer) != Mixer::shared || compresses_pairs(layer));
  }
  bool has_route_table(int layer) const { return !table_layers.empty() && table_layers[at(layer)]; }
  Mixer mixer(int layer) const { return mixers.empty() ? Mixer::attention : mixers[at(layer)]; }
  bool has_experts(int layer) const { return moe.n_experts > 0 && moe_layers[at(layer)]; }
  bool has_sink(int layer) const { return !sinks.empty() && sinks[at(layer)]; }
  // What q, k and v are made of: one normed input, or one for each.
  int n_inputs(int layer) const {
    return mixer(layer) == Mixer::relative && window[at(layer)] == 0 ? 3 : 1;
  }
  bool starts_depth_block(int layer) const { return depth_block > 0 && layer % depth_block == 0; }
  // Sums over depth that are closed when `n` layers are done.
  int n_block_states(int n) const {
    return depth_block > 0 ? (n + depth_block - 1) / depth_block : 0;
  }
  int head_rows() const { return n_logits > 0 ? n_logits : vocab_size; }
  bool has_norm_gate(int layer, Role norm) const {
    return norm_gate_rank > 0 && (norm == Role::ln1 || (norm == Role::ln2 && has_experts(layer)));
  }
  const RopeSpec& rope_of(int layer) const {
    return layer_ropes.empty() ? rope : layer_ropes[at(layer)];
  }
  int kv_heads(int layer) const {
    return layer_kv_heads.empty() ? n_kv_heads : layer_kv_heads[at(layer)];
  }
  int head_dim_of(int layer) const {
    return layer_head_dims.empty() ? head_dim : layer_head_dims[at(layer)];
  }
  int mlp_of(int layer) const { return layer_mlps.empty() ? d_mlp : layer_mlps[at(layer)]; }
  int source_of(int layer) const { return kv_source.empty() ? layer : kv_source[at(layer)]; }
  bool has_own_keys(int layer) const { return source_of(layer) == layer; }
  bool has_own_values(int layer) const {
    return has_own_keys(layer) && (keys_as_values.empty() || !keys_as_values[at(layer)]);
  }
  int widest_head() const { return widest(head_dim, layer_head_dims); }
  int widest_mlp() const { return widest(d_mlp, layer_mlps); }
  int d_value() const { return value_dim > 0 ? value_dim : widest_head(); }
  int d_value_of(int layer) const { return value_dim > 0 ? value_dim : head_dim_of(layer); }
  // Values of a head's gate; 0 = it has none.
  int gate_dim() const { return gate_dim(d_value()); }
  int gate_dim_of(int layer) const { return gate_dim(d_value_of(layer)); }
  double scale_of(int layer) const;  // of the scores
  int kv_head_of(int head) const { return head / (n_heads / n_kv_heads); }
  int q_width() const { return n_heads * widest_head(); }
  int kv_width() const { return n_kv_heads * widest_head(); }
  int z_width() const { return n_heads * d_value(); }
  std::vector<int> attention_layers() const;  // those with softmax attention

 private:
  static std::size_t at(int layer) { return static_cast<std::size_t>(layer); }
  int gate_dim(int values) const {
    return attn_gate == AttnGate::none ? 0 : attn_gate == AttnGate::headwise ? 1 : values;
  }
  static int widest(int usual, const std::vector<int>& by_layer) {
    return by_layer.empty() ? usual : *std::max_element(by_layer.begin(), by_layer.end());
  }
};

// Of that norm: MLA's latent norms have one of their own, fixed in the code of every family.
double norm_eps(const ArchSpec& spec, Role norm);

std::string to_string(RopeScaling s);  // "none", "linear", …
std::string to_string(Activation a);   // "silu", "gelu", …

}  // namespace sinkscope
