// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/what_if/edit.h"

namespace sinkscope {

// What can be changed about an edit, as a form shows it: sliders, choices, switches and texts.
struct EditField {
  enum class Kind { number, choice, toggle, text };
  std::string key;    // as in the edit's JSON, where that has one
  std::string label;  // "limit", "sink logit b"
  Kind kind = Kind::text;
  double number = 0;
  double low = 0, high = 1;          // where a slider ends; a typed number may lie beyond
  bool is_log = false;               // of the slider; low > 0
  std::string text;                  // of choice and text
  std::vector<std::string> choices;  // of choice
  bool is_on = false;                // of toggle
};

// The fields that matter for the edit as it is: τ only while it clamps, and so on.
std::vector<EditField> edit_fields(const Edit& edit);

using EditValue = std::variant<double, bool, std::string>;

// The edit with one field changed. Throws Error{invalid_argument}: no such field, a value of
// another type, a text that means nothing, or what edit_from_json would not take.
Edit with_field(const Edit& edit, const std::string& key, const EditValue& value);

}  // namespace sinkscope
