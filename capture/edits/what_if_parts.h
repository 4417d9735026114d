// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#include "capture/checkpoint/model_files.h"
#include "capture/edits/norm_edits.h"
#include "capture/edits/places.h"
#include "capture/model/interventions.h"
#include "core/what_if/what_if.h"

namespace sinkscope {

at::Tensor index_tensor(const std::vector<int>& members, at::Device device);

// What the lanes of a what-if share.
struct WhatIfParts {
  WhatIf what_if;
  const ModelFiles& model;
  const ArchSpec& spec;
  at::Device device;
  std::vector<std::vector<int>> token_ids = {};                    // a lane
  std::vector<std::vector<int>> calibration_ids = {};              // a calibration prompt
  std::map<std::pair<std::size_t, Place>, at::Tensor> means = {};  // (edit, place) -> [n dims]
  std::map<std::pair<std::size_t, Place>, NormReplacement> replacements = {};
  std::map<int, AttentionEdit> attention =
      {};  // by layer; masks and value scales are the lane's own
  std::map<std::pair<std::size_t, int>, at::Tensor> gates =
      {};  // (edit, layer) -> weights or factors

  at::Tensor mask(const TokenSet& tokens, const std::vector<int>& ids) const {
    at::Tensor mask = at::zeros({static_cast<std::int64_t>(ids.size())}, at::kBool);
    bool* is_edited = mask.data_ptr<bool>();
    for (int t : tokens.of(ids)) is_edited[t] = true;
    return mask.to(device);
  }
  at::Tensor dims(const IndexSet& set) const {
    return index_tensor(set.within(spec.d_model, "dims"), device);
  }
  at::Tensor state_dims(const IndexSet& set) const {  // of a residual state, all its streams
    return index_tensor(set.within(spec.state_width(), "dims"), device);
  }
  template <class E>
  bool at_norm(const E& edit, Role role, int layer) const {
    // Blocks are chosen by layers; the final norm belongs to no block, so a choice leaves it out.
    const bool in_layers = layer == kNoLayer ? edit.layers.is_all() || !edit.norms.empty()
                                             : edit.layers.contains(layer);
    const bool is_meant =
        !std::is_same_v<E, NormProbe> || !edit.norms.empty() || reads_stream(spec, role);
    return in_layers && is_meant && has_norm(spec, role, layer) &&
           names_norm(edit.norms, role, layer);
  }
  // Checks every edit and reads its weights; errors as WhatIfPass says.
  void prepare();

 private:
  void check(std::size_t i);
  template <class E>
  bool at_block_norm(const E& edit, int layer) const;
  template <class E>
  bool takes_effect(const E& edit) const;
  template <class E>
  std::string idle_part(E edit) const;
  void add_replacement(std::size_t i, const NormReplace& edit);
  at::Tensor own_pre_gain(Role norm, int layer) const;
  void add_attention();
  void check_masks() const;
  void add_gate(std::size_t i, const AttentionGate& edit);
};

}  // namespace sinkscope
