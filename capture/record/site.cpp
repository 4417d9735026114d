// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/record/site.h"

#include <algorithm>
#include <iterator>

#include "core/capture_layout.h"

namespace sinkscope {

namespace {

// In the order of the enum.
constexpr const char* kHooks[] = {
    "hook_resid_pre",
    "hook_resid_mid",
    "hook_resid_post",
    "ln1.hook_out",
    "ln2.hook_out",
    "ln_final.hook_out",
    "hook_attn_out",
    "hook_mlp_out",
    "attn.hook_q_norm",
    "attn.hook_k_norm",
    "attn.hook_q",
    "attn.hook_k",
    "attn.hook_v",
    "attn.hook_rot_q",
    "attn.hook_rot_k",
    "attn.hook_z",
    "mlp.hook_pre",
    "mlp.hook_pre_linear",
    "mlp.hook_post",
    "ln1_post.hook_out",
    "ln2_post.hook_out",
    "ln1.hook_gate",
    "ln2.hook_gate",
    "attn.hook_gate",
    "attn.hook_q_latent",
    "attn.hook_kv_latent",
    "linear.hook_norm",
    "mlp.hook_router",
    "mlp.hook_router_logits",
    "mlp.hook_shared_gate",
    "hyper_attn.hook_norm",
    "hyper_attn.hook_gate",
    "hyper_attn.hook_pre",
    "hyper_attn.hook_mixed",
    "hyper_attn.hook_inject",
    "hyper_attn.hook_post",
    "hyper_attn.hook_comb",
    "hyper_mlp.hook_norm",
    "hyper_mlp.hook_gate",
    "hyper_mlp.hook_pre",
    "hyper_mlp.hook_mixed",
    "hyper_mlp.hook_inject",
    "hyper_mlp.hook_post",
    "hyper_mlp.hook_comb",
    "hyper_final.hook_norm",
    "hyper_final.hook_gate",
    "hyper_final.hook_pre",
    "hyper_final.hook_mixed",
    "hook_ple_add",
    "attn.hook_pattern_compressed",
    "attn.hook_compressed_kv",
    "hook_resid_mid_sum",
    "hook_resid_post_sum",
    "attn.hook_v_norm",
    "hook_per_layer_add",
    "ln1_k.hook_out",
    "ln1_v.hook_out",
    "depth_attn.hook_weights",
    "depth_attn.hook_mixed",
    "depth_mlp.hook_weights",
    "depth_mlp.hook_mixed",
    "depth_final.hook_weights",
    "depth_final.hook_mixed",
    "linear.hook_state_norm",
    "embed_norm.hook_out",
    "per_layer_proj_norm.hook_out",
    "ln2_post_dense.hook_out",
    "ln2_experts.hook_out",
    "ln2_post_experts.hook_out",
    "mlp.hook_router_norm",
    "ngram.hook_key_norm",
    "ngram.hook_query_norm",
    "ngram.hook_conv_norm",
};
static_assert(std::size(kHooks) == std::size(kAllSites));

bool has_stream_site(const ArchSpec& spec, Site site) {
  const int part = stream_part(site);
  const bool is_gated = part == 1 || part == 4, is_both = part == 0 || part == 3;
  return spec.has_streams() && (is_both || is_gated == (spec.streams.mix == StreamMix::gated));
}

}  // namespace

const char* hook_name(Site site) { return kHooks[static_cast<std::size_t>(site)]; }

std::optional<Site> site_of_hook(const std::string& hook) {
  for (Site site : kAllSites)
    if (hook == hook_name(site)) return site;
  return std::nullopt;
}

int stream_part(Site site) {
  for (const Site norm : {Site::hyper_attn_norm, Site::hyper_mlp_norm, Site::hyper_final_norm}) {
    const int part = static_cast<int>(site) - static_cast<int>(norm);
    if (part >= 0 && part <= (norm == Site::hyper_final_norm ? 3 : 6)) return part;
  }
  return -1;
}

bool is_stream_site(Site site) { return stream_part(site) >= 0; }

bool has_site(const ArchSpec& spec, Site site) {
  if (site == Site::ln_final_out) return true;
  if (site == Site::embed_norm) return spec.embed_norm;
  if (site == Site::per_layer_proj_norm) return spec.d_per_layer > 0;
  if (is_outside_blocks(site))
    return is_stream_site(site) ? has_stream_site(spec, site) : spec.depth_block > 0;
  for (int layer = 0; layer < spec.n_layers; ++layer)
    if (has_site(spec, site, layer)) return true;
  return false;
}

bool has_site(const ArchSpec& spec, Site site, int layer) {
  if (is_outside_blocks(site)) return false;
  if (is_stream_site(site)) return has_stream_site(spec, site);
  const Mixer mixer = spec.mixer(layer);
  const bool has_experts = spec.has_experts(layer);
  switch (site) {
    case Site::resid_mid:
      return !spec.parallel;
    case Site::ln1_out:
      return spec.has_ln1;
    case Site::ln2_out:
      return spec.has_ln2;
    case Site::ln1_k_out:
    case Site::ln1_v_out:
      return spec.n_inputs(layer) > 1;
    case Site::depth_attn_weights:
    case Site::depth_attn_mixed:
      return spec.depth_block > 0 && layer > 0;
    case Site::depth_mlp_weights:
    case Site::depth_mlp_mixed:
      return spec.depth_block > 0;
    case Site::ngram_add:
    case Site::ngram_key_norm:
    case Site::ngram_query_norm:
    case Site::ngram_conv_norm:
      return spec.has_ngrams(layer);
    case Site::ln2_post_dense_out:
    case Site::ln2_experts_out:
    case Site::ln2_post_experts_out:
    case Site::router_norm:
      return has_experts && spec.moe.beside_dense;
    case Site::pattern_compressed:
    case Site::compressed_kv:
      return spec.compress_of(layer) > 0;
    case Site::ln1_post_out:
      return spec.has_ln1_post;
    case Site::ln2_post_out:
      return spec.has_ln2_post;
    case Site::ln1_gate:
      return spec.has_norm_gate(layer, Role::ln1);
    case Site::ln2_gate:
      return spec.has_norm_gate(layer, Role::ln2);
    case Site::resid_mid_sum:
    case Site::resid_post_sum:
      return spec.post_norm;
    case Site::per_layer_add:
      return spec.d_per_layer > 0;
    case Site::q_norm:
      return spec.qk_norm != QkNorm::none && mixer == Mixer::attention;
    case Site::k_norm:
      return mixer == Mixer::shared || (spec.qk_norm != QkNorm::none && mixer == Mixer::attention &&
                                        spec.has_own_keys(layer));
    case Site::v_norm:
      return spec.value_norm && spec.has_own_keys(layer);
    case Site::k:
      return mixer != Mixer::delta && spec.has_own_keys(layer);
    case Site::q:
    case Site::v:
    case Site::rot_q:
    case Site::rot_k:
    case Site::z:
      return mixer != Mixer::delta;
    case Site::attn_gate:
      return spec.gate_dim() > 0 && mixer != Mixer::delta;
    case Site::q_latent:
      return (mixer == Mixer::latent || mixer == Mixer::shared) && spec.latent.q_rank > 0;
    case Site::kv_latent:
      return mixer == Mixer::latent;
    case Site::linear_norm:
    case Site::linear_state_norm:
      return mixer == Mixer::delta;
    case Site::mlp_pre:
    case Site::mlp_post:
      return !has_experts || spec.moe.beside_dense;
    case Site::mlp_pre_linear:
      return (!has_experts || spec.moe.beside_dense) && spec.mlp_gated;
    case Site::mlp_router:
    case Site::mlp_router_logits:
      return has_experts;
    case Site::mlp_shared_gate:
      return has_experts && spec.moe.shared_router;
    default:
      return true;
  }
}

bool has_statistics(Site site) {
  switch (site) {
    case Site::resid_pre:
    case Site::resid_mid:
    case Site::resid_post:
    case Site::ln1_out:
    case Site::ln2_out:
    case Site::ln_final_out:
    case Site::attn_out:
    case Site::mlp_out:
    case Site::q_norm:
    case Site::k_norm:
    case Site::ln1_post_out:
    case Site::ln2_post_out:
    case Site::q_latent:
    case Site::kv_latent:
    case Site::linear_norm:
    case Site::ln1_gate:
    case Site::ln2_gate:
    case Site::v_norm:
    case Site::resid_mid_sum:
    case Site::resid_post_sum:
    case Site::ln1_k_out:
    case Site::ln1_v_out:
    case Site::attn_gate:
    case Site::embed_norm:
    case Site::ln2_post_dense_out:
    case Site::ln2_experts_out:
    case Site::ln2_post_experts_out:
    case Site::hyper_attn_norm:
    case Site::hyper_mlp_norm:
    case Site::hyper_final_norm:
    case Site::hyper_attn_mixed:
    case Site::hyper_mlp_mixed:
    case Site::hyper_final_mixed:
      return true;
    default:
      return false;
  }
}

bool is_outside_blocks(Site site) {
  return site == Site::embed_norm || site == Site::per_layer_proj_norm ||
         site == Site::ln_final_out || site == Site::depth_final_weights ||
         site == Site::depth_final_mixed ||
         (site >= Site::hyper_final_norm && site <= Site::hyper_final_mixed);
}

bool is_always_recorded(Site site) {
  return site == Site::depth_attn_weights || site == Site::depth_mlp_weights ||
         site == Site::depth_final_weights || site == Site::linear_state_norm;
}

std::vector<int> site_layers(const ArchSpec& spec, Site site) {
  if (is_outside_blocks(site)) return {-1};
  std::vector<int> layers;
  for (int layer = 0; layer < spec.n_layers; ++layer)
    if (has_site(spec, site, layer)) layers.push_back(layer);
  return layers;
}

}  // namespace sinkscope
