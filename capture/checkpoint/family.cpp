// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/family.h"

#include <algorithm>

#include "capture/checkpoint/families/families.h"

namespace sinkscope {
namespace {

int any_size(const JsonKeys& keys, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto value = keys.whole(name, 1, 1 << 20)) return static_cast<int>(*value);
  return 0;
}

}  // namespace

std::span<const TensorName> lines_of(std::span<const TensorName> names, Role role) {
  const auto is_role = [role](const TensorName& line) { return line.role == role; };
  const auto begin = std::find_if(names.begin(), names.end(), is_role);
  return {begin, std::find_if_not(begin, names.end(), is_role)};
}

const Family* find_family(const std::string& model_type) {
  for (const auto families :
       {llama_families(), mixture_families(), gpt_families(), gemma_families(), olmo_families(),
        phi_families(), granite_families(), gpt_oss_families(), deepseek_families(),
        deepseek_v4_families(), qwen_next_families(), sink_families(), bert_families(),
        inkling_families()})
    for (const Family& family : families)
      if (model_type == family.model_type) return &family;
  return nullptr;
}

std::span<const TensorName> names_of(const Family& family, Role role) {
  const auto own = lines_of(family.names, role);
  if (!own.empty() || family.is_complete) return own;
  return lines_of(family.usual.empty() ? llama_names() : family.usual, role);
}

void read_attention_bias(const JsonKeys& keys, HfConfig& out) {
  out.spec.qkv_bias = out.spec.o_bias = keys.boolean("attention_bias").value_or(false);
}

void read_experts(const JsonKeys& keys, std::initializer_list<const char*> count,
                  std::initializer_list<const char*> used, const char* width, HfConfig& out) {
  MoeSpec& moe = out.spec.moe;
  moe.n_experts = any_size(keys, count);
  moe.n_used = any_size(keys, used);
  moe.d_expert = static_cast<int>(keys.whole(width, 1, 1 << 26).value_or(0));
  if (moe.n_experts == 0 || moe.n_used == 0 || moe.d_expert == 0)
    out.obstacles.push_back(
        "config.json does not say how many experts there are, how many a "
        "token goes to, or how wide they are");
  if (moe.n_used > moe.n_experts)
    out.obstacles.push_back("a token goes to more experts than exist");
  out.spec.moe_layers.assign(static_cast<std::size_t>(out.spec.n_layers), true);
}

void read_sparse_layers(const JsonKeys& keys, std::vector<std::int64_t> fallback, HfConfig& out) {
  if (const auto listed = keys.numbers("mlp_only_layers")) {
    fallback.clear();
    for (const double layer : *listed) fallback.push_back(static_cast<std::int64_t>(layer));
  }
  const std::int64_t step = keys.whole("decoder_sparse_step", 1, 1 << 20).value_or(1);
  for (int layer = 0; layer < out.spec.n_layers; ++layer) {
    const bool is_dense = std::find(fallback.begin(), fallback.end(), layer) != fallback.end();
    out.spec.moe_layers[static_cast<std::size_t>(layer)] = !is_dense && (layer + 1) % step == 0;
  }
}

}  // namespace sinkscope
