// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/what_if/edit_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "core/what_if/edit_list.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Edit edit(const char* text) { return parse_what_if(text).front(); }

std::vector<std::string> keys(const Edit& edit) {
  std::vector<std::string> all;
  for (const EditField& field : edit_fields(edit)) all.push_back(field.key);
  return all;
}

EditField field(const Edit& edit, const std::string& key) {
  for (const EditField& one : edit_fields(edit))
    if (one.key == key) return one;
  ADD_FAILURE() << "no field " << key;
  return {};
}

// Writing back what a field shows changes nothing: every field of every template.
TEST(EditForm, WhatAFieldShowsIsWhatItSets) {
  for (const EditTemplate& offered : edit_templates({3, 1, 507})) {
    for (const EditField& one : edit_fields(offered.edit)) {
      const EditValue value = one.kind == EditField::Kind::number   ? EditValue(one.number)
                              : one.kind == EditField::Kind::toggle ? EditValue(one.is_on)
                                                                    : EditValue(one.text);
      EXPECT_EQ(with_field(offered.edit, one.key, value), offered.edit)
          << offered.name << ", " << one.key;
    }
  }
}

TEST(EditForm, ShowsOnlyWhatMatters) {
  EXPECT_THAT(keys(edit(R"({"edit":"norm.probe","mode":"zero","dims":[7]})")),
              ElementsAre("mode", "dims", "tokens", "norms", "layers"));
  const Edit clamp = with_field(edit(R"({"edit":"norm.probe","mode":"zero","dims":[7]})"), "mode",
                                std::string("clamp"));
  EXPECT_EQ(field(clamp, "tau").number, 3) << "a clamp without a τ would be refused";
  const Edit clipped = with_field(edit(R"({"edit":"attention.normalizer","kind":"softmax1"})"),
                                  "kind", std::string("clipped"));
  EXPECT_THAT(keys(clipped), ElementsAre("kind", "gamma", "zeta", "layers", "heads"));
}

TEST(EditForm, APreAffineHasASliderForLambda) {
  Edit edit_of = edit(R"({"edit":"norm.replace","with":"gatednorm"})");
  EXPECT_THAT(keys(edit_of), ElementsAre("with", "weights", "start", "norms", "layers"));
  edit_of = with_field(edit_of, "with", std::string("preaffine"));
  EXPECT_THAT(keys(edit_of), ElementsAre("with", "weights", "lambda", "dims", "norms", "layers"));
  EXPECT_EQ(field(edit_of, "lambda").number, 1);
  edit_of = with_field(with_field(edit_of, "lambda", 7.19), "dims", std::string("507"));
  EXPECT_EQ(what_if_text({edit_of}),
            R"({"edit":"norm.replace","with":"preaffine","lambda":7.19,"dims":[507]})");
  EXPECT_THAT(edit_sentence(edit_of), HasSubstr("preaffine, λ₁ = 7.19, dimensions 507"));
  EXPECT_THAT(reach_text(edit_of, {{1, 2}, 3, 4, 576}), HasSubstr("dimensions 1 of 576 (507)"));
  // What a gate does not have is left behind.
  EXPECT_EQ(what_if_text({with_field(edit_of, "with", std::string("gatednorm"))}),
            R"({"edit":"norm.replace","with":"gatednorm"})");
}

TEST(EditForm, SetsNumbersTextsAndNames) {
  Edit clip = edit(R"({"edit":"residual.clip","limit":100})");
  clip = with_field(clip, "limit", 31.5);
  clip = with_field(clip, "layers", std::string("0-3,7"));
  clip = with_field(clip, "sites", std::string("hook_resid_mid, hook_resid_post"));
  clip = with_field(clip, "tokens", std::string("rest"));
  EXPECT_EQ(clip, edit(R"({"edit":"residual.clip","limit":31.5,"layers":"0-3,7","tokens":"rest",
               "sites":["hook_resid_mid","hook_resid_post"]})"));
  EXPECT_EQ(with_field(clip, "sites", std::string("all")),
            edit(R"({"edit":"residual.clip","limit":31.5,"layers":"0-3,7","tokens":"rest"})"));
}

TEST(EditForm, RefusesWhatMakesNoSense) {
  const Edit clip = edit(R"({"edit":"residual.clip","limit":100})");
  const auto message = [&](const char* key, const EditValue& value) -> std::string {
    try {
      with_field(clip, key, value);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(message("limit", 0.0), HasSubstr("limit above 0"));
  EXPECT_THAT(message("layers", std::string("7-3")), HasSubstr("layers"));
  EXPECT_THAT(message("heads", std::string("1")), HasSubstr("heads"));
  EXPECT_THAT(message("limit", std::string("many")), HasSubstr("limit"));
  EXPECT_THAT(message("limit", std::numeric_limits<double>::infinity()), HasSubstr("finite"));
}

TEST(EditList, SwitchedOffEditsStayInTheListAndAreNotRun) {
  const Edit clip = edit(R"({"edit":"residual.clip","limit":100})");
  const Edit mask = edit(R"({"edit":"attention.mask_key","keys":[0]})");
  const EditList edits = {{clip, false}, {mask, true}};
  EXPECT_EQ(switched_on(edits), WhatIf{mask});
}

TEST(EditList, SaysEachEditInWords) {
  EXPECT_EQ(edit_sentence(edit(R"({"edit":"residual.clip","limit":100,"layers":"0-3"})")),
            "clip the stream at ±100, layers 0-3");
  EXPECT_EQ(edit_sentence(
                edit(R"({"edit":"residual.set","value":"mean","dims":[507],"tokens":"first"})")),
            "set the stream to its mean, dimensions 507, tokens first");
  EXPECT_EQ(edit_sentence(
                edit(R"({"edit":"attention.normalizer","kind":"sink_logit","b":-2,"heads":[5]})")),
            "sink_logit b = -2 attention, heads 5");
}

TEST(EditList, FC57_CountsWhatAnEditTouches) {
  const EditSpace space{{9, 5, 7, 5}, 30, 3, 576};
  EXPECT_EQ(reach_text(edit(R"({"edit":"residual.set","value":0,"dims":[507],"tokens":"ids:5-7"})"),
                       space),
            "tokens 3 of 4 (1, 2, 3) · dimensions 1 of 576 (507) · layers 30 of 30");
  EXPECT_EQ(reach_text(edit(R"({"edit":"attention.mask_key","keys":[0,99],"heads":[2]})"), space),
            "keys 1 of 4 (0) · heads 1 of 3 (2) · layers 30 of 30");
  EXPECT_EQ(reach_text(edit(R"({"edit":"residual.clip","limit":1,"tokens":"ids:8","layers":[99]})"),
                       space),
            "tokens 0 of 4 · dimensions 576 of 576 · layers 0 of 30");
  // Blocks with linear attention are out of an attention edit's reach, and within others'.
  const EditSpace mixed{{9, 5}, 6, 3, 8, {2, 5}};
  EXPECT_EQ(reach_text(edit(R"({"edit":"attention.gate","value":0.5})"), mixed),
            "heads 3 of 3 · layers 2 of 6 (2, 5)");
  EXPECT_EQ(reach_text(edit(R"({"edit":"mlp.activation","kind":"relu"})"), mixed), "layers 6 of 6");
}

TEST(EditList, TemplatesAreAboutTheChosenPlace) {
  const auto templates = edit_templates({15, 5, 507});
  const auto named = [&](const std::string& name) {
    const auto found = std::find_if(templates.begin(), templates.end(),
                                    [&](const EditTemplate& one) { return one.name == name; });
    return found == templates.end() ? Edit() : found->edit;
  };
  EXPECT_EQ(named("Attention: softmax1"),
            edit(R"({"edit":"attention.normalizer","kind":"softmax1","layers":[15],"heads":[5]})"));
  EXPECT_EQ(named("Scale the stream in a dimension"),
            edit(R"({"edit":"residual.set","scale":0.5,"dims":[507]})"));
}

TEST(EditHistory, UndoAndRedoMoveThroughStates) {
  const SwitchedEdit clip{edit(R"({"edit":"residual.clip","limit":100})"), true};
  EditHistory history;
  history.apply({clip});
  EditList off = {clip};
  off.front().is_on = false;
  history.apply(off);
  history.undo();
  EXPECT_EQ(history.current(), EditList{clip});
  EXPECT_TRUE(history.can_redo());
  history.apply({});
  EXPECT_FALSE(history.can_redo()) << "a change drops what was undone";
  history.undo();
  history.undo();
  history.undo();
  EXPECT_TRUE(history.current().empty());
}

}  // namespace
}  // namespace sinkscope
