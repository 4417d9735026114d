// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/draw/grid.h"
#include "core/snapshot/run_facts.h"

namespace sinkscope {

struct ThumbnailRequest {
  std::string run;
  bool operator==(const ThumbnailRequest&) const = default;
};

// All heads of all layers at once, from attention/thumbnail.
struct ThumbnailSnapshot {
  ThumbnailRequest request;
  RunFacts facts;
  std::vector<int> layers;     // [A] block indices
  int n_heads = 0;             // H
  int side = 0;                // B = min(T, 64)
  int positions_per_cell = 1;  // about; the largest probability of each cell is kept
  // [A,H,B,B]; cells above the diagonal are 0.
  std::shared_ptr<const std::vector<float>> values;
  Grid all;     // the same values as one tall map [A·H·B, B] of causal tiles: what shares a range
  Grid scores;  // [A,H] Gu's sink score of key 0

  // The map of one (layer slot, head) as a causal grid [B,B].
  Grid map(int layer_slot, int head) const;
};

// Throws Error{not_found} when the capture has no thumbnails.
ThumbnailSnapshot read_thumbnails(const CaptureReader& reader, const ThumbnailRequest& request);

}  // namespace sinkscope
