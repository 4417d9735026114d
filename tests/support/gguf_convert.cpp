// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/gguf_convert.h"

#include <cmath>

namespace sinkscope::test {
namespace {

using Values = std::vector<float>;

// `n` rows of `values` from row `begin` on.
void append_rows(Values& to, const Values& values, std::int64_t begin, std::int64_t n,
                 std::int64_t width) {
  to.insert(to.end(), values.begin() + begin * width, values.begin() + (begin + n) * width);
}

// The roles' rows below one another, or their elements where they are vectors.
ConvertedTensor stacked(const ModelFiles& model, int layer, std::string name,
                        std::vector<Role> roles) {
  ConvertedTensor tensor{std::move(name), {}, {}, std::move(roles)};
  const Role first = tensor.roles.front();
  for (const Role role : tensor.roles) {
    const Values values = converted_values(model, role, layer);
    tensor.values.insert(tensor.values.end(), values.begin(), values.end());
  }
  const auto n = static_cast<std::int64_t>(tensor.values.size());
  const std::int64_t width = model.cols(first, layer);
  tensor.shape = model.rows(first, layer) == 1 ? std::vector<std::int64_t>{n}
                                               : std::vector<std::int64_t>{n / width, width};
  return tensor;
}

// The roles take turns: of each in order `rows[i]` rows, `n` times.
ConvertedTensor in_turns(const ModelFiles& model, int layer, std::string name,
                         std::vector<Role> roles, const std::vector<std::int64_t>& rows,
                         std::int64_t n) {
  ConvertedTensor tensor{std::move(name), {}, {}, std::move(roles)};
  const std::int64_t width = model.cols(tensor.roles.front(), layer);
  std::vector<Values> parts;
  for (const Role role : tensor.roles) parts.push_back(converted_values(model, role, layer));
  for (std::int64_t turn = 0; turn < n; ++turn)
    for (std::size_t i = 0; i < parts.size(); ++i)
      append_rows(tensor.values, parts[i], turn * rows[i], rows[i], width);
  tensor.shape = {static_cast<std::int64_t>(tensor.values.size()) / width, width};
  return tensor;
}

ConvertedTensor reshaped(const ModelFiles& model, int layer, std::string name, Role role,
                         std::vector<std::int64_t> shape) {
  return {std::move(name), std::move(shape), converted_values(model, role, layer), {role}};
}

std::vector<ConvertedTensor> delta_tensors(const ModelFiles& model, int layer, GgufForm form) {
  const DeltaSpec& delta = model.spec().delta;
  const std::int64_t heads = delta.n_key_heads, each = delta.n_value_heads / heads,
                     key = delta.key_dim, value = each * delta.value_dim;
  Values rates = converted_values(model, Role::delta_log_rate, layer);
  for (float& rate : rates) rate = -std::exp(rate);
  std::vector<ConvertedTensor> all = {
      in_turns(model, layer, "ssm_ba.weight", {Role::delta_beta, Role::delta_decay}, {each, each},
               heads),
      {"ssm_a", {delta.n_value_heads}, rates, {Role::delta_log_rate}},
      reshaped(model, layer, "ssm_conv1d.weight", Role::delta_conv,
               {delta.n_channels(), delta.n_taps}),
      reshaped(model, layer, form == GgufForm::old ? "ssm_dt" : "ssm_dt.bias", Role::delta_dt_bias,
               {delta.n_value_heads}),
      reshaped(model, layer, "ssm_out.weight", Role::o,
               {model.rows(Role::o, layer), model.cols(Role::o, layer)})};
  if (form == GgufForm::old) {
    all.push_back(in_turns(model, layer, "ssm_in.weight",
                           {Role::delta_q, Role::delta_k, Role::delta_v, Role::delta_gate},
                           {key, key, value, value}, heads));
  } else {
    all.push_back(
        stacked(model, layer, "attn_qkv.weight", {Role::delta_q, Role::delta_k, Role::delta_v}));
    all.push_back(stacked(model, layer, "attn_gate.weight", {Role::delta_gate}));
  }
  return all;
}

// [out / H, in] of each head, transposed.
ConvertedTensor transposed_heads(const ModelFiles& model, int layer, std::string name, Role role) {
  const Values values = converted_values(model, role, layer);
  const std::int64_t heads = model.spec().n_heads, rows = model.rows(role, layer) / heads,
                     cols = model.cols(role, layer);
  ConvertedTensor tensor{std::move(name), {heads, cols, rows}, Values(values.size()), {role}};
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < cols; ++c)
        tensor.values[static_cast<std::size_t>((h * cols + c) * rows + r)] =
            values[static_cast<std::size_t>((h * rows + r) * cols + c)];
  return tensor;
}

std::vector<ConvertedTensor> latent_tensors(const ModelFiles& model, int layer, GgufForm form) {
  const ArchSpec& spec = model.spec();
  const std::int64_t heads = spec.n_heads;
  if (form == GgufForm::old)
    return {in_turns(model, layer, "attn_kv_b.weight", {Role::k, Role::v},
                     {spec.latent.nope_dim, spec.d_value()}, heads)};
  return {transposed_heads(model, layer, "attn_k_b.weight", Role::k),
          reshaped(model, layer, "attn_v_b.weight", Role::v,
                   {heads, spec.d_value(), spec.latent.kv_rank})};
}

}  // namespace

std::vector<float> converted_values(const ModelFiles& model, Role role, int layer) {
  Values values = model.read_vector(role, layer);
  if (is_norm_gain(role) && role != Role::delta_norm)
    for (float& value : values) value += static_cast<float>(model.spec().norm_offset);
  return values;
}

std::vector<ConvertedTensor> converted_tensors(const ModelFiles& model, const std::string& arch,
                                               int layer, GgufForm form) {
  const ArchSpec& spec = model.spec();
  if (arch == "gpt2" || arch == "gptneox")
    return {stacked(model, layer, "attn_qkv.weight", {Role::q, Role::k, Role::v}),
            stacked(model, layer, "attn_qkv.bias", {Role::q_bias, Role::k_bias, Role::v_bias})};
  if (arch == "phi3")
    return {stacked(model, layer, "attn_qkv.weight", {Role::q, Role::k, Role::v}),
            stacked(model, layer, "ffn_up.weight", {Role::gate, Role::up})};
  if (arch == "qwen3next") {
    std::vector<ConvertedTensor> all;
    if (spec.mixer(layer) == Mixer::delta)
      all = delta_tensors(model, layer, form);
    else
      all = {in_turns(model, layer, "attn_q.weight", {Role::q, Role::attn_gate},
                      {spec.head_dim, spec.head_dim}, spec.n_heads)};
    all.push_back(
        reshaped(model, layer, "ffn_gate_inp_shexp.weight", Role::shared_router, {spec.d_model}));
    return all;
  }
  if (arch == "deepseek2") return latent_tensors(model, layer, form);
  return {};
}

}  // namespace sinkscope::test
