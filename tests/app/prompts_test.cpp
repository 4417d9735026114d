// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "core/error.h"
#include "tests/app/cli_run.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PromptsTest : public ::testing::Test {
 protected:
  std::vector<RunInput> read() { return read_prompts(flags, *model, console); }
  std::string complaint() {
    try {
      read();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  std::istringstream in;
  std::ostringstream out, err;
  Console console{in, out, err};
  PromptFlags flags;
  std::unique_ptr<ModelFiles> model =
      open_model(std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted");
};

TEST_F(PromptsTest, WithoutAPromptTheBuiltInTextIsReadAndSaid) {
  const std::vector<RunInput> runs = read();
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].text, built_in_text());
  EXPECT_EQ(runs[0].seq_len(), static_cast<int>(built_in_text().size()) + 1);
  EXPECT_THAT(err.str(), HasSubstr("built-in"));
}

TEST_F(PromptsTest, TextKeepsItsLabelsAndItsTokenizer) {
  flags.text = "a b";
  const std::vector<RunInput> runs = read();
  EXPECT_THAT(runs[0].token_ids, ElementsAre(256, 'a', ' ', 'b'));
  EXPECT_THAT(runs[0].token_text, ElementsAre("<s>", "a", "·", "b"));
  EXPECT_THAT(runs[0].bos_positions, ElementsAre(0));
  EXPECT_NE(runs[0].tokenizer, "");
  EXPECT_EQ(err.str(), "");
}

TEST_F(PromptsTest, IdsAreFedAsTheyAreGiven) {
  flags.tokens = "97,256,98";
  const std::vector<RunInput> runs = read();
  EXPECT_THAT(runs[0].token_ids, ElementsAre(97, 256, 98));
  EXPECT_THAT(runs[0].bos_positions, ElementsAre(1));
  EXPECT_THAT(runs[0].token_text, ElementsAre("a", "<s>", "b"));
  EXPECT_EQ(runs[0].tokenizer, "");
  EXPECT_EQ(runs[0].text, "");
}

TEST_F(PromptsTest, IdsComeFromAFileOrStandardInput) {
  flags.tokens_file = "-";
  in.str("97 98\n99,100\n");
  EXPECT_THAT(read()[0].token_ids, ElementsAre(97, 98, 99, 100));
}

TEST_F(PromptsTest, AnIdOutsideTheVocabularyIsNamedWithItsPosition) {
  flags.tokens = "97,98,257";
  EXPECT_THAT(complaint(), HasSubstr("token id 257 at position 2"));
  EXPECT_THAT(complaint(), HasSubstr("0 to 256"));
}

TEST_F(PromptsTest, ALineOfJsonIsARun) {
  flags.prompts = test::write_file(test::scratch_folder(), "p.jsonl",
                                   "{\"text\":\"ab\",\"name\":\"first\"}\n\n"
                                   "{\"tokens\":[97,98,99]}\r\n");
  const std::vector<RunInput> runs = read();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].name, "first");
  EXPECT_THAT(runs[0].token_ids, ElementsAre(256, 'a', 'b'));
  EXPECT_EQ(runs[1].name, "");
  EXPECT_THAT(runs[1].token_ids, ElementsAre(97, 98, 99));
}

TEST_F(PromptsTest, ABadLineIsNamedByItsNumber) {
  for (const char* line :
       {"not json", "{}", "[1]", "{\"text\":1}", "{\"text\":\"a\",\"tokens\":[1]}",
        "{\"tokens\":[1.5]}", "{\"tokens\":[-1]}", "{\"tokens\":[\"a\"]}",
        "{\"tokens\":[99999999999]}", "{\"text\":\"a\",\"name\":7}"}) {
    flags.prompts = test::write_file(test::scratch_folder(), "p.jsonl",
                                     std::string("{\"text\":\"ok\"}\n") + line + "\n");
    EXPECT_THAT(complaint(), HasSubstr("p.jsonl:2: ")) << line;
  }
  flags.prompts = test::write_file(test::scratch_folder(), "empty.jsonl", "\n \n");
  EXPECT_THAT(complaint(), HasSubstr("holds no prompt"));
}

TEST_F(PromptsTest, OnlyOneKindOfPrompt) {
  flags.text = "a";
  flags.tokens = "97";
  EXPECT_THAT(complaint(), HasSubstr("found several"));
}

TEST_F(PromptsTest, NoTokensAtAllAreRefused) {
  flags.text = "";
  flags.bos = "never";
  EXPECT_THAT(complaint(), HasSubstr("no tokens"));
}

TEST_F(PromptsTest, MaxTokensCutsAndSaysSo) {
  flags.text = "abcdef";
  flags.max_tokens = "3";
  const std::vector<RunInput> runs = read();
  EXPECT_THAT(runs[0].token_ids, ElementsAre(256, 'a', 'b'));
  EXPECT_EQ(runs[0].token_text.size(), 3u);
  EXPECT_THAT(err.str(), HasSubstr("from 7 to 3"));
}

TEST_F(PromptsTest, BeyondTheContextThereIsOneWarning) {
  const int n_ctx = model->spec().n_ctx;
  flags.text = std::string(static_cast<std::size_t>(n_ctx) + 5, 'a');
  EXPECT_EQ(read()[0].seq_len(), n_ctx + 6);
  EXPECT_EQ(test::n_lines(err.str()), 1) << err.str();
  EXPECT_THAT(err.str(), HasSubstr("context"));
}

TEST_F(PromptsTest, LearnedPositionsEndAtTheContext) {
  std::vector<RunInput> runs(1);
  runs[0].token_ids.assign(20, 1);
  ArchSpec spec;
  spec.vocab_size = 5;
  spec.n_ctx = 16;
  EXPECT_THROW(check_prompts(runs, {}, spec, console), Error);
}

TEST_F(PromptsTest, TextForAModelWithoutATokenizerPointsToIds) {
  SINKSCOPE_REQUIRE_SHARED(path, "oracles/llama");
  model = open_model(path);
  flags.text = "a";
  EXPECT_THAT(complaint(), HasSubstr("--tokens"));
  flags = {};
  flags.tokens = "5,6,7";
  const std::vector<RunInput> runs = read();
  EXPECT_THAT(runs[0].token_ids, ElementsAre(5, 6, 7));
  EXPECT_EQ(runs[0].token_text.size(), 3u);
}

// The same text with and without BOS gives different sinks: both runs keep their ids.
TEST_F(PromptsTest, FieldCases_FC23_BosIsTheUsersChoiceAndIsKept) {
  flags.text = "ab";
  const RunInput with = read()[0];
  flags.bos = "never";
  const RunInput without = read()[0];
  EXPECT_THAT(with.bos_positions, ElementsAre(0));
  EXPECT_THAT(without.token_ids, ElementsAre('a', 'b'));
  EXPECT_TRUE(without.bos_positions.empty());
}

// The demo model's vocabulary is the one that the built-in text was measured with.
TEST(BuiltInText, Is64TokensOfSmolLm2) {
  const std::string path =
      std::string(SINKSCOPE_SOURCE_DIR) + "/demo/" + "SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "needs the demo model: ./dev setup";
  const test::CliRun run = test::cli({"tokenize", path, "--text", built_in_text(), "--ids"});
  EXPECT_EQ(std::count(run.out.begin(), run.out.end(), ' '), 63);
}

}  // namespace
}  // namespace sinkscope
