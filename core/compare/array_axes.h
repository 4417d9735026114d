// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "core/capture_reader.h"

namespace sinkscope {

// A run of a capture that takes part in a comparison. Not an owner.
struct ComparedRun {
  const CaptureReader* reader = nullptr;
  std::string run;
};

// One axis of an array that both runs have, index by index as far as both go: a[i] and b[i] are
// places of the same thing, whose name is value[i] (block, head, position, dimension; the place
// itself where nothing else says what it is).
struct CommonAxis {
  std::string name;  // "layer", "site", "head", "query", "token", "dim", …
  std::vector<int> a, b, value;
  std::vector<std::string> texts;  // of sites: their names
  bool is_layer = false;           // differences are kept apart along it
  bool is_whole = true;            // neither side has more
  std::size_t size() const { return value.size(); }
};

// `layers_end` of whole recordings.
inline constexpr int kAllLayers = std::numeric_limits<int>::max();

// The axes of the dataset `path` (below the run's group) by its shape in core/FORMAT.md: blocks,
// sites, recorded heads and rows are matched by what they are, everything else by index. Blocks
// from `layers_end` on are left out. Throws Error{corrupt} where a list beside the array is too
// short for it.
std::vector<CommonAxis> common_axes(const ComparedRun& a, const ComparedRun& b,
                                    const std::string& path, int layers_end);

}  // namespace sinkscope
