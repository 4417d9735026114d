// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "capture/tokenizer/tokenizer.h"
#include "core/error.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A byte-level BPE of a few pieces. Ids: Ġ 0, a 1, b 2, Ġa 3, ab 4, Ġab 5; <bos> 6, <eos> 7.
Json tiny() {
  return Json::parse(R"({
    "added_tokens": [
      {"id": 6, "content": "<bos>", "single_word": false, "lstrip": false, "rstrip": false,
       "normalized": false, "special": true},
      {"id": 7, "content": "<eos>", "single_word": false, "lstrip": false, "rstrip": false,
       "normalized": false, "special": true}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
    "post_processor": null,
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "byte_fallback": false,
      "continuing_subword_prefix": "", "end_of_word_suffix": null,
      "vocab": {"Ġ": 0, "a": 1, "b": 2, "Ġa": 3, "ab": 4, "Ġab": 5},
      "merges": ["Ġ a", "a b", "Ġa b"]}})");
}

Json template_of(const char* single) {
  Json processor = Json::parse(R"({"type": "TemplateProcessing", "pair": [], "special_tokens": {
      "<bos>": {"id": "<bos>", "ids": [6], "tokens": ["<bos>"]},
      "<eos>": {"id": "<eos>", "ids": [7], "tokens": ["<eos>"]}}})");
  processor["single"] = Json::parse(single);
  return processor;
}

constexpr const char* kBosText =
    R"([{"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}])";
constexpr const char* kTextEos =
    R"([{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<eos>", "type_id": 0}}])";

std::unique_ptr<Tokenizer> open(const Json& json, const Json& config = nullptr) {
  const std::string folder = test::scratch_folder();
  std::ofstream(folder + "/tokenizer.json") << json.dump();
  if (!config.is_null()) std::ofstream(folder + "/tokenizer_config.json") << config.dump();
  return open_json_tokenizer(folder + "/tokenizer.json");
}

std::string refusal(const Json& json, ErrorKind kind) {
  try {
    open(json);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

TEST(JsonTokenizer, ReadsBothSpellingsOfMerges) {
  Json json = tiny();
  EXPECT_THAT(open(json)->encode("ab ab").ids, ElementsAre(4, 5));
  json["model"]["merges"] = Json::parse(R"([["Ġ", "a"], ["a", "b"], ["Ġa", "b"]])");
  EXPECT_THAT(open(json)->encode("ab a").ids, ElementsAre(4, 3));
  json["model"]["merges"] = Json::parse(R"(["Ġ a x"])");
  EXPECT_THAT(refusal(json, ErrorKind::corrupt), HasSubstr("merge 0"));
}

// Expected ids of the package tokenizers.
TEST(JsonTokenizer, UnigramTakesTheBytesThatItHas) {
  Json json = tiny();
  json["pre_tokenizer"] = nullptr;
  json["model"] = Json::parse(R"({"type": "Unigram", "unk_id": 0, "byte_fallback": true,
      "vocab": [["<unk>", 0.0], ["<0x61>", 0.0]]})");
  EXPECT_THAT(open(json)->encode("a").ids, ElementsAre(1));
  EXPECT_THAT(open(json)->encode("c").ids, ElementsAre(0));
  EXPECT_THAT(open(json)->encode("ac").ids, ElementsAre(0));
}

TEST(JsonTokenizer, KnowsItsTokens) {
  const auto tokenizer = open(tiny());
  EXPECT_EQ(tokenizer->vocab_size(), 8);
  EXPECT_EQ(tokenizer->bos_id(), -1);
  EXPECT_EQ(tokenizer->raw_piece(5), "Ġab");
  EXPECT_EQ(tokenizer->bytes(5), " ab");
  EXPECT_EQ(tokenizer->raw_piece(6), "<bos>");
  EXPECT_EQ(tokenizer->raw_piece(8), "");
  EXPECT_TRUE(tokenizer->is_special(7));
  EXPECT_FALSE(tokenizer->is_special(5));
  EXPECT_EQ(tokenizer->name(), "tokenizer.json:bpe/gpt-2");
  EXPECT_THAT(tokenizer->labels({6, 5}), ElementsAre("<bos>", "·ab"));
}

TEST(JsonTokenizer, ATemplatePutsBosAndEos) {
  Json json = tiny();
  json["post_processor"] = template_of(kBosText);
  const auto with_bos = open(json);
  EXPECT_EQ(with_bos->bos_id(), 6);
  EXPECT_THAT(with_bos->encode("ab").ids, ElementsAre(6, 4));
  EXPECT_THAT(with_bos->encode("ab", BosRule::never).ids, ElementsAre(4));
  EXPECT_THAT(with_bos->encode("ab", BosRule::always).ids, ElementsAre(6, 4));
  EXPECT_THAT(with_bos->encode("").ids, ElementsAre(6));

  json["post_processor"] = {{"type", "Sequence"},
                            {"processors", {{{"type", "ByteLevel"}}, template_of(kTextEos)}}};
  EXPECT_THAT(open(json)->encode("ab").ids, ElementsAre(4, 7));
}

TEST(JsonTokenizer, TheConfigCountsWhereThereIsNoTemplate) {
  const Json config = {{"bos_token", {{"content", "<bos>"}}},
                       {"eos_token", "<eos>"},
                       {"add_bos_token", true},
                       {"add_eos_token", true}};
  EXPECT_THAT(open(tiny(), config)->encode("ab").ids, ElementsAre(6, 4, 7));
  const auto silent = open(tiny(), {{"bos_token", "<bos>"}, {"eos_token", nullptr}});
  EXPECT_THAT(silent->encode("ab").ids, ElementsAre(4));
  EXPECT_THAT(silent->encode("ab", BosRule::always).ids, ElementsAre(6, 4));
}

TEST(JsonTokenizer, AConfigAgainstTheTemplateIsSaid) {
  Json json = tiny();
  json["post_processor"] = template_of(kBosText);
  const Encoding encoding =
      open(json, {{"bos_token", "<bos>"}, {"add_bos_token", false}})->encode("ab");
  EXPECT_THAT(encoding.ids, ElementsAre(6, 4));
  EXPECT_THAT(encoding.warnings, ElementsAre(HasSubstr("add_bos_token false")));
  EXPECT_THAT(open(json, {{"bos_token", "<bos>"}, {"add_bos_token", true}})->encode("ab").warnings,
              IsEmpty());
}

TEST(JsonTokenizer, ComponentsNotUnderstoodAreNamed) {
  const auto with = [](const char* where, const char* component) {
    Json json = tiny();
    json[where] = Json::parse(component);
    return refusal(json, ErrorKind::unsupported);
  };
  EXPECT_THAT(with("normalizer", R"({"type": "ByteLevel"})"), HasSubstr("normalizer ByteLevel"));
  EXPECT_THAT(with("normalizer",
                   R"({"type": "Sequence", "normalizers": [{"type": "NFC"},
                       {"type": "Polish"}]})"),
              HasSubstr("normalizer Polish is not supported"));
  EXPECT_THAT(with("pre_tokenizer", R"({"type": "UnicodeScripts"})"),
              HasSubstr("pre-tokenizer UnicodeScripts"));
  EXPECT_THAT(with("pre_tokenizer", R"({"type": "Split", "pattern": {"Regex": "\\bx"},
                                        "behavior": "Isolated", "invert": false})"),
              HasSubstr("\\b"));
  EXPECT_THAT(with("post_processor", R"({"type": "Thing"})"), HasSubstr("post-processor Thing"));
  EXPECT_THAT(with("model", R"({"type": "Char", "vocab": {}})"), HasSubstr("model Char"));
  EXPECT_THAT(with("model", R"({"type": "BPE", "vocab": {}, "merges": [],
                                "end_of_word_suffix": "</w>"})"),
              HasSubstr("end_of_word_suffix"));
}

TEST(JsonTokenizer, DamagedFilesAreCorrupt) {
  Json json = tiny();
  json["model"].erase("vocab");
  EXPECT_THAT(refusal(json, ErrorKind::corrupt), HasSubstr("vocab"));
  json = tiny();
  json["model"]["vocab"]["x"] = 5;
  EXPECT_THAT(refusal(json, ErrorKind::corrupt), HasSubstr("share the id 5"));
  json["model"]["vocab"]["x"] = 2000000000;
  EXPECT_THAT(refusal(json, ErrorKind::corrupt), HasSubstr("2000000000"));
  json = tiny();
  for (const Json& id : {Json("six"), Json(6.0), Json(3.3e40), Json(4294967302), Json(nullptr)}) {
    json["added_tokens"][0]["id"] = id;
    EXPECT_THAT(refusal(json, ErrorKind::corrupt), HasSubstr("id of an added token")) << id;
  }

  const std::string folder = test::scratch_folder();
  std::ofstream(folder + "/tokenizer.json") << R"({"model": )";
  EXPECT_THROW(open_json_tokenizer(folder + "/tokenizer.json"), Error);
  EXPECT_THROW(open_json_tokenizer(folder + "/absent.json"), Error);
}

TEST(JsonTokenizer, OtherShapesAreNamedInOurWords) {
  const auto said = [](const Json& json) { return refusal(json, ErrorKind::corrupt); };
  EXPECT_THAT(said(Json::array()), HasSubstr("tokenizer.json: expected an object, found array"));
  EXPECT_THAT(said(Json::object()), HasSubstr("model: expected an object, found none"));
  EXPECT_THAT(said({{"model", 3}}), HasSubstr("model: expected an object, found number"));
  Json json = tiny();
  for (const Json& merge : {Json("Ġa"), Json::array({"a"}), Json::array({"a", 7}), Json(7)}) {
    json["model"]["merges"][1] = merge;
    EXPECT_THAT(said(json), HasSubstr("merge 1: expected two pieces, found " + merge.dump()));
  }
}

// "a" becomes 10^12 bytes by four steps of a thousand each.
TEST(JsonTokenizer, StepsThatMultiplyTheTextAreRefusedByFileAndStep) {
  Json json = tiny();
  const Json step = {
      {"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(1000, 'a')}};
  json["normalizer"] = {{"type", "Sequence"}, {"normalizers", {step, step, step, step}}};
  const std::string path = test::scratch_folder() + "/tokenizer.json";
  const auto said = [&](const std::string& text) -> std::string {
    std::ofstream(path) << json.dump();
    try {
      const auto tokenizer = open_json_tokenizer(path);
      tokenizer->set_file(path);
      tokenizer->encode(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(said("b a b"), HasSubstr("normalizer: step 3 of 4: expected at most"));
  json["normalizer"] = {{"type", "Sequence"}, {"normalizers", {step}}};
  EXPECT_EQ(said("b a b"), "");
  EXPECT_THAT(said(std::string(100'000, 'a')),
              ::testing::AllOf(HasSubstr(path), HasSubstr("step 1 of 1")));
}

TEST(JsonTokenizer, AnUnkTokenOutsideTheVocabularyIsNone) {
  Json json = tiny();
  json["model"]["unk_token"] = "<unk>";
  const Encoding encoding = open(json)->encode("xab");
  EXPECT_THAT(encoding.ids, ElementsAre(4));
  EXPECT_THAT(encoding.warnings, ElementsAre(HasSubstr("1 bytes")));
}

// Expected ids of the package tokenizers.
TEST(JsonTokenizer, OfEqualUnigramPiecesTheLastCounts) {
  Json json = tiny();
  json["pre_tokenizer"] = nullptr;
  json["model"] = Json::parse(R"({"type": "Unigram", "unk_id": 0, "byte_fallback": false,
      "vocab": [["<unk>", 0.0], ["a", -1.0], ["ab", -5.0], ["b", -1.0], ["ab", -1.5]]})");
  EXPECT_THAT(open(json)->encode("ab").ids, ElementsAre(4));
  json["model"]["vocab"][2][1] = -1.5;
  json["model"]["vocab"][4][1] = -5.0;
  EXPECT_THAT(open(json)->encode("ab").ids, ElementsAre(1, 3));
}

TEST(JsonTokenizer, AnAddedTokenThatContradictsTheVocabularyHasTheVocabularysId) {
  Json json = tiny();
  json["added_tokens"][0]["content"] = "ab";
  const Encoding encoding = open(json)->encode("xab");
  EXPECT_THAT(encoding.ids, ElementsAre(4));  // x has no token
  EXPECT_THAT(encoding.warnings,
              ElementsAre(HasSubstr("added token 'ab' has id 6"), HasSubstr("1 bytes")));
}

TEST(JsonTokenizer, ManyAddedTokensTakeLinearTime) {
  constexpr int kMany = 1 << 15;
  Json json = tiny();
  Json vocabulary = Json::object(), added = Json::array();
  for (int id = 0; id < kMany; ++id) {
    const std::string piece = "<" + std::to_string(id) + ">";
    vocabulary[piece] = id;
    added.push_back(Json::object({{"id", kMany + id}, {"content", piece}}));
  }
  json["model"]["vocab"] = vocabulary;
  json["model"]["merges"] = Json::array();
  json["added_tokens"] = added;
  const Encoding encoding = open(json)->encode("<32767><0>");
  EXPECT_THAT(encoding.ids, ElementsAre(32767, 0));
  EXPECT_EQ(encoding.warnings.size(), static_cast<std::size_t>(kMany));
}

TEST(JsonTokenizer, AnAddedTokenOfEqualUnigramPiecesHasTheLastId) {
  Json json = tiny();
  json["pre_tokenizer"] = nullptr;
  json["model"] = Json::parse(R"({"type": "Unigram", "unk_id": 0, "byte_fallback": false,
      "vocab": [["<unk>", 0.0], ["ab", -5.0], ["ab", -1.5]]})");
  json["added_tokens"] = Json::parse(R"([{"id": 1, "content": "ab"}])");
  EXPECT_THAT(open(json)->encode("xab").ids, ElementsAre(0, 2));
}

}  // namespace
}  // namespace sinkscope
