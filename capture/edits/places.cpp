// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/edits/places.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/edits/edit_weights.h"
#include "core/error.h"
#include "core/site_name.h"

namespace sinkscope {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorKind::invalid_argument, message);
}

}  // namespace

const char* norm_role_name(Role role) {
  return role == Role::ln_final ? "ln_final" : to_string(role);
}

bool names_site(const NameList& names, Site site, int layer) {
  if (names.empty()) return site != Site::resid_pre || layer == 0;
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const SiteName wanted = SiteName::parse(name);
    if (wanted.hook != hook_name(site)) return false;
    return name == wanted.hook || wanted.layer == layer;
  });
}

bool names_norm(const NameList& names, Role role, int layer) {
  if (names.empty()) return true;
  const std::string own = norm_role_name(role);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return name == own || name == norm_name(own.c_str(), layer);
  });
}

bool reads_stream(const ArchSpec& spec, Role role) {
  const bool is_behind_a_half = role == Role::ln1_post || role == Role::ln2_post;
  return !is_behind_a_half || spec.post_norm;
}

bool has_norm(const ArchSpec& spec, Role role, int layer) {
  switch (role) {
    case Role::ln1:
      return spec.has_ln1;
    case Role::ln1_k:
    case Role::ln1_v:
      return spec.n_inputs(layer) > 1;
    case Role::ln1_post:
      return spec.has_ln1_post;
    case Role::ln2:
      return spec.has_ln2;
    case Role::ln2_post:
      return spec.has_ln2_post;
    default:
      return spec.has_final_norm;
  }
}

void check_sites(const char* edit, const NameList& names, const ArchSpec& spec) {
  const int n_layers = spec.n_layers;
  for (const std::string& name : names) {
    bool exists = false;
    for (int layer = 0; layer < n_layers && !exists; ++layer)
      for (Site site : {Site::resid_pre, Site::resid_mid, Site::resid_post})
        exists = exists || (has_site(spec, site, layer) && names_site({name}, site, layer));
    if (!exists)
      refuse(
          fmt::format("{}: no residual site '{}' in this model of {} blocks; expected "
                      "hook_resid_pre, {}hook_resid_post, with or without blocks.N.",
                      edit, name, n_layers, spec.parallel ? "" : "hook_resid_mid, "));
  }
}

void check_norms(const char* edit, const NameList& names, const ArchSpec& spec) {
  std::string known;
  for (const Role role : kBlockNorms) {
    bool exists = false;
    for (int layer = 0; layer < spec.n_layers; ++layer)
      exists = exists || has_norm(spec, role, layer);
    if (exists) known += std::string(norm_role_name(role)) + ", ";
  }
  for (const std::string& name : names) {
    bool exists = spec.has_final_norm && names_norm({name}, Role::ln_final, kNoLayer);
    for (int layer = 0; layer < spec.n_layers && !exists; ++layer)
      exists = std::any_of(std::begin(kBlockNorms), std::end(kBlockNorms), [&](Role role) {
        return has_norm(spec, role, layer) && names_norm({name}, role, layer);
      });
    if (!exists)
      refuse(
          fmt::format("{}: no norm '{}' in this model of {} blocks; expected {}ln_final, with or "
                      "without blocks.N.",
                      edit, name, spec.n_layers, known));
  }
}

}  // namespace sinkscope
