// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/draw/grid.h"
#include "core/norm_gains.h"
#include "core/snapshot/run_facts.h"

namespace sinkscope {

// over_median: every gain divided by the median of its layer, for models whose gains sit elsewhere
// than at 1.
enum class GainView { gain, over_median };

struct NormsRequest {
  std::string run;                 // of a capture; empty for a model
  std::vector<std::string> roles;  // empty = all, in the file's order
  GainView view = GainView::gain;
  int n_starred = 3;
  bool operator==(const NormsRequest&) const = default;
};

// The gains of one role: layers downwards, dimensions to the right.
struct NormStrip {
  std::string role;   // "ln1", "ln1/pre_gain" for the gain in front of it, "ln1/gate" for its gate
  std::string title;  // "Attention pre-norm gain"
  // [N,C] |gain| or |gain / median of its layer|: what a log scale centered at 1 can show. Signs
  // are in gains.
  Grid map;
  std::vector<int> layers;   // [N] block indices; −1 = after the last block
  NormRoleGains gains;       // extremes per layer, signed
  std::vector<int> starred;  // dimensions that deviate most, ascending
  // The cells that deviate most from the center below and above, with the signed gain; layer −1 in
  // ln_final. `row` of the map. Empty when nothing deviates.
  struct Box {
    int row = 0, dim = 0;
    double value = 0;  // effective gain, or over its median
  };
  std::vector<Box> boxes;
};

struct NormsSnapshot {
  NormsRequest request;
  std::string title;  // model name
  ModelFacts model;   // name and n_layers alone where the model was not run
  int n_layers = 0;
  std::vector<NormStrip> strips;
  std::string view_text;  // "effective gain", "effective gain / median of its layer"
};

// "Attention pre-norm" for ln1, "FFN pre-norm" for ln2, …
std::string norm_role_title(const std::string& role);

// The roles of norms in their order; a norm that reads pre_gain ⊙ x (PreAffine) has a second one
// behind its own: "ln1", "ln1/pre_gain".
std::vector<std::string> norm_role_names(const std::vector<NormFacts>& norms);

// Whether a strip shows the mean gate of a gated norm (over the tokens of a run) and not a gain.
bool is_gate_role(const std::string& role);

// From norms that are in memory: a model's (capture/checkpoint/model_norms.h) or a capture's.
NormsSnapshot norms_snapshot(const std::vector<NormFacts>& norms, const std::string& title,
                             int n_layers, const NormsRequest& request);
// Throws Error{not_found} when the capture has no norms or not that role.
NormsSnapshot read_norms_snapshot(const CaptureReader& reader, const NormsRequest& request);

}  // namespace sinkscope
