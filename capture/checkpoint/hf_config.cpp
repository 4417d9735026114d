// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

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

// Defaults of transformers' configuration classes, for keys that config.json lacks. All four agree
// on rms_norm_eps 1e-6, rope_theta 10000, silu and an untied head.
struct Family {
  const char* model_type;
  int vocab_size, d_mlp, n_ctx;
  int bos_id, eos_id;
  bool qkv_bias, qk_norm;
};
constexpr int kDefaultWidth = 4096, kDefaultLayers = 32, kDefaultHeads = 32;  // all four again
constexpr Family kFamilies[] = {
    {"llama", 32000, 11008, 2048, 1, 2, false, false},
    {"mistral", 32000, 14336, 131072, 1, 2, false, false},
    {"qwen2", 151936, 22016, 32768, -1, -1, true, false},
    {"qwen3", 151936, 22016, 32768, -1, -1, false, true},
};

const Family* find_family(const std::string& model_type) {
  for (const Family& family : kFamilies) {
    if (model_type == family.model_type) return &family;
  }
  return nullptr;
}

// Whether the family's norms multiply by 1 + w; -1 when that is not known here.
int norm_offset_of(const std::string& model_type) {
  for (const char* shifted : {"gemma", "gemma2", "gemma3", "gemma3_text", "qwen3_next", "qwen3_5",
                              "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text", "nemotron"}) {
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

// GPT-2's spellings stand beside the usual ones so that `info` has numbers for any family.
void parse_sizes(const JsonKeys& keys, const Family* family, HfConfig& out) {
  const bool known = family != nullptr;
  ArchSpec& spec = out.spec;
  spec.n_layers =
      size_of(keys, {"num_hidden_layers", "n_layer"}, known ? kDefaultLayers : 0, kMostLayers);
  spec.n_heads =
      size_of(keys, {"num_attention_heads", "n_head"}, known ? kDefaultHeads : 0, kMostHeads);
  // 0: the rows of k_proj and q_proj will say.
  spec.n_kv_heads = size_of(keys, {"num_key_value_heads"}, 0, kMostHeads);
  spec.head_dim = size_of(keys, {"head_dim"}, 0, kLargestHead);
  spec.d_model = size_of(keys, {"hidden_size", "n_embd"}, known ? kDefaultWidth : 0);
  spec.d_mlp = size_of(keys, {"intermediate_size", "n_inner"}, known ? family->d_mlp : 0);
  spec.vocab_size = size_of(keys, {"vocab_size"}, known ? family->vocab_size : 0);
  spec.n_ctx = size_of(keys, {"max_position_embeddings", "n_positions"}, known ? family->n_ctx : 0);
}

void parse_norms(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  spec.norm_eps = 1e-6;
  for (const char* name : {"layer_norm_epsilon", "layer_norm_eps", "rms_norm_eps"})
    spec.norm_eps = keys.number(name).value_or(spec.norm_eps);
  if (!(spec.norm_eps >= 0))
    out.obstacles.push_back(fmt::format("the norms' epsilon is {}", spec.norm_eps));
  spec.pre_affine = keys.boolean("pre_affine").value_or(false);
  const int offset = norm_offset_of(spec.architecture);
  spec.norm_offset = std::max(offset, 0);
  if (offset < 0) {
    out.warnings.push_back(
        fmt::format("norm gains of the unknown architecture \"{}\" are shown as "
                    "stored; some families add 1",
                    printable(spec.architecture)));
  }
}

void windows_by_type(const std::vector<std::string>& types, std::optional<std::int64_t> window,
                     HfConfig& out) {
  ArchSpec& spec = out.spec;
  if (types.size() != spec.window.size()) {
    out.obstacles.push_back(fmt::format("layer_types names {} layers, num_hidden_layers is {}",
                                        types.size(), spec.n_layers));
    return;
  }
  for (std::size_t layer = 0; layer < types.size(); ++layer) {
    if (types[layer] == "full_attention") continue;
    if (types[layer] != "sliding_attention") {
      out.obstacles.push_back("layer type \"" + printable(types[layer]) + "\" is not supported");
      return;
    }
    if (!window) {
      out.obstacles.push_back("layer_types names sliding layers, sliding_window is absent");
      return;
    }
    spec.window[layer] = static_cast<int>(*window);
  }
}

// transformers: Mistral windows every layer; Qwen those from max_window_layers on, if
// use_sliding_window (false when absent); Llama none. layer_types, when present, wins.
void parse_windows(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  constexpr int kDefaultWindow = 4096, kDefaultMaxWindowLayers = 28;
  spec.window.assign(static_cast<std::size_t>(spec.n_layers), 0);
  std::optional<std::int64_t> window = keys.whole("sliding_window", 1, kLargestSize);
  if (const auto types = keys.texts("layer_types")) {
    windows_by_type(*types, window, out);
    return;
  }
  const bool is_qwen = spec.architecture == "qwen2" || spec.architecture == "qwen3";
  std::int64_t first = spec.n_layers;
  if (spec.architecture == "mistral") {
    first = 0;
  } else if (is_qwen && keys.boolean("use_sliding_window").value_or(false)) {
    first = keys.whole("max_window_layers", 0, kLargestSize).value_or(kDefaultMaxWindowLayers);
  }
  if (!window && !keys.is_null("sliding_window")) window = kDefaultWindow;
  for (std::int64_t layer = first; layer < spec.n_layers && window; ++layer)
    spec.window[static_cast<std::size_t>(layer)] = static_cast<int>(*window);
}

void parse_biases(const JsonKeys& keys, const Family& family, HfConfig& out) {
  ArchSpec& spec = out.spec;
  spec.qk_norm = family.qk_norm ? QkNorm::per_head : QkNorm::none;
  spec.qkv_bias = family.qkv_bias;
  const bool reads_attention_bias = spec.architecture == "llama" || spec.architecture == "qwen3";
  if (reads_attention_bias && keys.boolean("attention_bias").value_or(false))
    spec.qkv_bias = spec.o_bias = true;
  if (spec.architecture == "llama") spec.mlp_bias = keys.boolean("mlp_bias").value_or(false);
  const std::string activation = keys.text("hidden_act").value_or("silu");
  if (activation != "silu" && activation != "swish")
    out.obstacles.push_back("activation \"" + printable(activation) + "\" is not supported");
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
  const Family* family = wrapped != nullptr ? nullptr : find_family(spec.architecture);
  out.is_known_family = family != nullptr;
  if (wrapped != nullptr) {
    out.obstacles.push_back(
        fmt::format("architecture \"{}\" wraps a language model in text_config, "
                    "which is not supported",
                    printable(spec.architecture)));
    spec.architecture =
        JsonKeys(*wrapped, where, "text_config.").text("model_type").value_or(spec.architecture);
  } else if (family == nullptr) {
    out.obstacles.push_back(
        spec.architecture.empty()
            ? "config.json names no model_type"
            : fmt::format("architecture \"{}\" is not supported", printable(spec.architecture)));
  }
  const JsonKeys keys(wrapped != nullptr ? *wrapped : document, where,
                      wrapped != nullptr ? "text_config." : "");
  parse_sizes(keys, family, out);
  parse_norms(keys, out);
  parse_special_ids(keys, family, out);
  out.tied = top.boolean("tie_word_embeddings");
  parse_quantization(top, where, out);
  if (family == nullptr) {
    // No rows will be asked; what `info` shows is the usual reading of absent keys.
    spec.window.assign(static_cast<std::size_t>(spec.n_layers), 0);
    if (spec.n_kv_heads == 0) spec.n_kv_heads = spec.n_heads;
    if (spec.head_dim == 0 && spec.n_heads > 0) spec.head_dim = spec.d_model / spec.n_heads;
    return out;
  }
  parse_windows(keys, out);
  parse_biases(keys, *family, out);
  parse_hf_rope(document, where, out);
  return out;
}

void add_generation_config(HfConfig& config, const std::string& text, const std::string& where) {
  const Json document = parse_json(text, where);
  if (!document.is_object()) throw Error(ErrorKind::corrupt, where + ": it is not a JSON object");
  const JsonKeys keys(document, where);
  const auto fill = [&](const char* name, bool said, int& id) {
    const auto given = keys.first_whole(name, 0, (std::int64_t{1} << 31) - 1);
    if (given && !said) id = static_cast<int>(*given);
  };
  fill("bos_token_id", config.says_bos, config.spec.bos_id);
  fill("eos_token_id", config.says_eos, config.spec.eos_id);
}

}  // namespace sinkscope
