// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "capture/checkpoint/family.h"
#include "capture/checkpoint/hf_rope.h"
#include "capture/checkpoint/json_keys.h"
#include "capture/checkpoint/printable.h"
#include "capture/checkpoint/text_file.h"
#include "core/error.h"

namespace sinkscope {
namespace {

using Json = nlohmann::json;

// Bounds of what is believed; heads times head_dim stays an int.
constexpr int kMostLayers = 1024, kMostHeads = 1 << 14, kLargestHead = 1 << 16;
constexpr int kLargestSize = 1 << 26;

// Whether the family's norms multiply by 1 + w; -1 when that is not known here.
int norm_offset_of(const std::string& model_type) {
  for (const char* shifted :
       {"gemma", "gemma2", "gemma3", "gemma3_text", "qwen3_next", "qwen3_5", "qwen3_5_text",
        "qwen3_5_moe", "qwen3_5_moe_text", "qwen4_exp", "qwen4_exp_text", "nemotron"}) {
    if (model_type == shifted) return 1;
  }
  for (const char* plain :
       {"llama",      "mistral", "qwen2",       "qwen3",    "qwen2_moe", "qwen3_moe", "mixtral",
        "ministral3", "olmo2",   "olmo3",       "phi3",     "smollm3",   "granite",   "deepseek_v3",
        "gpt_oss",    "gemma4",  "gemma4_text", "gpt_neox", "gpt2",      "bert",      "opt"}) {
    if (model_type == plain) return 0;
  }
  return -1;
}

// The first of several spellings that the config has.
std::optional<std::int64_t> any_whole(const JsonKeys& keys,
                                      std::initializer_list<const char*> names, std::int64_t lowest,
                                      std::int64_t highest) {
  for (const char* name : names) {
    if (const auto value = keys.whole(name, lowest, highest)) return value;
  }
  return std::nullopt;
}

int size_of(const JsonKeys& keys, std::initializer_list<const char*> names, int fallback,
            int highest = kLargestSize) {
  return static_cast<int>(any_whole(keys, names, 1, highest).value_or(fallback));
}

// A size that is said to be nothing is not left to the family's default.
void require_sizes(const JsonKeys& keys, const std::string& where) {
  for (const char* name : {"num_hidden_layers", "n_layer", "num_attention_heads", "n_head",
                           "hidden_size", "n_embd", "vocab_size"})
    if (keys.is_null(name))
      throw Error(ErrorKind::corrupt,
                  fmt::format("{}: {} is null, expected a whole number", where, name));
}

// GPT-2's spellings stand beside the usual ones so that `info` has numbers for any family.
void parse_sizes(const JsonKeys& keys, const Family* family, HfConfig& out) {
  const bool known = family != nullptr;
  ArchSpec& spec = out.spec;
  spec.n_layers =
      size_of(keys, {"num_hidden_layers", "n_layer"}, known ? family->n_layers : 0, kMostLayers);
  spec.n_heads =
      size_of(keys, {"num_attention_heads", "n_head"}, known ? family->n_heads : 0, kMostHeads);
  // 0: the rows of k_proj and q_proj will say.
  spec.n_kv_heads = size_of(keys, {"num_key_value_heads"}, 0, kMostHeads);
  spec.head_dim = size_of(keys, {"head_dim"}, 0, kLargestHead);
  spec.d_model = size_of(keys, {"hidden_size", "n_embd"}, known ? family->d_model : 0);
  spec.d_mlp =
      size_of(keys, {"intermediate_size", "n_inner", "ffn_dim"}, known ? family->d_mlp : 0);
  spec.vocab_size = size_of(keys, {"vocab_size"}, known ? family->vocab_size : 0);
  spec.n_ctx = size_of(keys, {"max_position_embeddings", "n_positions", "model_max_length"},
                       known ? family->n_ctx : 0);
}

void parse_norms(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  spec.norm_eps = 1e-6;
  for (const char* name : {"layer_norm_epsilon", "layer_norm_eps", "rms_norm_eps"})
    spec.norm_eps = keys.number(name).value_or(spec.norm_eps);
  if (!(spec.norm_eps >= 0 && spec.norm_eps <= 1))
    out.obstacles.push_back(
        fmt::format("the norms' epsilon is {}, expected 0 to 1", spec.norm_eps));
  spec.pre_affine = keys.boolean("pre_affine").value_or(false);
  const int offset = norm_offset_of(spec.architecture);
  spec.norm_offset = std::max(offset, 0);
  if (offset < 0 && !out.is_known_family) {
    out.warnings.push_back(
        fmt::format("norm gains of the unknown architecture \"{}\" are shown as "
                    "stored; some families add 1",
                    printable(spec.architecture)));
  }
}

// What layer_types, when present, says about each block; the families fill in the rest.
void parse_layer_types(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  spec.window.assign(static_cast<std::size_t>(spec.n_layers), 0);
  const auto types = keys.texts("layer_types");
  if (!types) return;
  if (types->size() != spec.window.size()) {
    out.obstacles.push_back(fmt::format("layer_types names {} layers, num_hidden_layers is {}",
                                        types->size(), spec.n_layers));
    return;
  }
  out.layer_types = *types;
  if (out.family->has_own_types) return;
  const char* key = out.family->window_key;
  std::optional<std::int64_t> window = keys.whole(key, 1, kLargestSize);
  if (const char* reach = out.family->reach_key; !window && reach != nullptr && keys.has(reach))
    window = *keys.whole(reach, 0, kLargestSize - 1) + 1;
  for (std::size_t layer = 0; layer < types->size(); ++layer) {
    const std::string& type = (*types)[layer];
    if (type == "full_attention" || type == out.family->full_type) continue;
    if (type == "linear_attention" && out.family->has_delta) {
      spec.mixers.resize(types->size(), Mixer::attention);
      spec.mixers[layer] = Mixer::delta;
    } else if (type != out.family->window_type) {
      out.obstacles.push_back("layer type \"" + printable(type) + "\" is not supported");
      return;
    } else if (!window) {
      out.obstacles.push_back(fmt::format("layer_types names sliding layers, {} is absent", key));
      return;
    } else {
      spec.window[layer] = static_cast<int>(*window);
    }
  }
}

void parse_activation(const JsonKeys& keys, HfConfig& out) {
  static constexpr std::pair<const char*, Activation> kKnown[] = {
      {"silu", Activation::silu},          {"swish", Activation::silu},
      {"gelu", Activation::gelu},          {"gelu_new", Activation::gelu_tanh},
      {"relu", Activation::relu},          {"gelu_pytorch_tanh", Activation::gelu_tanh},
      {"gelu_tanh", Activation::gelu_tanh}};
  std::string name = out.family->activation;
  for (const char* key : {"hidden_act", "activation_function", "hidden_activation"})
    name = keys.text(key).value_or(name);
  for (const auto& [known, activation] : kKnown) {
    if (name != known) continue;
    out.spec.activation = activation;
    return;
  }
  out.obstacles.push_back("activation \"" + printable(name) + "\" is not supported");
}

// Sizes without which nothing can be held against the tensors.
bool has_sizes(HfConfig& out) {
  const ArchSpec& spec = out.spec;
  const std::pair<const char*, int> needed[] = {{"num_hidden_layers", spec.n_layers},
                                                {"num_attention_heads", spec.n_heads},
                                                {"hidden_size", spec.d_model},
                                                {"vocab_size", spec.vocab_size},
                                                {"max_position_embeddings", spec.n_ctx}};
  for (const auto& [key, size] : needed)
    if (size == 0) out.obstacles.push_back(fmt::format("config.json has no {}", key));
  return out.obstacles.empty();
}

void parse_quantization(const JsonKeys& keys, const std::string& where, HfConfig& out) {
  const Json* object = keys.object("quantization_config");
  if (object == nullptr) return;
  const JsonKeys quantization(*object, where, "quantization_config.");
  out.quantization.method = quantization.text("quant_method").value_or("unnamed");
  for (const char* packed : {"gptq", "awq", "bitsandbytes"}) {
    if (out.quantization.method == packed)
      out.obstacles.push_back("weights quantized by " + out.quantization.method +
                              " are not supported");
  }
  if (!quantization.has("weight_block_size")) return;
  const Json& block = object->at("weight_block_size");
  if (!block.is_array() || block.size() != 2 || !block[0].is_number_unsigned() ||
      !block[1].is_number_unsigned()) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: quantization_config.weight_block_size is {}, expected two sizes",
                            where, printable(block.dump())));
  }
  out.quantization.block = {block[0].get<std::int64_t>(), block[1].get<std::int64_t>()};
}

void parse_special_ids(const JsonKeys& keys, const Family* family, HfConfig& out) {
  constexpr std::int64_t kHighest = std::int64_t{1} << 31;
  const auto id = [&](const char* name, int fallback) {
    // Negative ids occur as a spelling of "none".
    const auto given = keys.first_whole(name, -kHighest, kHighest - 1);
    if (!given && keys.is_null(name)) return -1;
    return static_cast<int>(std::max<std::int64_t>(given.value_or(fallback), -1));
  };
  out.spec.bos_id = id("bos_token_id", family != nullptr ? family->bos_id : -1);
  out.spec.eos_id = id("eos_token_id", family != nullptr ? family->eos_id : -1);
  out.says_bos = keys.has("bos_token_id");
  out.says_eos = keys.has("eos_token_id");
}

}  // namespace

HfConfig parse_hf_config(const std::string& text, const std::string& where) {
  const Json document = parse_json(text, where);
  if (!document.is_object()) throw Error(ErrorKind::corrupt, where + ": it is not a JSON object");
  HfConfig out;
  ArchSpec& spec = out.spec;
  const JsonKeys top(document, where);
  spec.architecture = top.text("model_type").value_or("");
  const Json* wrapped = top.object("text_config");
  const std::string wrapper = spec.architecture;
  if (wrapped != nullptr)
    spec.architecture =
        JsonKeys(*wrapped, where, "text_config.").text("model_type").value_or(spec.architecture);
  const bool is_openai = spec.architecture.empty() && top.has("initial_context_length") &&
                         top.has("experts_per_token");
  if (is_openai) spec.architecture = "gpt_oss";  // its authors' own files do not say so
  const Family* family = find_family(is_openai ? kOpenAiGptOss : spec.architecture);
  out.is_known_family = family != nullptr;
  out.family = family;
  out.is_wrapped = wrapped != nullptr;
  if (wrapped != nullptr && family == nullptr) {
    out.obstacles.push_back(
        fmt::format("architecture \"{}\" wraps a language model of the kind \"{}\", which is not "
                    "known here; a file for --arch can describe it",
                    printable(wrapper), printable(spec.architecture)));
  } else if (family == nullptr) {
    out.obstacles.push_back(
        spec.architecture.empty()
            ? "config.json names no model_type"
            : fmt::format("architecture \"{}\" is not known here; a file for --arch can describe "
                          "it (info --arch-json writes what there is to start from)",
                          printable(spec.architecture)));
  }
  const JsonKeys keys(wrapped != nullptr ? *wrapped : document, where,
                      wrapped != nullptr ? "text_config." : "");
  require_sizes(keys, where);
  parse_sizes(keys, family, out);
  parse_norms(keys, out);
  parse_special_ids(keys, family, out);
  out.tied = top.boolean("tie_word_embeddings");
  if (!out.tied) out.tied = keys.boolean("tie_word_embeddings");
  if (!out.tied && family != nullptr && family->tied) out.tied = true;
  parse_quantization(top, where, out);
  if (family == nullptr) {
    // No rows will be asked; what `info` shows is the usual reading of absent keys.
    spec.window.assign(static_cast<std::size_t>(spec.n_layers), 0);
    if (spec.n_kv_heads == 0) spec.n_kv_heads = spec.n_heads;
    if (spec.head_dim == 0 && spec.n_heads > 0) spec.head_dim = spec.d_model / spec.n_heads;
    return out;
  }
  if (!has_sizes(out)) {
    out.is_known_family = false;
    return out;
  }
  parse_layer_types(keys, out);
  parse_activation(keys, out);
  if (family->has_rope)
    parse_hf_rope(wrapped != nullptr ? *wrapped : document, where, out);
  else
    spec.rope.partial = 0;
  family->read(keys, out);
  return out;
}

void add_generation_config(HfConfig& config, const std::string& text, const std::string& where) {
  const Json document = parse_json(text, where);
  if (!document.is_object()) throw Error(ErrorKind::corrupt, where + ": it is not a JSON object");
  const JsonKeys keys(document, where);
  const auto id_of = [&](const char* name, bool said, int id) {
    const auto given = keys.first_whole(name, 0, (std::int64_t{1} << 31) - 1);
    return given && !said ? static_cast<int>(*given) : id;
  };
  const int bos = id_of("bos_token_id", config.says_bos, config.spec.bos_id);
  const int eos = id_of("eos_token_id", config.says_eos, config.spec.eos_id);
  config.spec.bos_id = bos;
  config.spec.eos_id = eos;
}

}  // namespace sinkscope
