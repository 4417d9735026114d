// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/absorb.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "capture/checkpoint/gguf_writer.h"
#include "capture/checkpoint/hf_names.h"
#include "capture/checkpoint/safetensors_writer.h"
#include "core/error.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

Role pre_role(Role norm) {
  return norm == Role::ln1 ? Role::ln1_pre : norm == Role::ln2 ? Role::ln2_pre : Role::ln_final_pre;
}

class Writer {
 public:
  Writer(const ModelFiles& model, const Absorption& absorption)
      : model_(model), spec_(model.spec()), absorption_(absorption) {}

  std::vector<TensorToWrite> tensors() {
    add(Role::embed, kNoLayer, Part::columns);
    for (int layer = 0; layer < spec_.n_layers; ++layer) {
      for (Role role : layer_roles(spec_)) {
        if (role == Role::ln1_pre || role == Role::ln2_pre) continue;
        if (is_gain(role))
          add_gain(role, layer, writes_through(role) ? -1 : 0);
        else
          add(role, layer, writes(role, layer) ? Part::rows : Part::none);
        if (role == Role::ln1 || role == Role::ln2) add_pre_gain(role, layer);
      }
    }
    add_gain(Role::ln_final, kNoLayer, spec_.tied ? 1 : 0);
    add_pre_gain(Role::ln_final, kNoLayer);
    if (spec_.has_head && !spec_.tied) add(Role::unembed, kNoLayer, Part::none);
    return std::move(tensors_);
  }

 private:
  // What of a tensor belongs to a dimension of the stream and is divided.
  enum class Part { none, columns, rows };

  static bool is_gain(Role role) {
    return role == Role::ln1 || role == Role::ln2 || role == Role::ln1_post ||
           role == Role::ln2_post || role == Role::q_norm || role == Role::k_norm;
  }
  static bool writes_through(Role role) { return role == Role::ln1_post || role == Role::ln2_post; }
  // Whether the sub-layer's last matrix writes into the stream itself, past no norm.
  bool writes(Role role, int layer) const {
    if (role == Role::o || role == Role::o_bias) return !model_.has(Role::ln1_post, layer);
    if (role == Role::down || role == Role::down_bias) return !model_.has(Role::ln2_post, layer);
    return false;
  }

  static std::string name(Role role, int layer) {
    const std::string own = hf_name(role, layer);
    return role == Role::unembed ? own : "model." + own;
  }

  void add(Role role, int layer, Part part) {
    if (!model_.has(role, layer)) return;
    const std::int64_t rows = model_.rows(role, layer), cols = model_.cols(role, layer);
    TensorToWrite tensor;
    tensor.name = name(role, layer);
    tensor.shape = expected_shape(role, spec_).shape;
    tensor.fill = [this, role, layer, part, cols, is_vector = tensor.shape.size() < 2, rows](
                      std::int64_t begin, std::int64_t end, float* out) {
      model_.read_rows(role, layer, begin, is_vector ? rows : end, out);
      for (std::size_t i = 0; i < absorption_.dims.size(); ++i) {
        const std::int64_t j = absorption_.dims[i];
        const auto k = static_cast<float>(absorption_.factors[i]);
        if (part == Part::columns)
          for (std::int64_t r = 0; r < end - begin; ++r) out[r * cols + j] /= k;
        if (part != Part::rows) continue;
        if (is_vector)
          out[j] /= k;
        else if (begin <= j && j < end)
          std::for_each(out + (j - begin) * cols, out + (j - begin + 1) * cols,
                        [k](float& w) { w /= k; });
      }
    };
    tensors_.push_back(std::move(tensor));
  }

  // A norm's gain as its family stores it, that of the dimensions times k^power. float(1 + w) − 1
  // would lose bits of a stored w, so what does not change is copied.
  void add_gain(Role role, int layer, int power) {
    if (!model_.has(role, layer)) return;
    TensorToWrite tensor;
    tensor.name = name(role, layer);
    tensor.shape = expected_shape(role, spec_).shape;
    tensor.fill = [this, role, layer, power](std::int64_t, std::int64_t, float* out) {
      const NormGain gain = model_.norm_gain(role, layer);
      const double offset = spec_.norm_offset;
      const bool is_stored_alike = offset == 0 || model_.container() == Container::safetensors;
      for (std::size_t i = 0; i < gain.raw.size(); ++i)
        out[i] = is_stored_alike ? gain.raw[i] : static_cast<float>(gain.effective[i] - offset);
      for (std::size_t i = 0; power != 0 && i < absorption_.dims.size(); ++i) {
        const auto j = static_cast<std::size_t>(absorption_.dims[i]);
        out[j] = static_cast<float>(gain.effective[j] * std::pow(absorption_.factors[i], power) -
                                    offset);
      }
    };
    tensors_.push_back(std::move(tensor));
  }

  void add_pre_gain(Role norm, int layer) {
    TensorToWrite tensor;
    tensor.name = name(pre_role(norm), layer);
    tensor.shape = {spec_.d_model};
    tensor.fill = [this, role = pre_role(norm), layer](std::int64_t, std::int64_t, float* out) {
      std::fill_n(out, spec_.d_model, 1.0f);
      if (model_.has(role, layer)) model_.read_rows(role, layer, 0, 1, out);
      for (std::size_t i = 0; i < absorption_.dims.size(); ++i)
        out[absorption_.dims[i]] *= static_cast<float>(absorption_.factors[i]);
    };
    tensors_.push_back(std::move(tensor));
  }

  const ModelFiles& model_;
  const ArchSpec& spec_;
  const Absorption& absorption_;
  std::vector<TensorToWrite> tensors_;
};

// rope_parameters of a config.json. Divisors of the inverse frequencies, which a GGUF file holds as
// a tensor, are what longrope calls its factors.
nlohmann::ordered_json rope_of(const ModelFiles& model) {
  const RopeSpec& rope = model.spec().rope;
  nlohmann::ordered_json json = {{"rope_theta", rope.theta}, {"rope_type", "default"}};
  if (rope.has_divisors && rope.scaling != RopeScaling::none)
    throw Error(ErrorKind::unsupported,
                fmt::format("absorb: rotary positions with divisors and {} scaling at once cannot "
                            "be written to a config.json",
                            to_string(rope.scaling)));
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

void write_config(const ModelFiles& model, const fs::path& folder) {
  nlohmann::ordered_json config = model.container() == Container::gguf
                                      ? config_of(model)
                                      : nlohmann::ordered_json::parse(model.config_text());
  config["tie_word_embeddings"] = model.spec().tied;
  config["pre_affine"] = true;
  config.erase("quantization_config");
  for (const char* key : {"torch_dtype", "dtype"})
    if (config.contains(key)) config[key] = "float32";
  std::ofstream file(folder / "config.json");
  file << config.dump(2) << '\n';
  if (!file.flush())
    throw Error(ErrorKind::io, (folder / "config.json").string() + ": cannot be written");
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
  const std::string& family = model.spec().architecture;
  if (family != "llama" && family != "mistral" && family != "qwen2" && family != "qwen3")
    throw Error(ErrorKind::unsupported,
                fmt::format("absorb: models of the family {} cannot be written yet, only llama, "
                            "mistral, qwen2 and qwen3",
                            family));
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
  Writer writer(model, absorption);
  if (!write_safetensors((fs::path(folder) / "model.safetensors").string(), writer.tensors(), stop))
    return false;
  if (model.gguf() != nullptr)
    write_gguf_metadata(*model.gguf(), {"tokenizer.", "general.architecture"},
                        (fs::path(folder) / "tokenizer.gguf").string());
  if (model.container() == Container::safetensors)
    for (const char* name : {"tokenizer.json", "tokenizer.model", "tokenizer.gguf",
                             "tokenizer_config.json", "special_tokens_map.json",
                             "added_tokens.json", "generation_config.json", "chat_template.jinja"})
      copy_if_there(fs::path(model.path()) / name, fs::path(folder) / name);
  write_config(model, folder);
  return true;
}

}  // namespace sinkscope
