// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/what_if/what_if.h"

namespace sinkscope {

// Edits as a person keeps them: in order, each of which may be switched off and stays in the list.
struct SwitchedEdit {
  Edit edit;
  bool is_on = true;
  bool operator==(const SwitchedEdit&) const = default;
};
using EditList = std::vector<SwitchedEdit>;
using EditHistory = History<EditList>;

// The edits that are switched on: what is run.
WhatIf switched_on(const EditList& edits);

// One line in words: "clip the stream at ±100", "softmax1 in layers 15, heads 5".
std::string edit_sentence(const Edit& edit);

// How much of a run there is to edit.
struct EditSpace {
  std::vector<int> token_ids;  // [T]
  int n_layers = 0, n_heads = 0, d_model = 0;
  std::vector<int> attention_layers = {};  // blocks with softmax attention; empty = all
};
// What an edit touches of it, and what it names that is not there: "tokens 0 of 64 · dimensions 1
// of 576 · layers 30 of 30". Only what the edit has; positions up to ten are listed.
std::string reach_text(const Edit& edit, const EditSpace& space);

// What an edit is made for before it is changed: attention edits for one head, edits of a dimension
// for one dimension.
struct EditPlace {
  int layer = 0, head = 0, dim = 0;
};

// One edit of every kind to begin with, and what it is called in a menu.
struct EditTemplate {
  std::string name;
  Edit edit;
};
std::vector<EditTemplate> edit_templates(const EditPlace& place);

}  // namespace sinkscope
