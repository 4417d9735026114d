// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/hf_rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "capture/checkpoint/family.h"
#include "capture/checkpoint/json_keys.h"
#include "capture/checkpoint/printable.h"
#include "capture/checkpoint/spec_check.h"

namespace sinkscope {
namespace {

using Json = nlohmann::json;

void require_factor(const JsonKeys& keys, const std::string& kind, RopeSpec& rope, HfConfig& out) {
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

// Factors by dimension, one list for short prompts and one for long ones (Phi-3).
void parse_longrope(const JsonKeys& keys, RopeSpec& rope, HfConfig& out) {
  rope.scaling = RopeScaling::longrope;
  rope.short_factor = keys.numbers("short_factor").value_or(std::vector<double>());
  rope.long_factor = keys.numbers("long_factor").value_or(std::vector<double>());
  rope.attention_factor = keys.number("attention_factor");
  const double context = rope.original_context > 0 ? rope.original_context : out.spec.n_ctx;
  rope.factor = out.spec.n_ctx / context;
  for (const std::vector<double>* factors : {&rope.short_factor, &rope.long_factor})
    for (const double factor : *factors)
      if (!(factor > 0)) out.obstacles.push_back(fmt::format("longrope by {}", factor));
  if (rope.short_factor.empty() || rope.short_factor.size() != rope.long_factor.size())
    out.obstacles.push_back("longrope: short_factor and long_factor are not lists of one length");
}

void parse_scaling(const JsonKeys& keys, const std::string& kind, RopeSpec& rope, HfConfig& out) {
  if (kind == "default") return;
  if (kind == "linear") {
    rope.scaling = RopeScaling::linear;
  } else if (kind == "dynamic") {
    rope.scaling = RopeScaling::dynamic;
  } else if (kind == "proportional") {
    rope.scaling = RopeScaling::proportional;
    return;
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
  } else if (kind == "longrope" || kind == "su") {
    parse_longrope(keys, rope, out);
    return;
  } else {
    out.obstacles.push_back("rope scaling \"" + printable(kind) + "\" is not supported");
    return;
  }
  require_factor(keys, kind, rope, out);
}

void check(const RopeSpec& rope, HfConfig& out) {
  if (rope.original_context < 0) {
    out.obstacles.push_back(
        fmt::format("original_max_position_embeddings is {}", rope.original_context));
  }
  if (const std::string wrong = wrong_rope_base(rope.theta); !wrong.empty())
    out.obstacles.push_back("rope_theta is " + wrong);
}

}  // namespace

void read_rope(const JsonKeys& keys, const JsonKeys& top, RopeSpec& rope, HfConfig& out) {
  rope.theta = keys.number("rope_theta").value_or(rope.theta);
  rope.partial = keys.number("partial_rotary_factor").value_or(rope.partial);
  const std::string kind = keys.text("rope_type").value_or(keys.text("type").value_or("default"));
  // Beside the scaling it says how long the model was trained; on top it wins, as for Phi-3.
  const char* original = "original_max_position_embeddings";
  if (kind == "llama3" || kind == "yarn" || kind == "longrope" || kind == "su")
    rope.original_context = top.number(original).value_or(keys.number(original).value_or(0));
  parse_scaling(keys, kind, rope, out);
  check(rope, out);
}

namespace {

// One kind of positions for each layer type (Gemma 3, OLMo 3).
void parse_by_type(const Json& object, const std::string& where, const JsonKeys& top,
                   HfConfig& out) {
  std::map<std::string, RopeSpec> by_type;
  for (const auto& [name, value] : object.items()) {
    if (!value.is_object()) continue;
    RopeSpec& rope = by_type[name] = out.spec.rope;
    read_rope(JsonKeys(value, where, "rope_parameters." + name + "."), top, rope, out);
  }
  if (out.layer_types.empty()) {
    out.obstacles.push_back(fmt::format("rope_parameters per layer type ({}) without layer_types",
                                        printable(by_type.begin()->first)));
    return;
  }
  out.spec.layer_ropes.clear();
  for (const std::string& type : out.layer_types) {
    const auto found = by_type.find(type);
    if (found == by_type.end()) {
      out.obstacles.push_back("rope_parameters say nothing about " + printable(type));
      return;
    }
    out.spec.layer_ropes.push_back(found->second);
  }
  const auto full = by_type.find("full_attention");
  out.spec.rope = full != by_type.end() ? full->second : out.spec.layer_ropes.front();
}

}  // namespace

void parse_hf_rope(const Json& config, const std::string& where, HfConfig& out) {
  const JsonKeys top(config, where);
  RopeSpec& rope = out.spec.rope;
  rope.theta = out.family->rope_theta;
  rope.partial = out.family->rotary_part;
  for (const char* name : {"rotary_emb_base", "rope_theta"})
    rope.theta = top.number(name).value_or(rope.theta);
  for (const char* name : {"rotary_pct", "partial_rotary_factor"})
    rope.partial = top.number(name).value_or(rope.partial);

  const bool is_new = top.object("rope_parameters") != nullptr;
  const char* key = is_new ? "rope_parameters" : "rope_scaling";
  if (const Json* object = top.object(key)) {
    const bool by_type = std::any_of(object->begin(), object->end(),
                                     [](const Json& value) { return value.is_object(); });
    if (by_type) {
      parse_by_type(*object, where, top, out);
      return;
    }
    read_rope(JsonKeys(*object, where, std::string(key) + "."), top, rope, out);
    return;
  }
  check(rope, out);
}

}  // namespace sinkscope
