// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/absorb.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "capture/checkpoint/absorb_parts.h"
#include "capture/checkpoint/absorb_tensors.h"
#include "capture/checkpoint/arch_file.h"
#include "capture/checkpoint/gguf_writer.h"
#include "capture/checkpoint/hf_names.h"
#include "capture/checkpoint/safetensors_writer.h"
#include "core/error.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

// A family whose folders have all roles under the names of the Llama family, so that config.json
// and those names say everything.
bool is_of_llamas_names(const ModelFiles& model) {
  const ArchSpec& spec = model.spec();
  const std::string& family = spec.architecture;
  return (family == "llama" || family == "mistral" || family == "qwen2" || family == "qwen3") &&
         spec.gate_dim() == 0 && spec.moe.n_experts == 0;
}

std::string llama_name(Role role, int layer) {
  const std::string own = hf_name(role, layer);
  return role == Role::unembed ? own : "model." + own;
}

// The names of a folder that describes itself.
std::string own_name(Role role, int layer) {
  return layer == kNoLayer ? std::string(to_string(role))
                           : fmt::format("blocks.{}.{}", layer, to_string(role));
}

[[noreturn]] void refuse_divisors(const RopeSpec& rope) {
  throw Error(ErrorKind::unsupported,
              fmt::format("absorb: rotary positions with divisors and {} scaling at once cannot be "
                          "written",
                          to_string(rope.scaling)));
}

// rope_parameters of a config.json. Divisors of the inverse frequencies, which a GGUF file holds as
// a tensor, are what longrope calls its factors.
nlohmann::ordered_json rope_of(const ModelFiles& model) {
  const RopeSpec& rope = model.spec().rope;
  nlohmann::ordered_json json = {{"rope_theta", rope.theta}, {"rope_type", "default"}};
  if (rope.has_divisors && rope.scaling != RopeScaling::none) refuse_divisors(rope);
  if (rope.has_divisors) {
    const std::vector<float> divisors = model.read_vector(Role::rope_divisors, kNoLayer);
    json["rope_type"] = "longrope";
    json["short_factor"] = json["long_factor"] = divisors;
    json["attention_factor"] = 1.0;
    json["original_max_position_embeddings"] = model.spec().n_ctx;
  }
  if (rope.scaling == RopeScaling::none) return json;
  json["rope_type"] = to_string(rope.scaling);
  json["factor"] = rope.factor;
  if (rope.original_context > 0) json["original_max_position_embeddings"] = rope.original_context;
  if (rope.scaling == RopeScaling::llama3) {
    json["low_freq_factor"] = rope.low_freq_factor;
    json["high_freq_factor"] = rope.high_freq_factor;
  }
  if (rope.scaling == RopeScaling::yarn) {
    json["beta_fast"] = rope.beta_fast;
    json["beta_slow"] = rope.beta_slow;
    json["truncate"] = rope.truncate;
    if (rope.attention_factor) json["attention_factor"] = *rope.attention_factor;
    if (rope.mscale) json["mscale"] = *rope.mscale;
    if (rope.mscale_all_dim) json["mscale_all_dim"] = *rope.mscale_all_dim;
  }
  return json;
}

// A Hugging Face config of a GGUF's model.
nlohmann::ordered_json config_of(const ModelFiles& model) {
  const ArchSpec& spec = model.spec();
  const bool is_windowed =
      std::any_of(spec.window.begin(), spec.window.end(), [](int w) { return w > 0; });
  nlohmann::ordered_json config = {{"model_type", spec.architecture},
                                   {"hidden_size", spec.d_model},
                                   {"intermediate_size", spec.d_mlp},
                                   {"num_hidden_layers", spec.n_layers},
                                   {"num_attention_heads", spec.n_heads},
                                   {"num_key_value_heads", spec.n_kv_heads},
                                   {"head_dim", spec.head_dim},
                                   {"vocab_size", spec.vocab_size},
                                   {"max_position_embeddings", spec.n_ctx},
                                   {"rms_norm_eps", spec.norm_eps},
                                   {"rope_parameters", rope_of(model)},
                                   {"hidden_act", "silu"}};
  if (is_windowed) config["sliding_window"] = spec.window.front();
  if (spec.bos_id >= 0) config["bos_token_id"] = spec.bos_id;
  if (spec.eos_id >= 0) config["eos_token_id"] = spec.eos_id;
  return config;
}

void write_json(const fs::path& path, const nlohmann::ordered_json& json) {
  std::ofstream file(path);
  file << json.dump(2) << '\n';
  if (!file.flush()) throw Error(ErrorKind::io, path.string() + ": cannot be written");
}

void write_config(const ModelFiles& model, const fs::path& folder) {
  nlohmann::ordered_json config = model.container() == Container::gguf
                                      ? config_of(model)
                                      : nlohmann::ordered_json::parse(model.config_text());
  config["tie_word_embeddings"] = model.spec().tied;
  config["pre_affine"] = true;
  config.erase("quantization_config");
  for (const char* key : {"torch_dtype", "dtype"})
    if (config.contains(key)) config[key] = "float32";
  write_json(folder / "config.json", config);
}

// What config.json cannot say of a model whose tensors have names of their own: all of it.
void write_description(const ModelFiles& model, const std::vector<AbsorbedTensor>& tensors,
                       const fs::path& folder) {
  ArchSpec spec = model.spec();
  spec.name = "";  // the folder's
  spec.pre_affine = true;
  spec.norm_offset = 0;  // gains are written as they multiply
  if (spec.rope.has_divisors) {
    const std::vector<float> divisors = model.read_vector(Role::rope_divisors, kNoLayer);
    if (spec.rope.scaling != RopeScaling::none) refuse_divisors(spec.rope);
    spec.rope.has_divisors = false;
    spec.rope.scaling = RopeScaling::longrope;
    spec.rope.short_factor.assign(divisors.begin(), divisors.end());
    spec.rope.long_factor = spec.rope.short_factor;
    spec.rope.attention_factor = 1;
    spec.rope.original_context = spec.n_ctx;
  }
  nlohmann::ordered_json roles = nlohmann::ordered_json::object();
  for (const AbsorbedTensor& made : tensors) {
    nlohmann::ordered_json& names = roles[to_string(made.role)];
    if (made.layer == kNoLayer) {
      names = made.tensor.name;
      continue;
    }
    if (names.is_null())
      names = std::vector<nlohmann::ordered_json>(static_cast<std::size_t>(spec.n_layers));
    names[static_cast<std::size_t>(made.layer)] = made.tensor.name;
  }
  write_json(folder / kOwnDescription, arch_json(spec, roles));
}

void copy_if_there(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (!fs::exists(from, error)) return;
  fs::copy_file(from, to, error);
  if (error)
    throw Error(ErrorKind::io, fmt::format("{}: cannot be copied to {}: {}", from.string(),
                                           to.string(), error.message()));
}

void check(const ModelFiles& model, const Absorption& absorption) {
  const auto refuse = [](const std::string& message) {
    throw Error(ErrorKind::invalid_argument, message);
  };
  if (!model.obstacles().empty())
    throw Error(ErrorKind::unsupported,
                fmt::format("{}: {}", model.path(), model.obstacles().front()));
  if (const std::string why = obstacle_to_absorbing(model.spec()); !why.empty())
    throw Error(ErrorKind::unsupported,
                fmt::format("absorb: {} would not compute the same: {}", model.path(), why));
  if (absorption.dims.size() != absorption.factors.size() || absorption.dims.empty())
    refuse("absorb: expected one factor for each of one dimension or more");
  for (int d : absorption.dims)
    if (d < 0 || d >= model.spec().d_model)
      refuse(fmt::format("absorb: dimension {} does not exist, expected 0 to {}", d,
                         model.spec().d_model - 1));
  for (double k : absorption.factors)
    if (!(k > 0) || !std::isfinite(k))
      refuse(fmt::format("absorb: expected a factor above 0, found {}", k));
}

}  // namespace

double absorbing_factor(double outlier, double typical) {
  if (!(outlier > 0) || !(typical > 0)) return 1;
  return std::max(1.0, std::exp2(std::round(std::log2(outlier / typical))));
}

bool write_absorbed(const ModelFiles& model, const Absorption& absorption,
                    const std::string& folder, const std::stop_token& stop) {
  check(model, absorption);
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_empty(folder, error))
    throw Error(ErrorKind::invalid_argument, folder + ": exists already and is not empty");
  fs::create_directories(folder, error);
  if (error)
    throw Error(ErrorKind::io, fmt::format("{}: cannot be made: {}", folder, error.message()));
  const bool describes_itself = absorption.describes_itself || !is_of_llamas_names(model);
  const std::vector<AbsorbedTensor> tensors =
      absorbed_tensors(model, absorption, describes_itself ? own_name : llama_name);
  std::vector<TensorToWrite> to_write;
  for (const AbsorbedTensor& made : tensors) to_write.push_back(made.tensor);
  if (!write_safetensors((fs::path(folder) / "model.safetensors").string(), to_write, stop))
    return false;
  if (model.gguf() != nullptr)
    write_gguf_metadata(*model.gguf(), {"tokenizer.", "general.architecture"},
                        (fs::path(folder) / "tokenizer.gguf").string());
  if (model.container() == Container::safetensors)
    for (const char* name : {"tokenizer.json", "tokenizer.model", "tokenizer.gguf",
                             "tokenizer_config.json", "special_tokens_map.json",
                             "added_tokens.json", "generation_config.json", "chat_template.jinja"})
      copy_if_there(fs::path(model.path()) / name, fs::path(folder) / name);
  if (describes_itself)
    write_description(model, tensors, folder);
  else
    write_config(model, folder);
  return true;
}

}  // namespace sinkscope
