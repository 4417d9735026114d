// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/record/site.h"

#include <numeric>

#include "core/capture_layout.h"

namespace sinkscope {

const char* hook_name(Site site) {
  switch (site) {
    case Site::resid_pre:
      return "hook_resid_pre";
    case Site::resid_mid:
      return "hook_resid_mid";
    case Site::resid_post:
      return "hook_resid_post";
    case Site::ln1_out:
      return "ln1.hook_out";
    case Site::ln2_out:
      return "ln2.hook_out";
    case Site::ln_final_out:
      return "ln_final.hook_out";
    case Site::attn_out:
      return "hook_attn_out";
    case Site::mlp_out:
      return "hook_mlp_out";
    case Site::q_norm:
      return "attn.hook_q_norm";
    case Site::k_norm:
      return "attn.hook_k_norm";
    case Site::q:
      return "attn.hook_q";
    case Site::k:
      return "attn.hook_k";
    case Site::v:
      return "attn.hook_v";
    case Site::rot_q:
      return "attn.hook_rot_q";
    case Site::rot_k:
      return "attn.hook_rot_k";
    case Site::z:
      return "attn.hook_z";
    case Site::mlp_pre:
      return "mlp.hook_pre";
    case Site::mlp_pre_linear:
      return "mlp.hook_pre_linear";
    case Site::mlp_post:
      return "mlp.hook_post";
  }
  return "";
}

std::optional<Site> site_of_hook(const std::string& hook) {
  for (Site site : kAllSites)
    if (hook == hook_name(site)) return site;
  return std::nullopt;
}

bool has_site(const ArchSpec& spec, Site site) {
  if (site == Site::q_norm || site == Site::k_norm) return spec.qk_norm != QkNorm::none;
  return true;
}

std::vector<int> site_dims(const ArchSpec& spec, Site site) {
  switch (site) {
    case Site::q_norm:
    case Site::q:
    case Site::rot_q:
    case Site::z:
      return {spec.n_heads, kSeqLen, spec.head_dim};
    case Site::k_norm:
    case Site::k:
    case Site::v:
    case Site::rot_k:
      return {spec.n_kv_heads, kSeqLen, spec.head_dim};
    case Site::mlp_pre:
    case Site::mlp_pre_linear:
    case Site::mlp_post:
      return {kSeqLen, spec.d_mlp};
    default:
      return {kSeqLen, spec.d_model};
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
      return true;
    default:
      return false;
  }
}

std::vector<int> site_layers(const ArchSpec& spec, Site site) {
  if (site == Site::ln_final_out) return {-1};
  std::vector<int> layers(static_cast<std::size_t>(spec.n_layers));
  std::iota(layers.begin(), layers.end(), 0);
  return layers;
}

}  // namespace sinkscope
