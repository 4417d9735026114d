// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/hf_rope.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "capture/checkpoint/json_keys.h"
#include "capture/checkpoint/printable.h"

namespace sinkscope {
namespace {

using Json = nlohmann::json;

constexpr double kDefaultTheta = 10000.0;  // of the whole Llama family in transformers

void require_factor(const JsonKeys& keys, const std::string& kind, HfConfig& out) {
  RopeSpec& rope = out.spec.rope;
  const std::optional<double> factor = keys.number("factor");
  if (factor) {
    rope.factor = *factor;
  } else if (rope.scaling == RopeScaling::yarn && rope.original_context > 0) {
    rope.factor = out.spec.n_ctx / rope.original_context;  // as transformers does
  } else {
    out.obstacles.push_back("rope scaling " + kind + " without a factor");
  }
  if (!(rope.factor > 0))
    out.obstacles.push_back(fmt::format("rope scaling {} with factor {}", kind, rope.factor));
}

void parse_scaling(const JsonKeys& keys, const std::string& kind, HfConfig& out) {
  RopeSpec& rope = out.spec.rope;
  if (kind == "default") return;
  if (kind == "linear") {
    rope.scaling = RopeScaling::linear;
  } else if (kind == "dynamic") {
    rope.scaling = RopeScaling::dynamic;
  } else if (kind == "llama3") {
    rope.scaling = RopeScaling::llama3;
    rope.low_freq_factor = keys.number("low_freq_factor").value_or(rope.low_freq_factor);
    rope.high_freq_factor = keys.number("high_freq_factor").value_or(rope.high_freq_factor);
    if (rope.low_freq_factor == rope.high_freq_factor)
      out.obstacles.push_back("rope scaling llama3 with equal low and high frequency factors");
  } else if (kind == "yarn") {
    rope.scaling = RopeScaling::yarn;
    rope.beta_fast = keys.number("beta_fast").value_or(rope.beta_fast);
    rope.beta_slow = keys.number("beta_slow").value_or(rope.beta_slow);
    rope.truncate = keys.boolean("truncate").value_or(rope.truncate);
    rope.attention_factor = keys.number("attention_factor");
    rope.mscale = keys.number("mscale");
    rope.mscale_all_dim = keys.number("mscale_all_dim");
  } else {
    out.obstacles.push_back("rope scaling \"" + printable(kind) + "\" is not supported");
    return;
  }
  require_factor(keys, kind, out);
}

}  // namespace

void parse_hf_rope(const Json& config, const std::string& where, HfConfig& out) {
  const JsonKeys top(config, where);
  RopeSpec& rope = out.spec.rope;
  rope.theta = top.number("rope_theta").value_or(kDefaultTheta);
  out.partial_rotary = top.number("partial_rotary_factor").value_or(1.0);

  const bool is_new = top.object("rope_parameters") != nullptr;
  const char* key = is_new ? "rope_parameters" : "rope_scaling";
  if (const Json* object = top.object(key)) {
    for (const auto& [name, value] : object->items()) {
      if (!value.is_object()) continue;
      out.obstacles.push_back(
          fmt::format("{}: one kind of rotary positions per layer type ({}) is "
                      "not supported",
                      key, printable(name)));
      return;
    }
    const JsonKeys keys(*object, where, std::string(key) + ".");
    rope.theta = keys.number("rope_theta").value_or(rope.theta);
    out.partial_rotary = keys.number("partial_rotary_factor").value_or(out.partial_rotary);
    const std::string kind = keys.text("rope_type").value_or(keys.text("type").value_or("default"));
    // Beside the scaling it says how long the model was trained; on top it wins, as for Phi-3.
    const char* original = "original_max_position_embeddings";
    if (kind == "llama3" || kind == "yarn")
      rope.original_context = top.number(original).value_or(keys.number(original).value_or(0));
    parse_scaling(keys, kind, out);
  }
  if (rope.original_context < 0) {
    out.obstacles.push_back(
        fmt::format("original_max_position_embeddings is {}", rope.original_context));
  }
  if (!(rope.theta > 0)) out.obstacles.push_back(fmt::format("rope_theta is {}", rope.theta));
}

}  // namespace sinkscope
