// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/element_type.h"

namespace sinkscope {

// core/FORMAT.md as tables: the one place from which the layout derives what to create and the
// reader what to expect. Paths are relative to a run's group; "*" stands for one name.

struct DatasetRule {
  std::string_view path;  // "stats/*/token/rms"
  ElementType type;
  std::string_view shape;  // symbols of FORMAT.md, "A,H,T"; "" = scalar; a final "…" = any more;
                           // "N_r?" is left out where N_r is 1
  std::string_view title, units;  // @long_name, @units; may be empty
};
std::span<const DatasetRule> dataset_rules();

// The rule that a path falls under, or null.
const DatasetRule* find_rule(std::string_view path);

// What a viewer plots first in a group (NXdata).
struct PlotRule {
  std::string_view group;  // "stats/*/dim_rest"
  std::string_view signal;
  std::string_view axes;       // "layers,.,." : one a dimension of the signal, "." = index
  std::string_view auxiliary;  // a second signal of the same shape, or ""
  bool is_log;
};
// In order of preference: the first whose signal is there holds.
std::span<const PlotRule> plot_rules();

// Whether `path` matches `pattern`, in which "*" stands for one name.
bool matches_pattern(std::string_view pattern, std::string_view path);

// Splits at `separator`; "" has no parts.
std::vector<std::string_view> split(std::string_view text, char separator);

// Whether a part of a shape is left out where its size is 1.
inline bool is_optional(std::string_view part) { return part.ends_with('?'); }

// Values of shape symbols: "T" → 512.
using Symbols = std::map<std::string, std::int64_t, std::less<>>;

}  // namespace sinkscope
