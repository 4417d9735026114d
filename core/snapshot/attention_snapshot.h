// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "core/draw/grid.h"
#include "core/snapshot/run_facts.h"

namespace sinkscope {

enum class Combine { single, mean, max };  // over the chosen layers and heads
// sink_removed: the sink's column is taken away and each row divided by what is left of it.
enum class AttentionView { raw, sink_removed };
// pattern: the recorded maps. window: the exact first 64 × 64 cells. thumbnail: the whole map, the
// largest probability of each cell of min(T,64)².
enum class AttentionSource { automatic, pattern, window, thumbnail };

struct AttentionRequest {
  std::string run;
  std::vector<int> layers, heads;  // block indices, query heads; empty = all. single: one of each
  Combine combine = Combine::single;
  AttentionView view = AttentionView::raw;
  AttentionSource source = AttentionSource::automatic;
  int sink_key = 0;  // the key that sink_removed takes away
  bool operator==(const AttentionRequest&) const = default;
};

// One attention map as it is drawn: queries downwards, keys to the right.
struct AttentionSnapshot {
  AttentionRequest request;
  RunFacts facts;
  AttentionSource source = AttentionSource::pattern;  // which was used
  std::string source_text;  // in words: "recorded map", "first 64 of 512 tokens, exact", …
  std::string title;        // "blocks.15 (16th of 30), head 5"
  Grid map;                 // [rows, keys]; cells that the mask hides do not exist
  // First position behind each row and column; several positions a cell where cell_size > 1, the
  // largest of them shown.
  std::vector<int> queries, keys;
  int cell_size = 1;
  std::vector<std::string> query_labels, key_labels;  // token texts of those positions
  // Over the whole run, [T], averaged over the chosen (layer, head) whatever `combine`:
  std::vector<double> key_mass;  // Σ over queries of what each key receives
  std::vector<double> visible;   // queries that can see the key
  double sink_score = 0;         // Gu's score of sink_key: its mass / visible
};

// Maps with more than this many rows are max-pooled while they are read.
inline constexpr int kMaxMapSide = 4096;

// Reads only what is drawn: one head is one box of the file. automatic: the recorded maps where all
// that are asked for are there (and, combined, not more than 256 MiB), else the exact window when
// it holds the whole run, else the thumbnail for one head, else the window.
// Throws Error: not_found when the capture has no attention or not that layer, head or source;
// invalid_argument for a key that is not there, or a thumbnail with its sink removed (its cells are
// maxima, not probabilities), or "canceled" when it was asked to stop between two boxes.
AttentionSnapshot read_attention(const CaptureReader& reader, const AttentionRequest& request,
                                 const std::stop_token& stop = {});

}  // namespace sinkscope
