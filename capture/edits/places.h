// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "capture/checkpoint/arch_spec.h"
#include "capture/record/site.h"
#include "core/what_if/edit.h"

namespace sinkscope {

// A named place in the model: a norm (role) or a residual site of one block.
struct Place {
  Role role = Role::ln1;
  Site site = Site::resid_pre;
  int layer = 0;
  auto operator<=>(const Place&) const = default;
};

// The norms that edits know, in a block and then ln_final. Where keys and values have norms of their
// own in front of them, "ln1" is that of the queries. The _post ones stand behind a half of the
// block: before its output is added, or with post-norm behind the sum.
inline constexpr Role kBlockNorms[] = {Role::ln1,      Role::ln1_k, Role::ln1_v,
                                       Role::ln1_post, Role::ln2,   Role::ln2_post};

// "ln1", "ln1_k", "ln1_v", "ln1_post", "ln2", "ln2_post", "ln_final".
const char* norm_role_name(Role role);

// "hook_resid_post" or "blocks.3.hook_resid_post" against (site, layer). No name means the states
// that differ: the first resid_pre, every mid and post.
bool names_site(const NameList& names, Site site, int layer);
// "ln1" or "blocks.3.ln1" against (role, layer); no name means every norm.
bool names_norm(const NameList& names, Role role, int layer);
// Whether a norm of this role reads the stream: without a name, probes are of these.
bool reads_stream(const ArchSpec& spec, Role role);

// Whether the edit is made at this residual state, under its own name or as the resid_pre of the
// next block, which is the same state. The last block has no next one.
template <class E>
bool is_at_state(const E& edit, Site site, int layer, int n_layers) {
  if (edit.layers.contains(layer) && names_site(edit.sites, site, layer)) return true;
  return site == Site::resid_post && layer + 1 < n_layers && !edit.sites.empty() &&
         edit.layers.contains(layer + 1) && names_site(edit.sites, Site::resid_pre, layer + 1);
}

// Whether the model has a norm of this role there: one of kBlockNorms, or ln_final.
bool has_norm(const ArchSpec& spec, Role role, int layer);

// Throw Error{invalid_argument} for a name that no place of the model has; `edit` is named in the
// message.
void check_sites(const char* edit, const NameList& names, const ArchSpec& spec);
void check_norms(const char* edit, const NameList& names, const ArchSpec& spec);

}  // namespace sinkscope
