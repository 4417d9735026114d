// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

namespace sinkscope {

struct FigureKind {
  const char* name;   // "attention-mean"
  const char* shows;  // one line
  const char* needs;  // "capture (statistics are enough)"
};

// All kinds that can be drawn, in the order of --list.
const std::vector<FigureKind>& figure_kinds();
// Throws Error{invalid_argument} listing the names.
const FigureKind& figure_kind(const std::string& name);

// The layout of a published figure, for any model.
struct FigurePreset {
  const char* name;   // "2601.22966/fig1"
  const char* shows;  // one line
  const char* needs;
};
const std::vector<FigurePreset>& figure_presets();

// Throws Error{invalid_argument} for a name that is not one, and Error{unsupported} for a figure of
// the paper whose data a capture does not hold, saying which data that would be.
const FigurePreset& figure_preset(const std::string& name);

}  // namespace sinkscope
