// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/snapshot/compare_snapshot.h"
#include "core/what_if/head_preview.h"
#include "core/what_if/norm_preview.h"

namespace sinkscope {

// The one norm or head that a preview is of.
struct PreviewPlace {
  std::string run;
  std::string role;  // "ln1", "ln2", "ln_final"; "" = a head
  int layer = 0, head = 0;
  bool operator==(const PreviewPlace&) const = default;
};

// Which place an edit is best seen at: the selected head for what changes attention, else the norm
// behind what it changes in the selected layer.
PreviewPlace preview_place(const Edit& edit, const std::string& run, int layer, int head);

// What a preview is made from, read once for a place and kept while a slider moves.
struct PreviewInput {
  PreviewPlace place;
  RunFacts facts;
  std::variant<NormInput, HeadInput> input;
  MatrixF before;
};
// Throws what read_norm_input and read_head_input throw.
PreviewInput read_preview_input(const CaptureReader& reader, const PreviewPlace& place);

// A preview as it is drawn. The maps are at most 128 × 256 cells; a cell of several values shows
// the one of largest magnitude, also of the difference.
struct PreviewSnapshot {
  PreviewPlace place;
  std::string title;        // "blocks.15 (16th of 30), head 5: attention"
  bool is_touched = false;  // by any of the edits
  CompareSnapshot maps;
  std::string line_title;  // "output rms of each token"
  std::vector<double> line_before, line_after;
  std::string text;  // what changed, in one line
};
// Throws Error{unsupported} for edits that need a rerun.
PreviewSnapshot preview(const PreviewInput& input, const WhatIf& what_if);

}  // namespace sinkscope
