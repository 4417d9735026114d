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

TEST_F(PromptsTest, TextAndPromptsComeFromStandardInput) {
  flags.text_file = "-";
  in.str("ab\n");
  EXPECT_THAT(read()[0].token_ids, ElementsAre(256, 'a', 'b', '\n'));
  flags = {};
  flags.prompts = "-";
  in.clear();
  in.str("{\"text\":\"c\"}\n{\"text\":\"d\"}\n");
  EXPECT_THAT(read()[1].token_ids, ElementsAre(256, 'd'));
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
        "{\"tokens\":[99999999999]}", "{\"text\":\"a\",\"name\":7}",
        "{\"text\":\"a\",\"text\":\"b\"}", "{\"text\":\"a\",\"nmae\":\"x\"}",
        "{\"text\":\"a\",\"tokens\":null}"}) {
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
  spec.learned_positions = true;
  EXPECT_THROW(check_prompts(runs, {}, spec, console), Error);
  spec.learned_positions = false;  // none at all: nothing ends
  EXPECT_NO_THROW(check_prompts(runs, {}, spec, console));
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

// A text of 40 tokens (BOS and 39 letters), as both recipes cut and score it.
class WindowsTest : public PromptsTest {
 protected:
  WindowsTest() {
    flags.text = "abcdefghijklmnopqrstuvwxyzabcdefghijklm";
    flags.window = "16";
  }
  std::vector<RunInput> read() { return read_prompts(flags, *model, console, &windows); }
  // Positions of the text that are scored, window by window.
  std::vector<std::vector<std::int64_t>> scored() const {
    std::vector<std::vector<std::int64_t>> all;
    for (const TextWindow& window : windows) {
      all.emplace_back();
      for (std::int64_t at = window.scored_from; at < window.end; ++at) all.back().push_back(at);
    }
    return all;
  }
  std::vector<TextWindow> windows;
};

TEST_F(WindowsTest, FieldCases_FC27_TheRuleHfIsTransformersRecipe) {
  flags.stride = "8";
  const std::vector<RunInput> runs = read();
  // The recipe of transformers' documentation, with its shift of labels.
  std::vector<std::vector<std::int64_t>> expected;
  int prev_end = 0;
  for (int begin = 0; begin < 40; begin += 8) {
    const int end = std::min(begin + 16, 40), trg_len = end - prev_end;
    expected.emplace_back();
    for (int at = std::max(end - trg_len, begin + 1); at < end; ++at) expected.back().push_back(at);
    prev_end = end;
    if (end == 40) break;
  }
  EXPECT_EQ(scored(), expected);
  EXPECT_EQ(windows_of(runs, {16, 8, {}, WindowRule::hugging_face}), windows);
  std::vector<RunInput> forged = runs;  // a file's name for a run may say anything
  forged[1].name = "window 1: tokens 5-9, scored from 2";
  EXPECT_THAT(windows_of(forged, {16, 8, {}, WindowRule::hugging_face}), ElementsAre());
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(runs[1].token_ids[0], 'h');  // token 8: BOS is token 0
  EXPECT_THAT(runs[0].bos_positions, ElementsAre(0));
  EXPECT_THAT(runs[1].bos_positions, ElementsAre());
  EXPECT_EQ(runs[3].seq_len(), 16);
  EXPECT_THAT(runs[3].name, HasSubstr("tokens 24-39, scored from 32"));
  EXPECT_THAT(err.str(), HasSubstr("4 windows of 16 tokens, stride 8, rule hf: 39 positions "
                                   "scored, BOS at the beginning of the first window only"));
}

TEST_F(WindowsTest, FieldCases_FC27_TheRuleLlamaCppScoresSecondHalvesWithBosEach) {
  flags.window_rule = "llama.cpp";
  const std::vector<RunInput> runs = read();
  // perplexity.cpp: n_chunk = 40/16; first = n_ctx/2; logits of first … n_ctx−2 score the next.
  std::vector<std::vector<std::int64_t>> expected;
  for (int chunk = 0; chunk < 40 / 16; ++chunk) {
    expected.emplace_back();
    for (int j = 16 / 2; j < 16 - 1; ++j) expected.back().push_back(chunk * 16 + j + 1);
  }
  EXPECT_EQ(scored(), expected);
  ASSERT_EQ(runs.size(), 2u);
  for (const RunInput& run : runs) {
    EXPECT_EQ(run.token_ids[0], 256);
    EXPECT_THAT(run.bos_positions, ElementsAre(0));
    EXPECT_EQ(run.token_text[0], "<s>");
  }
  EXPECT_EQ(runs[1].token_ids[1], 'q');  // token 17; token 16 gave way to BOS
  EXPECT_THAT(err.str(), HasSubstr("rule llama.cpp: 14 positions scored, BOS at the beginning of "
                                   "every window"));
  flags.bos = "never";
  EXPECT_EQ(read()[1].token_ids[0], 'q');
}

// Windows whose losses are 1, 2, 3, … in turn: means and weights by the recipe, written out.
TEST_F(WindowsTest, FieldCases_FC27_TheMeanLossHasTheRecipesWeights) {
  for (const char* stride : {"1", "8", "13", "15", "16"}) {
    flags.stride = stride;
    const std::vector<RunInput> runs = read();
    std::vector<std::vector<double>> loss;
    double value = 0;
    for (const RunInput& run : runs) {
      loss.emplace_back();
      for (int i = 1; i < run.seq_len(); ++i) loss.back().push_back(value += 0.25);
    }
    // for begin_loc in range(0, seq_len, stride): …
    double nll_sum = 0;
    int n_tokens = 0, n_scored = 0, prev_end_loc = 0;
    std::size_t w = 0;
    for (int begin_loc = 0; prev_end_loc < 40; begin_loc += std::stoi(stride), ++w) {
      const int end_loc = std::min(begin_loc + 16, 40), trg_len = end_loc - prev_end_loc;
      std::vector<bool> is_valid(static_cast<std::size_t>(end_loc - begin_loc), false);
      std::fill(is_valid.end() - trg_len, is_valid.end(), true);
      double sum = 0;
      int n = 0;  // of the labels behind the shift
      for (std::size_t i = 1; i < is_valid.size(); ++i)
        if (is_valid[i]) sum += loss[w][i - 1], ++n;
      nll_sum += sum / n * (trg_len - 1);
      n_tokens += trg_len - 1;
      n_scored += n;
      prev_end_loc = end_loc;
    }
    ASSERT_EQ(w, windows.size()) << stride;
    EXPECT_NEAR(score_windows(windows, loss).mean_loss, nll_sum / n_tokens, 1e-12) << stride;
    EXPECT_EQ(score_windows(windows, loss).n_scored, n_scored) << stride;
    const WindowPlan plan{16, std::stoi(stride), {}, WindowRule::hugging_face};
    EXPECT_EQ(windows_of(runs, plan), windows) << stride;
  }
}

TEST_F(WindowsTest, TheLastWindowMayBeShortAndTheFirstOnesCanBeAll) {
  flags.stride = "12";
  EXPECT_EQ(read().back().seq_len(), 16);  // 24…39
  flags.stride = "13";
  EXPECT_EQ(read().back().seq_len(), 14);  // 26…39
  EXPECT_THAT(windows.back(), (TextWindow{26, 40, 29, 10}));
  flags.max_windows = "2";
  EXPECT_EQ(read().size(), 2u);
  flags.max_tokens = "10";  // of the text, before it is cut
  EXPECT_EQ(read().size(), 1u);
}

TEST_F(WindowsTest, WhatMakesNoSenseIsNamed) {
  flags.stride = "17";
  EXPECT_THAT(complaint(), HasSubstr("--stride: expected at most the window of 16, found 17"));
  flags.window_rule = "llama.cpp";
  flags.stride = "8";
  EXPECT_THAT(complaint(), HasSubstr("side by side"));
  flags.stride = std::nullopt;
  flags.window = "64";
  EXPECT_THAT(complaint(), HasSubstr("40 tokens, not one whole window of 64"));
  flags.window_rule = "gpt4all";
  EXPECT_THAT(complaint(), HasSubstr("--window-rule: expected hf or llama.cpp"));
  flags = {};
  flags.text = "a";
  flags.stride = "8";
  EXPECT_THAT(complaint(), HasSubstr("--stride: expected --window beside it"));
  flags.stride = std::nullopt;
  flags.window = "1";
  EXPECT_THAT(complaint(), HasSubstr("--window"));
}

TEST_F(PromptsTest, ChatNeedsAFamilyAndText) {
  flags.chat = true;
  flags.text = "a";
  EXPECT_THAT(complaint(), HasSubstr("--chat: the vocabulary has no token that begins a turn"));
  EXPECT_THAT(complaint(), HasSubstr("<|im_start|> (ChatML)"));
  flags.text = std::nullopt;
  flags.tokens = "97";
  EXPECT_THAT(complaint(), HasSubstr("--chat: expected text"));
}

// The demo model's vocabulary is the one that the built-in text was measured with.
TEST(BuiltInText, Is64TokensOfSmolLm2) {
  const std::string path =
      std::string(SINKSCOPE_SOURCE_DIR) + "/demo/" + "SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "needs the demo model: ./dev setup";
  const test::CliRun run = test::cli({"tokenize", path, "--text", built_in_text(), "--ids"});
  EXPECT_EQ(std::count(run.out.begin(), run.out.end(), ' '), 63);
  const test::CliRun chat = test::cli({"tokenize", path, "--text", "Hi", "--chat", "--ids"});
  EXPECT_EQ(chat.out, "1 4093 198 26843 2 198 1 520 9531 198\n") << chat.err;
  EXPECT_THAT(chat.err, HasSubstr("ChatML"));
}

}  // namespace
}  // namespace sinkscope
