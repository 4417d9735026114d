// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/what_if/edit.h"

namespace sinkscope {

// A list of edits, applied in order. Empty = the model as it is.
using WhatIf = std::vector<Edit>;

// As --edit takes it: one object, or a list of them. Text is compact and stable.
std::string what_if_text(const WhatIf& what_if);
// Throws Error{invalid_argument} for text that is no JSON or no edit.
WhatIf parse_what_if(const std::string& text);

// Undo and redo without command objects: every state is a value.
template <class State>
class History {
 public:
  const State& current() const { return states_[at_]; }
  // Drops what was undone; a state equal to the current one adds nothing.
  void apply(State next) {
    if (next == current()) return;
    states_.resize(at_ + 1);
    states_.push_back(std::move(next));
    ++at_;
  }
  bool can_undo() const { return at_ > 0; }
  bool can_redo() const { return at_ + 1 < states_.size(); }
  void undo() { at_ -= can_undo() ? 1 : 0; }
  void redo() { at_ += can_redo() ? 1 : 0; }

 private:
  std::vector<State> states_{State{}};
  std::size_t at_ = 0;
};
using WhatIfHistory = History<WhatIf>;

}  // namespace sinkscope
