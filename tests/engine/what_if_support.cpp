// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/engine/what_if_support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>

#include "tests/engine/captured.h"
#include "tests/support/shared_files.h"
#include "tests/support/tiny_folder.h"

namespace sinkscope::test {

const std::vector<int> kEditedIds = {3, 17, 5, 30, 5, 9, 21, 2, 11};

std::string random_tiny_model() {
  static const std::string folder = [] {
    TinyFolder tiny = tiny_folder();
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (auto& [name, tensor] : tiny.tensors)
      for (float& value : tensor.values)
        value = name.find("norm") != std::string::npos ? 1 + .3f * normal(random)
                                                       : .5f * normal(random);
    return tiny.write(scratch_folder());
  }();
  return folder;
}

Evaluation evaluate(const ModelFiles& model, const std::vector<std::vector<int>>& prompts,
                    const std::vector<std::string>& what_ifs) {
  EvaluateRequest request;
  request.device = "cpu";
  request.threads = test_threads();
  for (const auto& ids : prompts) {
    RunInput run;
    run.token_ids = ids;
    request.runs.push_back(run);
  }
  for (const std::string& text : what_ifs) request.variants.push_back(parse_what_if(text));
  Progress progress;
  return *engine().evaluate(model, request, {std::stop_token(), progress});
}

namespace {

void expect_edit_of(const std::string& folder,
                    const std::function<EditCase(const ModelFiles&)>& edit_of) {
  const auto model = open_model(folder);
  const EditCase edit = edit_of(*model);
  SCOPED_TRACE(edit.what_if + " on " + folder);
  const Evaluation got = evaluate(*model, {kEditedIds}, {edit.what_if});
  const Row want = reference_loss(*model, kEditedIds, edit.hooks);
  const Row baseline = reference_loss(*model, kEditedIds);
  double moved = 0;
  for (std::size_t t = 0; t < want.size(); ++t) {
    EXPECT_NEAR(got.loss[0][0][t], baseline[t], 1e-5);
    EXPECT_NEAR(got.loss[1][0][t], want[t], 1e-5 * std::max(1.0, want[t])) << t;
    moved = std::max(moved, std::abs(want[t] - baseline[t]));
  }
  EXPECT_GT(moved, 1e-4) << "the edit changes nothing here";
}

}  // namespace

namespace {

void expect_edit_on(const std::string& oracle,
                    const std::function<EditCase(const ModelFiles&)>& edit_of) {
  const std::string folder = shared_path("oracles/" + oracle);
  if (!folder.empty())
    expect_edit_of(folder, edit_of);
  else if (const char* ci = std::getenv("CI"); ci != nullptr && std::string(ci) == "true")
    ADD_FAILURE() << "shared file missing: oracles/" << oracle << " (set SINKSCOPE_SHARED)";
}

}  // namespace

void expect_edits_of(const std::function<EditCase(const ModelFiles&)>& edit_of) {
  expect_edit_of(random_tiny_model(), edit_of);
  // A tied head and one kv head; biases; norms of q and k; a window shorter than the prompt; norms
  // behind the halves and caps.
  for (const char* oracle : {"llama_tied", "qwen2", "qwen3", "mistral", "gemma2"})
    expect_edit_on(oracle, edit_of);
}

void expect_edit_on(const std::string& oracle, const EditCase& edit) {
  expect_edit_on(oracle, [&](const ModelFiles&) { return edit; });
}

void expect_edit(const std::string& what_if, const HooksOf& hooks_of) {
  expect_edits_of([&](const ModelFiles& model) { return EditCase{what_if, hooks_of(model)}; });
}

void expect_edit(const std::string& what_if, const ReferenceHooks& hooks) {
  expect_edits_of([&](const ModelFiles&) { return EditCase{what_if, hooks}; });
}

}  // namespace sinkscope::test
