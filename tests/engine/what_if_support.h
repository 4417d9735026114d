// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "capture/checkpoint/model_files.h"
#include "capture/engine.h"
#include "tests/engine/reference_model.h"

namespace sinkscope::test {

// A prompt for every model here: ids below 32.
extern const std::vector<int> kEditedIds;

// A folder with a two-layer model of random weights, so that every edit moves something by a
// measurable amount.
std::string random_tiny_model();

Evaluation evaluate(const ModelFiles& model, const std::vector<std::vector<int>>& prompts,
                    const std::vector<std::string>& what_ifs);

using HooksOf = std::function<ReferenceHooks(const ModelFiles& model)>;

// The edited loss is the float64 reference's and, so that the test can fail, not the baseline's: on
// the random tiny model and on those oracles whose forward pass the reference knows.
void expect_edit(const std::string& what_if, const ReferenceHooks& hooks);
void expect_edit(const std::string& what_if, const HooksOf& hooks_of);

// The same for edits that need the model's sizes, for weights in a file.
struct EditCase {
  std::string what_if;
  ReferenceHooks hooks;
};
void expect_edits_of(const std::function<EditCase(const ModelFiles& model)>& edit_of);
// The same on one oracle alone.
void expect_edit_on(const std::string& oracle, const EditCase& edit);

}  // namespace sinkscope::test
