// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "capture/checkpoint/gguf_config_text.h"
#include "capture/checkpoint/gguf_families.h"
#include "capture/checkpoint/gguf_file.h"
#include "capture/checkpoint/gguf_keys.h"
#include "capture/checkpoint/gguf_roles.h"
#include "capture/checkpoint/printable.h"
#include "capture/checkpoint/spec_check.h"
#include "core/error.h"

namespace sinkscope {
namespace {

// Bounds against nonsense; heads times their width still fits an int.
constexpr int kMostLayers = 1024, kMostHeads = 1 << 14, kMostHeadDim = 1 << 16,
              kMostWidth = 1 << 24;
constexpr int kMostContext = 1 << 30;
constexpr std::int64_t kNoToken = 0xFFFFFFFF;

// Keys that change what the forward pass computes and are not understood for these families:
// neutral at 0, multipliers also at 1.
constexpr std::array kMustBeNeutral = {
    "attn_logit_softcapping", "final_logit_softcapping", "logit_scale",
    "residual_scale",         "embedding_scale",         "expert_count",
};

// Families that cannot be run and whose norms multiply by 1 + w, which their converters store.
bool stores_one_plus(const std::string& architecture) {
  return architecture == "gemma" || architecture == "nemotron";
}

// The factor on cos and sin of yarn, `attn_factor` aside (ggml's default: mscale 1).
double yarn_magnitude(const RopeSpec& rope) {
  const auto grow = [&rope](double scale) {
    return rope.factor <= 1 ? 1.0 : 0.1 * scale * std::log(rope.factor) + 1.0;
  };
  return rope.mscale_all_dim ? grow(1.0) / grow(*rope.mscale_all_dim) : grow(1.0);
}

void read_yarn(const GgufKeys& keys, std::vector<std::string>& obstacles, RopeSpec& rope) {
  rope.beta_fast = keys.number("rope.scaling.yarn_beta_fast").value_or(32);
  rope.beta_slow = keys.number("rope.scaling.yarn_beta_slow").value_or(1);
  if (keys.number("rope.scaling.yarn_ext_factor").value_or(1) != 1) {
    obstacles.push_back(fmt::format("key \"{}\": only 1 is understood",
                                    printable(keys.full_name("rope.scaling.yarn_ext_factor"))));
  }
  if (const double all = keys.number("rope.scaling.yarn_log_multiplier").value_or(0); all != 0) {
    rope.mscale = 1.0;
    rope.mscale_all_dim = all;
  }
  const double attention = keys.number("rope.scaling.attn_factor").value_or(1);
  if (attention != 1) rope.attention_factor = attention * yarn_magnitude(rope);
}

void read_rope(const GgufKeys& keys, GgufModel& model) {
  ArchSpec& spec = model.spec;
  RopeSpec& rope = spec.rope;
  rope.theta = keys.number("rope.freq_base").value_or(10000.0);
  rope.rotary_dim = keys.whole("rope.dimension_count", 0, spec.head_dim).value_or(spec.head_dim);
  if (rope.rotary_dim % 2 != 0) {
    model.obstacles.push_back(
        fmt::format("an odd number of rotary dimensions: {}", rope.rotary_dim));
  }
  if (const std::string wrong = wrong_rope_base(rope.theta); !wrong.empty())
    model.obstacles.push_back("rope base " + wrong);
  // A factor without a type means linear; 0 means that there is none.
  double factor = keys.number("rope.scaling.factor").value_or(0);
  if (factor == 0) factor = keys.number("rope.scale_linear").value_or(0);
  const std::string type = keys.text("rope.scaling.type").value_or("linear");
  if (factor < 0) model.obstacles.push_back(fmt::format("rope scaling by {}", factor));
  if (type != "none" && type != "linear" && type != "yarn") {
    model.obstacles.push_back(
        fmt::format("rope scaling \"{}\" is not known; known are none, linear "
                    "and yarn",
                    printable(type)));
  }
  if (type == "none" || factor <= 0 || factor == 1) return;
  rope.scaling = type == "yarn" ? RopeScaling::yarn : RopeScaling::linear;
  rope.factor = factor;
  if (type != "yarn") return;
  rope.original_context = keys.number("rope.scaling.original_context_length").value_or(spec.n_ctx);
  read_yarn(keys, model.obstacles, rope);
}

void read_window(const GgufKeys& keys, const GgufFamily& family, GgufModel& model) {
  ArchSpec& spec = model.spec;
  const auto n_layers = static_cast<std::size_t>(spec.n_layers);
  spec.window.assign(n_layers, 0);
  const int window = keys.whole("attention.sliding_window", 0, kMostContext).value_or(0);
  if (window == 0) return;
  if (!family.windows) {
    model.warnings.push_back(
        fmt::format("key \"{}\" ({}) is not used: {} models attend to everything "
                    "before a token unless their config says which layers do not",
                    keys.full_name("attention.sliding_window"), window, spec.architecture));
    return;
  }
  const auto listed_layers = keys.truths("attention.sliding_window_pattern");
  const int period = listed_layers ? 0
                                   : keys.whole("attention.sliding_window_pattern", 1, 1 << 16)
                                         .value_or(family.window_period);
  if (listed_layers && listed_layers->size() != n_layers) {
    model.obstacles.push_back(fmt::format("key \"{}\": {} entries for {} layers",
                                          keys.full_name("attention.sliding_window_pattern"),
                                          listed_layers->size(), n_layers));
    return;
  }
  for (std::size_t layer = 0; layer < n_layers; ++layer) {
    // The last layer of each period attends to everything.
    const bool in_period = period == 0 || static_cast<int>(layer) % period < period - 1;
    if (listed_layers ? (*listed_layers)[layer] : in_period) spec.window[layer] = window;
  }
}

// Every head has a key of its own, whichever of two ways to store them the file has.
void read_latent_heads(const GgufKeys& keys, ArchSpec& spec) {
  const auto size = [&](const char* name) { return keys.whole(name, 1, kMostHeadDim).value_or(0); };
  const int keys_of_all = size("attention.key_length_mla");
  spec.n_kv_heads = spec.n_heads;
  spec.head_dim = keys_of_all > 0 ? keys_of_all : size("attention.key_length");
  spec.value_dim =
      keys_of_all > 0 ? size("attention.value_length_mla") : size("attention.value_length");
}

void read_heads(const GgufKeys& keys, const GgufFamily& family, GgufModel& model) {
  ArchSpec& spec = model.spec;
  spec.n_heads = keys.required("attention.head_count", 1, kMostHeads);
  if (family.latent) {
    read_latent_heads(keys, spec);
    return;
  }
  spec.n_kv_heads = keys.whole("attention.head_count_kv", 1, kMostHeads).value_or(spec.n_heads);
  if (spec.n_heads % std::max(spec.n_kv_heads, 1) != 0) {
    model.obstacles.push_back(fmt::format("{} heads cannot share {} key-value heads evenly",
                                          spec.n_heads, spec.n_kv_heads));
  }
  const bool says_width = keys.has("attention.key_length");
  spec.head_dim = keys.whole("attention.key_length", 1, kMostHeadDim).value_or(0);
  if (!says_width && spec.n_heads > 0) {
    if (spec.d_model % spec.n_heads != 0) {
      model.obstacles.push_back(fmt::format(
          "width {} over {} heads is no whole number, and no key \"{}\" gives the head's "
          "width",
          spec.d_model, spec.n_heads, keys.full_name("attention.key_length")));
    } else {
      spec.head_dim = spec.d_model / spec.n_heads;
    }
  }
  const int value_width =
      keys.whole("attention.value_length", 1, kMostHeadDim).value_or(spec.head_dim);
  if (value_width != spec.head_dim) {
    model.obstacles.push_back(
        fmt::format("heads have keys of {} and values of {} elements; only "
                    "equal widths can be run",
                    spec.head_dim, value_width));
  }
  const double scale = keys.number("attention.scale").value_or(0);
  spec.attention_scale = scale > 0 ? scale : 1.0 / std::sqrt(std::max(spec.head_dim, 1));
}

void read_spec(const GgufKeys& keys, const GgufFile& file, const GgufFamily& family,
               GgufModel& model) {
  ArchSpec& spec = model.spec;
  spec.n_layers = keys.required("block_count", 1, kMostLayers);
  spec.d_model = keys.required("embedding_length", 1, kMostWidth);
  spec.d_mlp = keys.required("feed_forward_length", 1, kMostWidth);
  spec.n_ctx = keys.required("context_length", 1, kMostContext);
  const auto eps = keys.number("attention.layer_norm_rms_epsilon");
  const auto layer_norm_eps = keys.number("attention.layer_norm_epsilon");
  if (!keys.has("attention.layer_norm_rms_epsilon") && !keys.has("attention.layer_norm_epsilon")) {
    model.obstacles.push_back(
        fmt::format("key \"{}\": is missing", keys.full_name("attention.layer_norm_rms_epsilon")));
  }
  spec.norm_eps = eps.value_or(layer_norm_eps.value_or(spec.norm_eps));
  if (!(spec.norm_eps >= 0 && spec.norm_eps <= 1))
    model.obstacles.push_back(fmt::format(
        "key \"{}\": is {}, expected 0 to 1",
        keys.full_name(eps ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon"),
        spec.norm_eps));
  spec.norm_offset = family.one_plus ? 1 : 0;
  read_heads(keys, family, model);
  read_rope(keys, model);
  read_window(keys, family, model);
  const auto is_read = [&family](const char* name) {
    return std::string(family.reads).find(fmt::format(" {} ", name)) != std::string::npos;
  };
  for (const char* name : kMustBeNeutral) {
    const double value = keys.number(name).value_or(0);
    const bool is_neutral = value == 0 || (value == 1 && std::string(name).ends_with("_scale"));
    if (is_neutral || is_read(name)) continue;
    model.obstacles.push_back(
        fmt::format("key \"{}\" is {}, which architecture {} cannot be run with",
                    keys.full_name(name), value, spec.architecture));
  }
  if (!is_read("attention.causal") && !keys.truth("attention.causal").value_or(true)) {
    model.obstacles.push_back("attention is not causal");
  }
  note_optional_tensors(file, spec);
  family.read(keys, file, model);
}

// What little can be said about a family without a forward pass here: nothing missing is wrong.
void read_foreign_spec(const GgufKeys& keys, GgufModel& model) {
  ArchSpec& spec = model.spec;
  spec.n_layers = keys.whole("block_count", 1, kMostLayers).value_or(0);
  spec.d_model = keys.whole("embedding_length", 1, kMostWidth).value_or(0);
  spec.d_mlp = keys.whole("feed_forward_length", 1, kMostWidth).value_or(0);
  spec.n_ctx = keys.whole("context_length", 1, kMostContext).value_or(0);
  spec.n_heads = keys.whole("attention.head_count", 1, kMostHeads).value_or(0);
  spec.n_kv_heads = keys.whole("attention.head_count_kv", 1, kMostHeads).value_or(spec.n_heads);
  const int shared_width = spec.n_heads > 0 ? spec.d_model / spec.n_heads : 0;
  spec.head_dim = keys.whole("attention.key_length", 1, kMostHeadDim).value_or(shared_width);
  const auto rms_eps = keys.number("attention.layer_norm_rms_epsilon");
  const auto layer_norm_eps = keys.number("attention.layer_norm_epsilon");
  if (!rms_eps && layer_norm_eps) spec.norm_kind = NormKind::layer_norm;
  spec.norm_eps = rms_eps.value_or(layer_norm_eps.value_or(spec.norm_eps));
}

int token_id(const GgufFile& file, const char* key, GgufModel& model) {
  const GgufValue* value = file.find_key(key);
  const auto* id = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
  if (id == nullptr || *id == kNoToken || *id == -1) return -1;
  if (*id >= 0 && *id < model.spec.vocab_size) return static_cast<int>(*id);
  model.warnings.push_back(
      fmt::format("key \"{}\": id {} is not in the vocabulary of {}: text cannot "
                  "be cut up, token ids can be fed",
                  key, *id, model.spec.vocab_size));
  return -1;
}

void read_vocabulary(const GgufKeys& keys, const GgufFile& file, GgufModel& model) {
  ArchSpec& spec = model.spec;
  const GgufValue* value = file.find_key("tokenizer.ggml.tokens");
  const auto* tokens = value == nullptr ? nullptr : std::get_if<std::vector<std::string>>(value);
  const auto n_tokens = tokens == nullptr ? 0 : static_cast<std::int64_t>(tokens->size());
  const int embed = file.find("token_embd.weight");
  const std::int64_t rows =
      embed < 0 ? n_tokens : file.tensors()[static_cast<std::size_t>(embed)].n_rows();
  spec.vocab_size = static_cast<int>(std::min<std::int64_t>(rows, kMostContext));
  if (tokens != nullptr && n_tokens != rows) {
    model.warnings.push_back(
        fmt::format("the embedding has {} rows and the token list {} entries{}", rows, n_tokens,
                    rows > n_tokens ? ": the rest are padding" : ": the rest cannot be fed"));
  }
  const auto said = keys.whole("vocab_size", 1, kMostContext);
  if (said && *said != rows) {
    model.warnings.push_back(fmt::format("key \"{}\" is {}, the embedding has {} rows",
                                         keys.full_name("vocab_size"), *said, rows));
  }
  spec.bos_id = token_id(file, "tokenizer.ggml.bos_token_id", model);
  spec.eos_id = token_id(file, "tokenizer.ggml.eos_token_id", model);
}

std::string text_or(const GgufFile& file, const char* key, const std::string& fallback) {
  const GgufValue* value = file.find_key(key);
  const auto* words = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return words == nullptr || words->empty() ? fallback : *words;
}

}  // namespace

GgufModel describe_gguf(const GgufFile& file, const std::string& path) {
  GgufModel model;
  ArchSpec& spec = model.spec;
  spec.architecture = text_or(file, "general.architecture", "");
  spec.name = text_or(file, "general.name", std::filesystem::path(path).stem().string());
  model.config_text = gguf_config_text(file);
  const GgufKeys keys(file, spec.architecture, model.obstacles);
  read_vocabulary(keys, file, model);
  const GgufFamily* family = find_gguf_family(spec.architecture);
  // A file that says little more than its norms is shown as such.
  if (family != nullptr && (keys.has("block_count") || keys.has("embedding_length"))) {
    read_spec(keys, file, *family, model);
    add_roles(file, *family, path, model);
    return model;
  }
  if (family != nullptr) keys.required("block_count", 1, kMostLayers);
  if (family == nullptr)
    model.obstacles.push_back(
        spec.architecture.empty()
            ? fmt::format("the key \"general.architecture\" {}",
                          file.find_key("general.architecture") == nullptr
                              ? "is missing"
                              : "is empty or no text, expected the architecture's name")
            : fmt::format("architecture \"{}\" cannot be run; known in GGUF files are {}",
                          printable(spec.architecture), gguf_family_names()));
  const bool one_plus = family != nullptr ? family->one_plus : stores_one_plus(spec.architecture);
  spec.norm_offset = one_plus ? 1 : 0;
  read_foreign_spec(keys, model);
  add_norm_roles(file, one_plus ? 1.0f : 0.0f, model);
  return model;
}

}  // namespace sinkscope
