// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>

#include <cmath>

#include "capture/tokenizer/tokenizer.h"
#include "core/error.h"
#include "tests/support/shared_files.h"
#include "tests/tokenizer/fake_gguf.h"
#include "tests/tokenizer/golden.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ErrorKind kind_of(const GgufFile& file, const TokenizerOptions& options, std::string& message) {
  try {
    open_gguf_tokenizer(file, options);
  } catch (const Error& e) {
    message = e.what();
    return e.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::io;
}

void expect_golden(const std::string& stem) {
  const auto file = GgufFile::open(stem + ".gguf");
  const auto tokenizer = open_gguf_tokenizer(*file);
  const auto texts = test::read_golden_texts(stem + ".inp");
  const auto ids = test::read_golden_ids(stem + ".out");
  ASSERT_EQ(texts.size(), 47u);
  ASSERT_EQ(ids.size(), 47u);
  for (std::size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(tokenizer->encode(texts[i], BosRule::never).ids, ids[i])
        << "text " << i << ": " << texts[i];
}

TEST(GgufTokenizer, BertBgeGoldenIds) {
  SINKSCOPE_REQUIRE_SHARED(path, "data/tokenizers/ggml-vocab-bert-bge.gguf");
  const std::string stem = path.substr(0, path.size() - 5);
  const auto tokenizer = open_gguf_tokenizer(*GgufFile::open(path));
  const auto texts = test::read_golden_texts(stem + ".inp");
  const auto ids = test::read_golden_ids(stem + ".out");
  ASSERT_EQ(texts.size(), 47u);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::vector<int> whole = ids[i];  // [CLS] text [SEP]
    whole.insert(whole.begin(), 101);
    whole.push_back(102);
    EXPECT_EQ(tokenizer->encode(texts[i]).ids, whole) << "text " << i << ": " << texts[i];
  }
  EXPECT_EQ(tokenizer->name(), "gguf:bert");
  EXPECT_EQ(tokenizer->bos_id(), 101);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("unbelievably good!", BosRule::never).ids),
            " unbelievably good ![SEP]");
}

TEST(GgufTokenizer, Gpt2GoldenIds) {
  SINKSCOPE_REQUIRE_SHARED(path, "data/tokenizers/ggml-vocab-gpt-2.gguf");
  expect_golden(path.substr(0, path.size() - 5));
}

TEST(GgufTokenizer, LlamaSpmGoldenIds) {
  SINKSCOPE_REQUIRE_SHARED(path, "data/tokenizers/ggml-vocab-llama-spm.gguf");
  expect_golden(path.substr(0, path.size() - 5));
}

TEST(GgufTokenizer, Llama2AndMistralAreToldApartByHelloWorld) {
  SINKSCOPE_REQUIRE_SHARED(path, "data/tokenizers/ggml-vocab-llama-spm.gguf");
  const auto tokenizer = open_gguf_tokenizer(*GgufFile::open(path));
  EXPECT_THAT(tokenizer->encode("Hello world").ids, ElementsAre(1, 15043, 3186));
  EXPECT_EQ(tokenizer->name(), "gguf:llama");
  EXPECT_EQ(tokenizer->vocab_size(), 32000);
}

TEST(GgufTokenizer, Stories260KHasBosByDefaultOfItsKind) {
  SINKSCOPE_REQUIRE_SHARED(path, "data/models/stories260Ktok512.gguf");
  const auto tokenizer = open_gguf_tokenizer(*GgufFile::open(path));
  const Encoding encoding = tokenizer->encode("Once upon a time, there was");
  EXPECT_THAT(encoding.ids, ElementsAre(1, 403, 407, 261, 378, 432, 383, 286));
  EXPECT_THAT(encoding.bos_positions, ElementsAre(0));
  EXPECT_THAT(encoding.warnings, IsEmpty());
  EXPECT_EQ(tokenizer->bos_id(), 1);
}

TEST(FieldCases, FC21_GgufWithoutPreRefusesTextAndTakesAChoice) {
  SINKSCOPE_REQUIRE_SHARED(path, "data/tokenizers/ggml-vocab-gpt-2.gguf");
  test::FakeGguf file(*GgufFile::open(path));
  file.erase("tokenizer.ggml.pre");
  std::string message;
  EXPECT_EQ(kind_of(file, {}, message), ErrorKind::unsupported);
  EXPECT_THAT(message, HasSubstr("tokenizer.ggml.pre"));
  EXPECT_THAT(message, HasSubstr("--pre-tokenizer NAME"));
  EXPECT_THAT(message, HasSubstr("qwen2"));

  const std::string text = "Café isn't 1234";
  const auto gpt2 = open_gguf_tokenizer(file, {.pre_tokenizer = "gpt-2"});
  const auto smollm = open_gguf_tokenizer(file, {.pre_tokenizer = "smollm"});
  EXPECT_EQ(gpt2->name(), "gguf:gpt2/gpt-2");
  EXPECT_EQ(smollm->name(), "gguf:gpt2/smollm");
  // Ids of the PyPI package tokenizers: GPT-2's split, and digits apart before it.
  EXPECT_THAT(gpt2->encode(text).ids, ElementsAre(34, 1878, 2634, 2125, 470, 1105, 2682));
  EXPECT_THAT(smollm->encode(text).ids,
              ElementsAre(34, 1878, 2634, 2125, 470, 220, 16, 17, 18, 19));
}

TEST(GgufTokenizer, AChoiceThatOverrulesTheFileIsSaid) {
  SINKSCOPE_REQUIRE_SHARED(path, "data/tokenizers/ggml-vocab-gpt-2.gguf");
  const test::FakeGguf file(*GgufFile::open(path));
  const auto warnings = [&](const char* chosen) {
    return open_gguf_tokenizer(file, {.pre_tokenizer = chosen})->encode("a").warnings;
  };
  EXPECT_THAT(warnings("qwen2"),
              ::testing::ElementsAre(
                  "--pre-tokenizer qwen2 overrules tokenizer.ggml.pre, which is 'gpt-2'"));
  EXPECT_THAT(warnings("gpt-2"), ::testing::IsEmpty());
  EXPECT_THAT(warnings("phi-2"), ::testing::IsEmpty());  // another name of the same split
}

TEST(FieldCases, FC21_UnknownPreIsNotGuessed) {
  SINKSCOPE_REQUIRE_SHARED(path, "data/tokenizers/ggml-vocab-gpt-2.gguf");
  test::FakeGguf file(*GgufFile::open(path));
  std::string message;
  for (const char* pre : {"default", "deepseek-v9"}) {
    file.set("tokenizer.ggml.pre", std::string(pre));
    EXPECT_EQ(kind_of(file, {}, message), ErrorKind::unsupported);
    EXPECT_THAT(message, HasSubstr(pre));
  }
  EXPECT_EQ(kind_of(file, {.pre_tokenizer = "qwen9"}, message), ErrorKind::invalid_argument);
  EXPECT_THAT(message, HasSubstr("qwen9"));
}

TEST(GgufTokenizer, FlagsInTheFileBeatTheKindsDefaults) {
  test::FakeGguf file = test::tiny_sentencepiece();
  EXPECT_THAT(open_gguf_tokenizer(file)->encode("ab").ids, ElementsAre(1, 10));
  file.set("tokenizer.ggml.add_bos_token", false);
  file.set("tokenizer.ggml.add_eos_token", true);
  EXPECT_THAT(open_gguf_tokenizer(file)->encode("ab").ids, ElementsAre(10, 2));
  file.set("tokenizer.ggml.add_space_prefix", false);
  EXPECT_THAT(open_gguf_tokenizer(file)->encode("ab").ids, ElementsAre(9, 2));
  EXPECT_THAT(open_gguf_tokenizer(file)->encode("").ids, ElementsAre(2));
}

TEST(GgufTokenizer, AnIdOfAllOnesMeansNone) {
  test::FakeGguf file = test::tiny_sentencepiece();
  file.set("tokenizer.ggml.bos_token_id", std::int64_t{0xFFFFFFFF});
  const auto tokenizer = open_gguf_tokenizer(file);
  EXPECT_EQ(tokenizer->bos_id(), -1);
  EXPECT_THAT(tokenizer->encode("ab").ids, ElementsAre(10));
  EXPECT_THROW(tokenizer->encode("ab", BosRule::always), Error);
}

TEST(GgufTokenizer, ControlTokensInTheTextAreMatched) {
  const auto tokenizer = open_gguf_tokenizer(test::tiny_sentencepiece());
  // The space before what follows a token is the reference's, too.
  EXPECT_THAT(tokenizer->encode("ab</s>ab", BosRule::never).ids, ElementsAre(10, 2, 10));
  EXPECT_TRUE(tokenizer->is_special(2));
  EXPECT_TRUE(tokenizer->is_special(0));
  EXPECT_FALSE(tokenizer->is_special(10));
}

TEST(GgufTokenizer, UnusedPiecesFallApartAndUnknownCharactersBecomeBytes) {
  const auto tokenizer = open_gguf_tokenizer(test::tiny_sentencepiece());
  // "▁abab": ab+ab makes the unused "abab" first, so "▁ab" is never reached.
  EXPECT_THAT(tokenizer->encode("abab", BosRule::never).ids, ElementsAre(5, 9, 9));
  EXPECT_THAT(tokenizer->encode("é", BosRule::never).ids, ElementsAre(5, 3, 4));
  EXPECT_THAT(tokenizer->encode("ü", BosRule::never).ids, ElementsAre(5, 0));
}

TEST(GgufTokenizer, UserDefinedTokensOfAByteLevelVocabularyAreVerbatim) {
  test::FakeGguf file;
  file.set("tokenizer.ggml.model", std::string("gpt2"));
  file.set("tokenizer.ggml.pre", std::string("gpt-2"));
  file.set("tokenizer.ggml.tokens",
           std::vector<std::string>{"a", "Ġ", "Ġa", " é\n", "<|end|>", "[PAD]"});
  file.set("tokenizer.ggml.token_type", std::vector<std::int64_t>{1, 1, 1, 4, 3, 5});
  file.set("tokenizer.ggml.merges", std::vector<std::string>{"Ġ a"});
  const auto tokenizer = open_gguf_tokenizer(file);
  EXPECT_THAT(tokenizer->encode("a é\n a<|end|>").ids, ElementsAre(0, 3, 2, 4));
  EXPECT_EQ(tokenizer->bytes(3), " é\n");
  EXPECT_EQ(tokenizer->bytes(2), " a");
  EXPECT_THAT(tokenizer->labels({2, 3, 4}), ElementsAre("·a", "·é↵", "<|end|>"));
  EXPECT_FALSE(tokenizer->is_special(3));
  EXPECT_TRUE(tokenizer->is_special(4));
  // What the vocabulary cannot say is said.
  EXPECT_THAT(tokenizer->encode("ab").warnings, ElementsAre(HasSubstr("1 bytes or characters")));

  file.set("tokenizer.ggml.merges", std::vector<std::string>{"Ġa"});
  std::string message;
  EXPECT_EQ(kind_of(file, {}, message), ErrorKind::corrupt);
  EXPECT_THAT(message, HasSubstr("merges"));
}

TEST(GgufTokenizer, DamagedMetadataIsNamed) {
  const auto message_after = [](const char* key, GgufValue value) {
    test::FakeGguf file = test::tiny_sentencepiece();
    file.set(key, std::move(value));
    std::string message;
    EXPECT_EQ(kind_of(file, {}, message), ErrorKind::corrupt) << key;
    return message;
  };
  EXPECT_THAT(message_after("tokenizer.ggml.scores", std::vector<double>{1.0}),
              HasSubstr("scores"));
  EXPECT_THAT(message_after("tokenizer.ggml.token_type", std::vector<std::int64_t>(13, 9)),
              HasSubstr("token_type"));
  EXPECT_THAT(message_after("tokenizer.ggml.bos_token_id", std::int64_t{13}),
              HasSubstr("bos_token_id"));
  EXPECT_THAT(message_after("tokenizer.ggml.scores", std::vector<double>(13, std::nan(""))),
              HasSubstr("score"));
}

TEST(GgufTokenizer, OtherKindsAreRefusedByName) {
  test::FakeGguf file = test::tiny_sentencepiece();
  std::string message;
  file.set("tokenizer.ggml.model", std::string("rwkv"));
  EXPECT_EQ(kind_of(file, {}, message), ErrorKind::unsupported);
  EXPECT_THAT(message, HasSubstr("rwkv"));
  file.erase("tokenizer.ggml.model");
  EXPECT_EQ(kind_of(file, {}, message), ErrorKind::not_found);
}

TEST(GgufTokenizer, Qwen2TextIsComposedFirst) {
  SINKSCOPE_REQUIRE_SHARED(path, "data/tokenizers/ggml-vocab-gpt-2.gguf");
  const auto file = GgufFile::open(path);
  const auto qwen = open_gguf_tokenizer(*file, {.pre_tokenizer = "qwen2"});
  const auto llama = open_gguf_tokenizer(*file, {.pre_tokenizer = "llama-bpe"});
  const std::string composed = "Caf\u00e9", decomposed = "Cafe\u0301";
  EXPECT_EQ(qwen->encode(decomposed).ids, qwen->encode(composed).ids);
  EXPECT_NE(llama->encode(decomposed, BosRule::never).ids,
            llama->encode(composed, BosRule::never).ids);
}

TEST(GgufTokenizer, AByteTokenIsSpelledByTwoDigits) {
  for (const char* spelled : {"<0x-1>", "<0xag>", "<0xA>", "<0xA90>", "0xA9"}) {
    test::FakeGguf file = test::tiny_sentencepiece();
    auto tokens = std::get<std::vector<std::string>>(*file.find_key("tokenizer.ggml.tokens"));
    tokens[4] = spelled;
    file.set("tokenizer.ggml.tokens", tokens);
    try {
      open_gguf_tokenizer(file);
      ADD_FAILURE() << "accepted " << spelled;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt);
      EXPECT_THAT(error.what(), HasSubstr("tokens[4]: expected a byte like <0x0A>"));
    }
  }
}

}  // namespace
}  // namespace sinkscope
