// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/capture_reader.h"
#include "core/norm_gains.h"
#include "core/snapshot/cell_ref.h"
#include "core/snapshot/overview_snapshot.h"

namespace sinkscope {

// A number that a pin keeps an eye on: which quantity, of which cell. It has a value in every run
// that has such a cell.
struct PinnedCell {
  enum class Quantity {
    shown,          // as it was read; a combined map's cell, say: it has no value elsewhere
    attention,      // probability at (layer, head, query, key)
    score,          // of key 0, at (layer, head)
    residual,       // x at (site, token, dim)
    residual_mean,  // mean |x| over the block states at (token, dim)
    gain,           // |effective gain| at (role, layer, dim); layer −1 = after the last block
  };
  Quantity quantity = Quantity::shown;
  CellRef cell;
  std::string name = {};  // of a site or a role
  ScoreKind score = ScoreKind::gu;
  bool operator==(const PinnedCell&) const = default;
};

// nullopt where the run has no such layer, head, position, dimension, site or role, or did not
// record it.
std::optional<double> read_pinned(const CaptureReader& reader, const std::string& run,
                                  const PinnedCell& pin);

// Of a model that was not run, whose gains are in memory: nullopt for anything else.
std::optional<double> pinned_gain(const std::vector<NormFacts>& norms, const PinnedCell& pin);

}  // namespace sinkscope
