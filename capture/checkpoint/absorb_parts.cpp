// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/absorb_parts.h"

#include <algorithm>

namespace sinkscope {
namespace {

// The first matrices of a half, which read the stream where no norm stands in front of them.
bool reads_first(Role role) {
  switch (role) {
    case Role::q:
    case Role::k:
    case Role::v:
    case Role::attn_gate:
    case Role::gate:
    case Role::up:
      return true;
    default:
      return false;
  }
}

bool is_of_mlp(Role role) { return role == Role::gate || role == Role::up; }

AbsorbPart part_of_embedding(const ArchSpec& spec) {
  return spec.embed_norm ? AbsorbPart::none : AbsorbPart::columns_divided;
}

// A head that is the embedding has divided columns.
AbsorbPart part_of_final_norm(const ArchSpec& spec) {
  const bool is_head_divided =
      spec.has_head && spec.tied && part_of_embedding(spec) == AbsorbPart::columns_divided;
  return is_head_divided ? AbsorbPart::values_times : AbsorbPart::none;
}

}  // namespace

bool reads_through_norm(const ArchSpec& spec, Role norm) {
  return norm == Role::ln1 ? spec.has_ln1 : spec.has_ln2;
}

AbsorbPart absorb_part(const ModelFiles& model, Role role, int layer) {
  const ArchSpec& spec = model.spec();
  const bool attention_is_last = !model.has(Role::ln1_post, layer),
             mlp_is_last = !model.has(Role::ln2_post, layer);
  const auto if_last = [](bool is_last, AbsorbPart part) {
    return is_last ? part : AbsorbPart::none;
  };
  switch (role) {
    case Role::embed:
    case Role::pos_embed:
    case Role::type_embed:
      return part_of_embedding(spec);
    case Role::embed_norm:
    case Role::embed_norm_bias:
    case Role::ln1_post:
    case Role::ln1_post_bias:
    case Role::ln2_post:
    case Role::ln2_post_bias:
      return AbsorbPart::values_divided;
    case Role::o:
      return if_last(attention_is_last, AbsorbPart::rows_divided);
    case Role::o_bias:
      return if_last(attention_is_last, AbsorbPart::values_divided);
    case Role::down:
    case Role::expert_down:
    case Role::shared_down:
      return if_last(mlp_is_last, AbsorbPart::rows_divided);
    case Role::down_bias:
      return if_last(mlp_is_last, AbsorbPart::values_divided);
    case Role::expert_down_bias:  // [E, D]
      return if_last(mlp_is_last, AbsorbPart::columns_divided);
    case Role::ln_final:
    case Role::ln_final_bias:
      return part_of_final_norm(spec);
    case Role::unembed:
      return spec.has_final_norm ? AbsorbPart::none : AbsorbPart::columns_times;
    default:
      break;
  }
  const bool is_raw =
      reads_first(role) && !reads_through_norm(spec, is_of_mlp(role) ? Role::ln2 : Role::ln1);
  return is_raw ? AbsorbPart::columns_times : AbsorbPart::none;
}

std::string obstacle_to_absorbing(const ArchSpec& spec) {
  const bool has_plain_attention =
      spec.mixers.empty() || std::all_of(spec.mixers.begin(), spec.mixers.end(),
                                         [](Mixer m) { return m == Mixer::attention; });
  if (spec.has_streams())
    return "its halves read mixes of several residual streams, weighted by norms of their own, for "
           "which no gain in front is written";
  if (spec.depth_block > 0)
    return "its attention over depth reads the sums before through norms of its own, for which no "
           "gain in front is written";
  if (spec.post_norm)
    return "its norms stand behind the sums x + f(x), where the other summand is not divided";
  if (spec.d_per_layer > 0)
    return "every layer has an input of its own, made of the embedding, and reads the stream past "
           "its norms";
  if (spec.moe.beside_dense) return "the router of its experts reads the stream past its norms";
  if (!spec.has_ln1 && !has_plain_attention)
    return "its token mixers read the stream past no norm, and not all are plain attention";
  if (!spec.has_ln2 && spec.moe.n_experts > 0) return "its experts read the stream past no norm";
  if (!spec.has_final_norm && spec.has_head && spec.tied)
    return "its head is the embedding and reads the stream past no norm";
  return "";
}

}  // namespace sinkscope
