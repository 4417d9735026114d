// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sinkscope {

// What a cell of a picture is about: block, query head, positions, dimension; −1 = does not apply.
struct CellRef {
  int layer = -1, head = -1;
  int query = -1, key = -1;  // of attention
  int token = -1, dim = -1;  // of the residual stream and of norms (dim)
  bool operator==(const CellRef&) const = default;
};

// The fields that `change` names, put over `cell`.
CellRef merged(CellRef cell, const CellRef& change);

// "L15H5 q24 k0", "L11 t0 d507", "" for nothing.
std::string short_name(const CellRef& cell);

// What there is to go to.
struct FindSpace {
  int n_layers = 0, n_heads = 0, n_dims = 0;
  std::vector<std::string> token_labels;  // [T]
};

// Where a typed text leads: "L12H3", "L12" or "H3" (0-based) to a layer and head; a whole number to
// a dimension; anything else to the next token after `current` whose label holds it, upper and
// lower case alike for ASCII, from the start again after the last. nullopt = nothing is found.
std::optional<CellRef> find_place(const std::string& text, const FindSpace& space,
                                  const CellRef& current);

}  // namespace sinkscope
