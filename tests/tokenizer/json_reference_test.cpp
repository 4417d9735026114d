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

// A GGUF vocabulary and texts as make_reference.py reads them.
void dump(const GgufFile& file, const std::vector<std::string>& texts, const std::string& path) {
  Json json;
  json["tokens"] = *file.texts("tokenizer.ggml.tokens");
  json["merges"] = *file.texts("tokenizer.ggml.merges");
  json["texts"] = texts;
  for (const SplitRule& rule : split_rules())
    if (rule.pattern != nullptr) json["patterns"][rule.name] = rule.pattern;
  std::ofstream(path) << json.dump();
}

class JsonReference : public ::testing::Test {
 protected:
  // Everything the script made, once for all tests.
  static const Json& expected() {
    static const Json made = [] {
      const std::string stem = test::shared_path("data/tokenizers/ggml-vocab-gpt-2.gguf");
      const auto file = GgufFile::open(stem);
      const fs::path inputs = fs::path(stem).parent_path();
      std::vector<std::string> texts;
      for (const char* name : {"ggml-vocab-llama-bpe.inp", "ggml-vocab-qwen2.inp"})
        for (const std::string& text : test::read_golden_texts((inputs / name).string()))
          if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
      dump(*file, texts, folder() + "/dump.json");
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
  ASSERT_GT(expected().size(), 10u);
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
                                                        {"inverted", "custom"}})
    EXPECT_EQ(open_json_tokenizer(folder() + "/" + name + "/tokenizer.json")->name(),
              "tokenizer.json:bpe/" + family);
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
