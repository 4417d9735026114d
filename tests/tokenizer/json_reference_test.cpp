// SPDX-License-Identifier: GPL-3.0-or-later
// tokenizer.json against the PyPI package `tokenizers`, on the golden texts and on what split
// patterns disagree about. Needs a Python with that package: SINKSCOPE_PYTHON, else the project's
// .venv.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "capture/checkpoint/gguf_file.h"
#include "capture/tokenizer/pre_tokenizer.h"
#include "capture/tokenizer/tokenizer.h"
#include "tests/support/shared_files.h"
#include "tests/tokenizer/golden.h"
#include "tests/tokenizer/trained_model.h"

namespace sinkscope {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

std::string python() {
  const char* set = std::getenv("SINKSCOPE_PYTHON");
  const std::string path =
      set != nullptr ? set : std::string(SINKSCOPE_SOURCE_DIR) + "/.venv/bin/python";
  const std::string probe = "'" + path + "' -c 'import tokenizers' 2>/dev/null";
  return std::system(probe.c_str()) == 0 ? path : std::string();
}

bool on_ci() {
  const char* ci = std::getenv("CI");
  return ci != nullptr && std::string(ci) == "true";
}

std::string to_base64(const std::string& bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = (bits << 8) | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      text += i + k > bytes.size() ? '=' : kDigits[(bits >> (18 - 6 * k)) & 63u];
  }
  return text;
}

Json pieces_of(const GgufFile& file) {
  return {{"tokens", *file.texts("tokenizer.ggml.tokens")},
          {"scores", *file.numbers("tokenizer.ggml.scores")}};
}

// Vocabularies and texts as make_reference.py reads them.
void dump(const std::string& folder, const std::vector<std::string>& texts,
          const std::string& path) {
  const auto gpt2 = GgufFile::open(folder + "/ggml-vocab-gpt-2.gguf");
  Json json;
  json["tokens"] = *gpt2->texts("tokenizer.ggml.tokens");
  json["merges"] = *gpt2->texts("tokenizer.ggml.merges");
  json["texts"] = texts;
  for (const SplitRule& rule : split_rules())
    if (rule.pattern != nullptr) json["patterns"][rule.name] = rule.pattern;
  json["llama"] = pieces_of(*GgufFile::open(folder + "/ggml-vocab-llama-spm.gguf"));
  json["bert"]["tokens"] =
      *GgufFile::open(folder + "/ggml-vocab-bert-bge.gguf")->texts("tokenizer.ggml.tokens");
  const std::string& trained = test::trained_sentencepiece("unigram");
  json["unigram"] = pieces_of(test::gguf_of(trained, "t5"));
  json["unigram"]["charsmap"] = to_base64(test::proto_bytes(test::proto_bytes(trained, 3), 2));
  std::ofstream(path) << json.dump();
}

class JsonReference : public ::testing::Test {
 protected:
  // Everything the script made, once for all tests.
  static const Json& expected() {
    static const Json made = [] {
      const fs::path inputs = test::shared_path("data/tokenizers");
      std::vector<std::string> texts;
      for (const char* name : {"ggml-vocab-llama-bpe.inp", "ggml-vocab-qwen2.inp"})
        for (const std::string& text : test::read_golden_texts((inputs / name).string()))
          if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
      dump(inputs.string(), texts, folder() + "/dump.json");
      const std::string command =
          "'" + python() + "' '" + SINKSCOPE_SOURCE_DIR + "/tests/tokenizer/make_reference.py' '" +
          folder() + "/dump.json' '" + folder() + "' > '" + folder() + "/expected.json'";
      if (std::system(command.c_str()) != 0) return Json();
      return Json::parse(test::read_text_file(folder() + "/expected.json"));
    }();
    return made;
  }

  static const std::string& folder() {
    static const std::string made = test::scratch_folder();
    return made;
  }

  void SetUp() override {
    SINKSCOPE_REQUIRE_SHARED(vocabulary, "data/tokenizers/ggml-vocab-gpt-2.gguf");
    if (python().empty()) {
      if (on_ci()) FAIL() << "no Python with the package tokenizers (set SINKSCOPE_PYTHON)";
      GTEST_SKIP() << "needs a Python with the package tokenizers; set SINKSCOPE_PYTHON";
    }
    ASSERT_TRUE(expected().is_object()) << "make_reference.py failed";
  }
};

void expect_equal(const Tokenizer& tokenizer, const Json& reference, const std::string& name) {
  const auto texts = reference.at("texts").get<std::vector<std::string>>();
  const auto ids = reference.at("ids").get<std::vector<std::vector<int>>>();
  ASSERT_GT(texts.size(), 50u);
  for (std::size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(tokenizer.encode(texts[i]).ids, ids[i]) << name << ", text " << i << ": " << texts[i];
}

TEST_F(JsonReference, EveryTokenizerJsonGivesTheIdsOfThePackage) {
  ASSERT_GT(expected().size(), 28u);
  for (const auto& [name, reference] : expected().items())
    expect_equal(*open_json_tokenizer(folder() + "/" + name + "/tokenizer.json"), reference, name);
}

TEST_F(JsonReference, FamiliesAreRecognizedByTheirSplit) {
  for (const auto& [name, family] :
       std::vector<std::pair<std::string, std::string>>{{"gpt2", "gpt-2"},
                                                        {"llama3", "llama3"},
                                                        {"qwen2", "qwen2"},
                                                        {"smollm", "smollm"},
                                                        {"gpt4o", "gpt-4o"},
                                                        {"inverted", "custom"},
                                                        {"llama2", "sentencepiece"},
                                                        {"metaspace_first", "sentencepiece"}})
    EXPECT_EQ(open_json_tokenizer(folder() + "/" + name + "/tokenizer.json")->name(),
              "tokenizer.json:bpe/" + family);
}

// The pieces of the other models read as text again, and their names say the model.
TEST_F(JsonReference, OtherModelsSpellTheirPieces) {
  const auto of = [&](const std::string& name) {
    return open_json_tokenizer(folder() + "/" + name + "/tokenizer.json");
  };
  const std::string text = "the cat isn't 12";
  EXPECT_EQ(of("t5")->name(), "tokenizer.json:unigram");
  EXPECT_EQ(of("t5")->decode(of("t5")->encode(text).ids), " " + text + "</s>");
  EXPECT_EQ(of("llama2")->decode(of("llama2")->encode("é\u0301 " + text).ids),
            "<s> é\u0301 " + text);
  EXPECT_EQ(of("bert")->name(), "tokenizer.json:wordpiece");
  EXPECT_EQ(of("bert")->bos_id(), 101);
  EXPECT_EQ(of("bert")->decode(of("bert")->encode("unaffable cats").ids),
            "[CLS] unaffable cats[SEP]");
  EXPECT_EQ(of("word_level")->name(), "tokenizer.json:wordlevel");
}

// tokenizer.ggml.pre names the same split as tokenizer.json spells out.
TEST_F(JsonReference, GgufSplitsAreThoseOfThePackage) {
  const auto file = GgufFile::open(test::shared_path("data/tokenizers/ggml-vocab-gpt-2.gguf"));
  for (const auto& [pre, name] : std::vector<std::pair<std::string, std::string>>{
           {"gpt-2", "gpt2"}, {"llama-bpe", "llama3"}, {"smollm", "smollm"}}) {
    const auto tokenizer = open_gguf_tokenizer(*file, {.pre_tokenizer = pre});
    expect_equal(*tokenizer, expected().at(name), pre);
  }
}

}  // namespace
}  // namespace sinkscope
