// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/what_if/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The examples that users are shown, each read and written back to the same value.
TEST(WhatIf, ExamplesGoThroughJsonUnchanged) {
  for (
      const char* text : {
          R"({"edit":"residual.clip","limit":100,"sites":["hook_resid_post"]})",
          R"({"edit":"residual.set","value":0,"dims":[507],"tokens":"first","sites":["hook_resid_post"]})",
          R"({"edit":"residual.set","value":"mean","dims":[507]})",
          R"({"edit":"residual.set","scale":0.5,"dims":"3-5"})",
          R"({"edit":"norm.probe","mode":"zero","dims":[507],"tokens":"rest"})",
          R"({"edit":"norm.probe","mode":"clamp","tau":2.5,"dims":[1,2],"tokens":"ids:5-127","norms":["ln1"]})",
          R"({"edit":"norm.replace","with":"gatednorm","start":"paper","rank":8,"norms":["ln1"]})",
          R"({"edit":"norm.replace","with":"preaffine","weights":"F.safetensors"})",
          R"({"edit":"norm.replace","with":"preaffine","lambda":7.25,"dims":[4],"norms":["ln2"]})",
          R"({"edit":"norm.replace","with":"rmsnorm"})",
          R"({"edit":"attention.normalizer","kind":"softmax1","layers":"0-5","heads":[1,3]})",
          R"({"edit":"attention.normalizer","kind":"sink_logit","b":[0.5,-1],"heads":[0,2]})",
          R"({"edit":"attention.normalizer","kind":"sink_logit","b":"checkpoint"})",
          R"({"edit":"attention.normalizer","kind":"clipped","gamma":-0.03,"zeta":1.1})",
          R"({"edit":"attention.mask_key","keys":[0],"renormalize":false})",
          R"({"edit":"attention.value","tokens":[0],"scale":0})",
          R"({"edit":"attention.gate","value":0.5,"heads":[2]})",
          R"({"edit":"mlp.activation","kind":"relu","layers":[3]})",
      }) {
    const WhatIf read = parse_what_if(text);
    ASSERT_EQ(read.size(), 1u) << text;
    EXPECT_EQ(parse_what_if(what_if_text(read)), read) << text;
    EXPECT_EQ(nlohmann::json::parse(what_if_text(read))["edit"],
              nlohmann::json::parse(text)["edit"]);
  }
}

TEST(WhatIf, FieldsArrive) {
  const WhatIf what_if = parse_what_if(
      R"([{"edit":"residual.set","scale":0.5,"dims":"3-5,9","tokens":[0,4],"layers":[1]},
          {"edit":"attention.normalizer","kind":"sink_logit","b":-2.5}])");
  ASSERT_EQ(what_if.size(), 2u);
  const auto& set = std::get<ResidualSet>(what_if[0]);
  EXPECT_EQ(set.how, ResidualSet::How::scale);
  EXPECT_EQ(set.number, 0.5);
  EXPECT_THAT(set.dims.members(), ElementsAre(3, 4, 5, 9));
  EXPECT_THAT(set.layers.members(), ElementsAre(1));
  EXPECT_THAT(set.tokens.of({7, 7, 7, 7, 7, 7}), ElementsAre(0, 4));
  EXPECT_TRUE(set.sites.empty());
  const auto& sink = std::get<AttentionNormalizer>(what_if[1]);
  EXPECT_EQ(sink.normalizer.kind, NormalizerKind::sink_logit);
  EXPECT_EQ(sink.normalizer.sink_logit, -2.5);
  EXPECT_TRUE(sink.heads.is_all());
}

TEST(WhatIf, RefusesWhatItDoesNotUnderstand) {
  const auto message = [](const char* text) {
    try {
      parse_what_if(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
      return std::string(error.what());
    }
    ADD_FAILURE() << "accepted " << text;
    return std::string();
  };
  EXPECT_THAT(message("{"), HasSubstr("expected JSON"));
  EXPECT_THAT(message("[3]"), HasSubstr("expected an object"));
  EXPECT_THAT(message(R"({"edit":"residual.clamp","limit":1})"), HasSubstr("residual.clamp"));
  EXPECT_THAT(message(R"({"edit":"residual.clip"})"), HasSubstr("\"limit\", which is missing"));
  EXPECT_THAT(message(R"({"edit":"residual.clip","limit":-1})"), HasSubstr("found -1"));
  EXPECT_THAT(message(R"({"edit":"residual.clip","limit":"x"})"), HasSubstr("expected a number"));
  EXPECT_THAT(message(R"({"edit":"residual.clip","limit":1,"layer":3})"),
              HasSubstr("unknown key \"layer\"; it takes edit layers limit sites tokens"));
  EXPECT_THAT(message(R"({"edit":"attention.normalizer","kind":"sink_logit","b":[5,-5],
                          "heads":[3,1]})"),
              HasSubstr("ascending heads"));
  EXPECT_THAT(
      message(R"({"edit":"norm.replace","with":"gatednorm","weights":"f","start":"paper"})"),
      HasSubstr("unknown key \"start\""));
  EXPECT_THAT(message(R"({"edit":"residual.set","value":1,"scale":1})"), HasSubstr("either"));
  EXPECT_THAT(message(R"({"edit":"residual.set","value":1,"dims":[-1]})"), HasSubstr("from 0 on"));
  EXPECT_THAT(message(R"({"edit":"residual.set","value":1,"layers":"5-3"})"), HasSubstr("'5-3'"));
  EXPECT_THAT(message(R"({"edit":"residual.set","value":1,"tokens":"last"})"), HasSubstr("tokens"));
  EXPECT_THAT(message(R"({"edit":"norm.probe","mode":"zero"})"), HasSubstr("dims"));
  EXPECT_THAT(message(R"({"edit":"norm.probe","mode":"clamp","dims":[1]})"), HasSubstr("tau"));
  EXPECT_THAT(message(R"({"edit":"norm.probe","mode":"null","dims":[1]})"),
              HasSubstr("denominator"));
  EXPECT_THAT(message(R"({"edit":"attention.normalizer","kind":"clipped","gamma":1})"),
              HasSubstr("gamma <= 0"));
  EXPECT_THAT(message(R"({"edit":"attention.normalizer","kind":"sink_logit"})"),
              HasSubstr("\"b\""));
  EXPECT_THAT(
      message(R"({"edit":"attention.normalizer","kind":"sink_logit","b":[1],"heads":[0,1]})"),
      HasSubstr("2 heads"));
  EXPECT_THAT(message(R"({"edit":"attention.mask_key","keys":"all"})"), HasSubstr("all of them"));
  EXPECT_THAT(message(std::string(100000, '[').c_str()), HasSubstr("nested more than"));
  EXPECT_THAT(message(R"({"edit":"residual.clip","limit":1,"layers":4294967296})"),
              HasSubstr("layers"));
  EXPECT_THAT(message(R"({"edit":"residual.clip","limit":1,"layers":"0-1048576,0-1048576"})"),
              HasSubstr("layers"));
}

TEST(IndexSet, TextAndBounds) {
  EXPECT_EQ(IndexSet().text(), "all");
  EXPECT_EQ(IndexSet({7, 1, 2, 3, 7}).text(), "1-3,7");
  EXPECT_EQ(IndexSet::parse("layers", "1-3,7"), IndexSet({1, 2, 3, 7}));
  EXPECT_THAT(IndexSet().within(3, "layers"), ElementsAre(0, 1, 2));
  EXPECT_THROW(IndexSet({1, 3}).within(3, "layers"), Error);
  EXPECT_TRUE(IndexSet({1, 3}).contains(3));
  EXPECT_FALSE(IndexSet({1, 3}).contains(2));
  // Found by fuzzing: ranges of millions took seconds.
  EXPECT_EQ(IndexSet::parse("dims", "1048570-1048576,0").text(), "0,1048570-1048576");
  EXPECT_THROW(IndexSet::parse("dims", "0-4000300,00300,00"), Error);
}

TEST(TokenSet, ByPositionAndById) {
  const std::vector<int> ids = {0, 9, 5, 127, 128};
  EXPECT_THAT(TokenSet::parse("ids:5-127").of(ids), ElementsAre(1, 2, 3));
  EXPECT_THAT(TokenSet::parse("rest").of(ids), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(TokenSet::parse("0,3-4").of(ids), ElementsAre(0, 3, 4));
}

TEST(WhatIfHistory, UndoAndRedoMoveThroughStates) {
  const WhatIf clip = parse_what_if(R"({"edit":"residual.clip","limit":9})");
  const WhatIf mask = parse_what_if(R"({"edit":"attention.mask_key","keys":[0]})");
  WhatIfHistory history;
  EXPECT_FALSE(history.can_undo());
  history.apply(clip);
  history.apply(clip);  // nothing new
  history.apply(mask);
  history.undo();
  EXPECT_EQ(history.current(), clip);
  history.undo();
  EXPECT_TRUE(history.current().empty());
  history.undo();
  EXPECT_TRUE(history.can_redo());
  history.redo();
  EXPECT_EQ(history.current(), clip);
  history.apply({});
  EXPECT_FALSE(history.can_redo());
  history.undo();
  EXPECT_EQ(history.current(), clip);
}

}  // namespace
}  // namespace sinkscope
