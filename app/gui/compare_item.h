// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "app/gui/open_files.h"
#include "core/snapshot/compare_snapshot.h"

namespace sinkscope {

// One side of a comparison: a map of a run, or the gains of a run or model.
struct CompareItem {
  std::string path, run;  // run is empty for a model
  MapKind kind = MapKind::attention;
  // attention: −1 = mean over all layers, all heads; residual: −1 = mean |x| over the block states.
  int layer = 0, head = 0;
  std::string role = {};  // norms: "ln1", "ln1/pre_gain"
  bool operator==(const CompareItem&) const = default;
};

// How all sides are shown.
struct CompareView {
  AttentionView attention = AttentionView::raw;
  std::string residual_hook = "hook_resid_post";
  GainView gain = GainView::gain;
  bool operator==(const CompareView&) const = default;
};

// What is compared, as one value.
struct CompareRequest {
  std::vector<CompareItem> items;
  CompareView view;
  bool operator==(const CompareRequest&) const = default;
};

// "L15H5", "L3, mean over heads", "all layers and heads", "L11 residual", "Attention pre-norm".
std::string place_of(const CompareItem& item);

// The place of an item, behind the parts of its origin in which the items differ: "L15H5",
// "run1 · L2H3", "B · Attention pre-norm".
std::string title_of(const CompareItem& item, const std::vector<CompareItem>& all,
                     const OpenModels& models);

// Reads all sides; runs on the reading worker's thread. Throws Error: those of the snapshots,
// not_found for a model that is not open.
CompareSnapshot read_comparison(OpenFiles& files, const OpenModels& models,
                                const CompareRequest& request, const std::stop_token& stop);

}  // namespace sinkscope
