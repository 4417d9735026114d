// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/tokenizer.h"

#include <gmock/gmock.h>

#include <fstream>

#include "capture/checkpoint/model_files.h"
#include "core/error.h"
#include "tests/support/shared_files.h"
#include "tests/tokenizer/fake_gguf.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(FieldCases, FC22_TwoBosAreSaid) {
  const auto tokenizer = open_gguf_tokenizer(test::tiny_sentencepiece());
  const Encoding twice = tokenizer->encode("<s>ab");
  EXPECT_THAT(twice.ids, ElementsAre(1, 1, 10));
  EXPECT_THAT(twice.bos_positions, ElementsAre(0, 1));
  EXPECT_THAT(twice.warnings, ElementsAre(HasSubstr("2 BOS")));

  const Encoding once = tokenizer->encode("<s>ab", BosRule::never);
  EXPECT_THAT(once.ids, ElementsAre(1, 10));
  EXPECT_THAT(once.bos_positions, ElementsAre(0));
  EXPECT_THAT(once.warnings, IsEmpty());
}

TEST(FieldCases, FC22_BosInTheMiddleIsListedAndNoWarning) {
  const auto tokenizer = open_gguf_tokenizer(test::tiny_sentencepiece());
  const Encoding encoding = tokenizer->encode("ab<s>ab");
  EXPECT_THAT(encoding.ids, ElementsAre(1, 10, 1, 10));
  EXPECT_THAT(encoding.bos_positions, ElementsAre(0, 2));
  EXPECT_THAT(encoding.warnings, IsEmpty());
}

TEST(FieldCases, FC23_TheBosRuleIsTheUsersChoice) {
  test::FakeGguf file = test::tiny_sentencepiece();
  for (const bool file_says : {true, false}) {
    file.set("tokenizer.ggml.add_bos_token", file_says);
    const auto tokenizer = open_gguf_tokenizer(file);
    EXPECT_THAT(tokenizer->encode("ab", BosRule::always).ids, ElementsAre(1, 10));
    EXPECT_THAT(tokenizer->encode("ab", BosRule::never).ids, ElementsAre(10));
    EXPECT_EQ(tokenizer->encode("ab").ids.size(), file_says ? 2u : 1u);
    EXPECT_EQ(tokenizer->encode("ab").bos_positions.size(), file_says ? 1u : 0u);
  }
}

constexpr const char* kFc28 = "我说 Seán\n 😊";

TEST(FieldCases, FC28_ByteLevelLabelsAreReadable) {
  SINKSCOPE_REQUIRE_SHARED(path, "data/tokenizers/ggml-vocab-gpt-2.gguf");
  const auto tokenizer = open_gguf_tokenizer(*GgufFile::open(path));
  const std::vector<int> ids = tokenizer->encode(kFc28).ids;
  // Ids of the PyPI package tokenizers.
  ASSERT_THAT(ids, ElementsAre(22755, 239, 46237, 112, 1001, 21162, 198, 30325, 232));
  EXPECT_THAT(tokenizer->labels(ids), ElementsAre("⟨E6 88⟩", "⟨91⟩", "⟨E8 AF⟩", "⟨B4⟩", "·Se", "án",
                                                  "↵", "·⟨F0 9F 98⟩", "⟨8A⟩"));
  EXPECT_EQ(tokenizer->raw_piece(30325), "ĠðŁĺ");
  EXPECT_EQ(tokenizer->decode(ids), kFc28);
  EXPECT_EQ(tokenizer->decode({22755}), "\uFFFD");
}

TEST(FieldCases, FC28_SentencePieceLabelsAreReadable) {
  SINKSCOPE_REQUIRE_SHARED(path, "data/tokenizers/ggml-vocab-llama-spm.gguf");
  const auto tokenizer = open_gguf_tokenizer(*GgufFile::open(path));
  const std::vector<int> ids = tokenizer->encode(kFc28).ids;
  const auto labels = tokenizer->labels(ids);
  EXPECT_THAT(labels, ElementsAre("<s>", "·", "我", "说", "·Se", "án", "↵", "·", "⟨F0⟩", "⟨9F⟩",
                                  "⟨98⟩", "⟨8A⟩"));
  EXPECT_EQ(tokenizer->decode({ids.begin() + 1, ids.end()}), std::string(" ") + kFc28);
  EXPECT_EQ(tokenizer->raw_piece(ids[6]), "<0x0A>");
}

TEST(Tokenizer, LabelsShowWhatCannotBeSeen) {
  test::FakeGguf file = test::tiny_sentencepiece();
  file.set("tokenizer.ggml.tokens",
           std::vector<std::string>{"<unk>", "<s>", "<\x1B\xFF s>", "<0x0D>", "<0x1B>", "▁", "\t\n",
                                    "\u200Bx", "👨\u200D👩", "\u00A0", "\u007F", "x", "y"});
  file.set("tokenizer.ggml.token_type",
           std::vector<std::int64_t>{2, 3, 3, 6, 6, 1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_THAT(open_gguf_tokenizer(file)->labels({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 99, -1}),
              ElementsAre("<s>", "<␛⟨FF⟩·s>", "␍", "␛", "·", "⇥↵", "⟨U+200B⟩x", "👨\u200D👩",
                          "⟨U+00A0⟩", "␡", "x", "", ""));
}

// A safetensors folder as far as a tokenizer cares.
class FolderOnly : public ModelFiles {
 public:
  explicit FolderOnly(std::string path) : path_(std::move(path)) {}
  const Checkpoint& checkpoint() const override { return nothing_; }
  const ArchSpec& spec() const override { return spec_; }
  Container container() const override { return Container::safetensors; }
  const std::string& path() const override { return path_; }
  const std::string& config_text() const override { return path_; }
  const GgufFile* gguf() const override { return nullptr; }
  const std::vector<std::string>& obstacles() const override { return none_; }
  const std::vector<std::string>& warnings() const override { return none_; }
  bool has(Role, int) const override { return false; }
  std::int64_t rows(Role, int) const override { return 0; }
  std::int64_t cols(Role, int) const override { return 0; }
  std::string tensor_name(Role, int) const override { return {}; }
  void read_rows(Role, int, std::int64_t, std::int64_t, float*) const override {}

 private:
  std::string path_;
  test::FakeGguf nothing_;
  ArchSpec spec_;
  std::vector<std::string> none_;
};

ErrorKind kind_of(const ModelFiles& model, const TokenizerOptions& options, std::string& message) {
  try {
    open_tokenizer(model, options);
  } catch (const Error& e) {
    message = e.what();
    return e.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::io;
}

TEST(Tokenizer, AFolderHasTheOneOfItsTokenizerJson) {
  const std::string folder = test::scratch_folder();
  std::string message;
  EXPECT_EQ(kind_of(FolderOnly(folder), {}, message), ErrorKind::not_found);
  EXPECT_THAT(message, HasSubstr(folder));
  std::ofstream(folder + "/vocab.txt") << "x";
  EXPECT_EQ(kind_of(FolderOnly(folder), {}, message), ErrorKind::unsupported);
  EXPECT_THAT(message, HasSubstr("vocab.txt"));
  std::ofstream(folder + "/tokenizer.model") << "x";
  EXPECT_EQ(kind_of(FolderOnly(folder), {}, message), ErrorKind::corrupt);
  EXPECT_THAT(message, HasSubstr("tokenizer.model"));
  std::ofstream(folder + "/tokenizer.json")
      << R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})";
  EXPECT_THAT(open_tokenizer(FolderOnly(folder))->encode("aa").ids, ElementsAre(0, 0));
  std::ofstream(folder + "/model.safetensors") << "x";
  EXPECT_THAT(open_tokenizer(FolderOnly(folder + "/model.safetensors"))->encode("a").ids,
              ElementsAre(0));
  EXPECT_EQ(kind_of(FolderOnly(folder), {.pre_tokenizer = "qwen2"}, message),
            ErrorKind::invalid_argument);
}

TEST(Tokenizer, TextThatIsNotUtf8IsRefused) {
  const auto tokenizer = open_gguf_tokenizer(test::tiny_sentencepiece());
  try {
    tokenizer->encode("ab\xFF");
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
  }
}

TEST(Tokenizer, AMegabyteTakesNearlyLinearTime) {
  SINKSCOPE_REQUIRE_SHARED(gpt2, "data/tokenizers/ggml-vocab-gpt-2.gguf");
  SINKSCOPE_REQUIRE_SHARED(llama, "data/tokenizers/ggml-vocab-llama-spm.gguf");
  std::string prose;
  for (int i = 0; prose.size() < (1u << 20); ++i)
    prose += "The quick brown fox no. " + std::to_string(i * 7919) + " isn't naïve; 我说 😊\n";
  const std::string letters(1 << 18, 'a'), spaces(1 << 18, ' ');  // one piece each
  for (const std::string& text : {prose, letters, spaces})
    for (const std::string& path : {gpt2, llama}) {
      const auto tokenizer = open_gguf_tokenizer(*GgufFile::open(path));
      const auto ids = tokenizer->encode(text, BosRule::never).ids;
      std::string decoded = tokenizer->decode(ids);
      if (path == llama) decoded.erase(0, 1);  // the space before the text
      EXPECT_TRUE(decoded == text);
    }
}

}  // namespace
}  // namespace sinkscope
