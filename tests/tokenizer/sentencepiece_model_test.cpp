// SPDX-License-Identifier: GPL-3.0-or-later
// tokenizer.model: read by the SentencePiece library, checked before. And the other way round: our
// own Unigram, BPE and normalizer against the library, on models that it trains here.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "capture/checkpoint/model_files.h"
#include "capture/tokenizer/charsmap.h"
#include "capture/tokenizer/sentencepiece_proto.h"
#include "capture/tokenizer/tokenizer.h"
#include "core/error.h"
#include "tests/support/shared_files.h"
#include "tests/tokenizer/golden.h"
#include "tests/tokenizer/trained_model.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string write_model(const std::string& bytes, const Json& config = nullptr) {
  const std::string folder = test::scratch_folder();
  std::ofstream(folder + "/tokenizer.model", std::ios::binary) << bytes;
  if (!config.is_null()) std::ofstream(folder + "/tokenizer_config.json") << config.dump();
  return folder + "/tokenizer.model";
}

std::string refusal(const std::string& path, ErrorKind kind = ErrorKind::corrupt) {
  try {
    open_sentencepiece_tokenizer(path);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

// Texts that pieces, spaces, normalization and byte tokens disagree about.
std::vector<std::string> texts() {
  std::vector<std::string> all = {
      "",
      " ",
      "  two  spaces  ",
      "The licenses for most software and other practical works",
      "licenselicenselicense GNU's",
      "tabs\tand\r\nlines\n\n end ",
      "\u00a0no\u3000break \u200b\ufeffzero",
      "ﬁne ½ Ⅷ ｆｕｌｌ ㌔ ①",
      "Cafe\u0301 Caf\u00e9 A\u030a \u1e9b\u0323",
      "说我👨\u200d👩\u200d👧 e\u0301\u0301",
      "a\x01b\x7f \u0085c",
      "▁▁x ▁y",
      "<0x41> <mask> <mask>x",
      "…‥ﷺ",
  };
  for (const char* name : {"llama-spm", "bert-bge"}) {
    const std::string path =
        test::shared_path(std::string("data/tokenizers/ggml-vocab-") + name + ".inp");
    if (path.empty()) continue;
    for (const std::string& text : test::read_golden_texts(path)) all.push_back(text);
  }
  return all;
}

TEST(SentencePieceModel, Tok512GivesTheIdsOfItsGguf) {
  SINKSCOPE_REQUIRE_SHARED(path, "data/tokenizers/tok512.model");
  SINKSCOPE_REQUIRE_SHARED(gguf_path, "data/models/stories260Ktok512.gguf");
  const auto tokenizer = open_sentencepiece_tokenizer(path);
  const auto gguf = open_gguf_tokenizer(*GgufFile::open(gguf_path));
  EXPECT_EQ(tokenizer->vocab_size(), 512);
  EXPECT_EQ(tokenizer->name(), "tokenizer.model:bpe");
  EXPECT_THAT(tokenizer->encode("Once upon a time, there was").ids,
              ElementsAre(1, 403, 407, 261, 378, 432, 383, 286));
  // The model removes spaces at the ends and repeated ones, which its GGUF does not say.
  int n_compared = 0;
  for (const std::string& text : texts()) {
    if (text.starts_with(' ') || text.ends_with(' ') || text.find("  ") != std::string::npos)
      continue;
    EXPECT_EQ(tokenizer->encode(text).ids, gguf->encode(text).ids) << text;
    ++n_compared;
  }
  EXPECT_GT(n_compared, 30);
  for (int id = 0; id < 512; ++id) EXPECT_EQ(tokenizer->bytes(id), gguf->bytes(id)) << id;
}

TEST(SentencePieceModel, AFolderWithItIsOpened) {
  const std::string path = write_model(test::trained_sentencepiece("bpe"));
  const std::string folder = fs::path(path).parent_path().string();
  fs::copy(std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted/config.json", folder);
  fs::copy(std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted/model.safetensors", folder);
  EXPECT_EQ(open_tokenizer(*open_model(folder))->name(), "tokenizer.model:bpe");
}

TEST(SentencePieceModel, UnigramGgufCutsAsTheLibrary) {
  const std::string& model = test::trained_sentencepiece("unigram");
  const auto gguf = open_gguf_tokenizer(test::gguf_of(model, "t5"));
  for (const std::string& text : texts()) {
    if (text.find("<mask>") != std::string::npos) continue;  // GGUF has a space after such a token
    EXPECT_EQ(gguf->encode(text).ids, test::library_ids(model, text)) << text;
  }
}

TEST(SentencePieceModel, BpeGgufCutsAsTheLibrary) {
  const std::string& model = test::trained_sentencepiece("bpe");
  const auto gguf = open_gguf_tokenizer(test::gguf_of(model, "llama"));
  for (const std::string& text : texts()) {
    if (text.find("<mask>") != std::string::npos) continue;  // as above
    EXPECT_EQ(gguf->encode(text).ids, test::library_ids(model, text)) << text;
  }
}

TEST(SentencePieceModel, ItsKindSaysWhatStandsAround) {
  const auto bpe = open_sentencepiece_tokenizer(write_model(test::trained_sentencepiece("bpe")));
  EXPECT_EQ(bpe->bos_id(), 1);
  EXPECT_EQ(bpe->encode("GNU").ids.front(), 1);
  EXPECT_NE(bpe->encode("GNU").ids.back(), 2);
  const auto t5 = open_sentencepiece_tokenizer(write_model(test::trained_sentencepiece("unigram")));
  EXPECT_NE(t5->encode("GNU").ids.front(), 1);
  EXPECT_EQ(t5->encode("GNU").ids.back(), 2);
}

TEST(SentencePieceModel, TheConfigurationSaysMore) {
  const Json config = {{"add_bos_token", false},
                       {"add_eos_token", true},
                       {"added_tokens_decoder",
                        {{"700", {{"content", "<|turn|>"}, {"special", true}, {"lstrip", true}}}}}};
  const auto tokenizer =
      open_sentencepiece_tokenizer(write_model(test::trained_sentencepiece("bpe"), config));
  const std::vector<int> ids = tokenizer->encode("GNU <|turn|>").ids;
  EXPECT_EQ(ids.back(), 2);
  EXPECT_EQ(ids[ids.size() - 2], 700);
  EXPECT_NE(ids.front(), 1);
  EXPECT_EQ(tokenizer->added_id("<|turn|>"), 700);
  EXPECT_EQ(tokenizer->vocab_size(), 701);
  EXPECT_TRUE(tokenizer->is_special(700));
  EXPECT_THAT(tokenizer->encode("<s>", BosRule::always).warnings, ElementsAre(HasSubstr("2 BOS")));
}

TEST(SentencePieceModel, OfAddedTokensOfOneIdTheLastCounts) {
  const Json config = {{"added_tokens_decoder",
                        {{"700", {{"content", "<first>"}}}, {"701", {{"content", "<other>"}}}}}};
  const std::string path = write_model(test::trained_sentencepiece("bpe"), config);
  std::ofstream(fs::path(path).parent_path() / "added_tokens.json") << R"({"<last>": 700})";
  const auto tokenizer = open_sentencepiece_tokenizer(path);
  EXPECT_EQ(tokenizer->raw_piece(700), "<last>");
  EXPECT_EQ(tokenizer->raw_piece(701), "<other>");
  EXPECT_EQ(tokenizer->added_id("<first>"), -1);
  EXPECT_EQ(tokenizer->vocab_size(), 702);
}

TEST(SentencePieceModel, BosAndEosMayBeAnyPiece) {
  const std::string& model = test::trained_sentencepiece("bpe");
  const Json config = {{"bos_token", "<mask>"}, {"eos_token", "e"}, {"add_eos_token", true}};
  const auto tokenizer = open_sentencepiece_tokenizer(write_model(model, config));
  EXPECT_EQ(tokenizer->raw_piece(tokenizer->bos_id()), "<mask>");
  const std::vector<int> ids = tokenizer->encode("GNU").ids;
  EXPECT_EQ(ids.front(), tokenizer->bos_id());
  EXPECT_EQ(tokenizer->raw_piece(ids.back()), "e");
  EXPECT_EQ(open_sentencepiece_tokenizer(write_model(model, {{"bos_token", "<none>"}}))->bos_id(),
            -1);
}

// transformers' "legacy": a space is put in front of every stretch behind a special token, too.
TEST(SentencePieceModel, LegacySaysWhetherASpaceFollowsAToken) {
  const std::string& model = test::trained_sentencepiece("bpe");
  const auto legacy = open_sentencepiece_tokenizer(write_model(model));
  const auto newer = open_sentencepiece_tokenizer(write_model(model, {{"legacy", false}}));
  EXPECT_EQ(legacy->decode(legacy->encode("the</s>the", BosRule::never).ids), " the</s> the");
  EXPECT_EQ(newer->decode(newer->encode("the</s>the", BosRule::never).ids), " the</s>the");
  EXPECT_EQ(legacy->encode("the").ids, newer->encode("the").ids);
}

TEST(SentencePieceModel, ModelsOfOtherIdsAreRefused) {
  const std::string path = write_model(test::trained_sentencepiece("unigram"),
                                       {{"tokenizer_class", "XLMRobertaTokenizer"}});
  EXPECT_THAT(refusal(path, ErrorKind::unsupported), HasSubstr("XLMRobertaTokenizer"));
}

TEST(SentencePieceModel, DamagedModelsAreSentences) {
  EXPECT_THAT(refusal(write_model("version https://git-lfs.github.com/spec/v1\noid x\n")),
              HasSubstr("Git-LFS pointer"));
  EXPECT_THAT(refusal(write_model("")), HasSubstr("no pieces"));
  EXPECT_THAT(refusal(write_model(std::string("\x0A\xFF\xFF\xFF\xFF\x7F", 6))),
              HasSubstr("bytes where 0 are left"));
  // piece 0 with the score NaN
  EXPECT_THAT(refusal(write_model(std::string("\x0A\x08\x0A\x01x\x15\x00\x00\xC0\x7F", 10))),
              HasSubstr("the score of piece 0 is not a number"));
  // a charsmap that steps out of its trie
  const std::string trie("\x04\x00\x00\x00\x00\xFC\xFF\x00\x00", 9);
  EXPECT_THAT(refusal(write_model(std::string("\x0A\x03\x0A\x01x\x1A\x0B\x12\x09", 9) + trie)),
              HasSubstr("a step from unit 0"));
}

// Found by fuzzing: a trie whose first unit is a value.
TEST(SentencePieceModel, ACharsmapWhoseRootIsAValueIsRefused) {
  const std::string trie("\x04\x00\x00\x00\x00\x00\x00\x80x\x00", 10);
  EXPECT_THAT(refusal(write_model(std::string("\x0A\x03\x0A\x01x\x1A\x0C\x12\x0A", 9) + trie)),
              HasSubstr("the root of its trie is a value"));
}

// Found by fuzzing: the library's trie throws what nobody catches.
TEST(SentencePieceModel, AZeroByteInAPieceIsRefused) {
  EXPECT_THAT(refusal(write_model(std::string("\x0A\x05\x0A\x03"
                                              "a\0b",
                                              7))),
              HasSubstr("piece 0 holds a zero byte"));
}

// A trie that is written down by hand: the root's children are at 256 + their label. A unit that is
// given no sense is a value, which no label leads to.
struct Trie {
  static constexpr std::uint32_t kValue = 1u << 31, kHasValue = 1u << 8;
  std::vector<std::uint32_t> units;
  explicit Trie(int n_blocks) : units(static_cast<std::size_t>(256 * n_blocks), kValue) {
    units[0] = 256u << 10;
  }
  // The unit that `label` leads to from children at `base`; its own children are at `next`.
  void put(std::uint32_t base, std::uint32_t label, std::uint32_t next, std::uint32_t flags) {
    units[base ^ label] = ((base ^ label ^ next) << 10) | flags | label;
  }
  std::string charsmap() const {
    const auto size = static_cast<std::uint32_t>(units.size() * sizeof units[0]);
    std::string blob(sizeof size + size, '\0');
    std::memcpy(blob.data(), &size, sizeof size);
    std::memcpy(blob.data() + sizeof size, units.data(), size);
    return blob + std::string("x\0", 2);
  }
};

std::string charsmap_refusal(std::string_view blob) {
  try {
    const Charsmap charsmap(blob);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::corrupt) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

// "a", "aa", …, each of them a key.
Trie nested_keys(int n) {
  Trie trie(n + 2);
  for (std::uint32_t i = 1; i <= static_cast<std::uint32_t>(n); ++i)
    trie.put(256 * i, 'a', 256 * (i + 1), Trie::kHasValue);
  return trie;
}

// What the library would read beyond its bounds or for ever.
TEST(SentencePieceModel, ACharsmapThatTheLibraryCannotReadIsRefused) {
  EXPECT_THAT(charsmap_refusal(std::string_view("\0\0\0\0x\0", 6)), HasSubstr("an empty trie"));

  Trie without_value(3);
  without_value.put(256, 'a', 512, Trie::kHasValue);
  without_value.units[512] = 'b';
  EXPECT_THAT(charsmap_refusal(without_value.charsmap()), HasSubstr("without a value"));

  Trie cycle(2);
  cycle.put(256, 'a', 256, 0);
  EXPECT_THAT(charsmap_refusal(cycle.charsmap()), HasSubstr("more than 128 bytes"));

  EXPECT_THAT(charsmap_refusal(nested_keys(32).charsmap()), HasSubstr("more than 31 keys"));
  const auto match = Charsmap(nested_keys(31).charsmap()).longest("baaa", 1);
  EXPECT_EQ(match.value_or(Charsmap::Match{}).size, 3);
}

// A branch that was looked at from near the root counts where a longer way leads to it, too.
TEST(SentencePieceModel, KeysOfACharsmapThatShareTheirEndsAreMeasuredWhole) {
  Trie trie(202);
  for (std::uint32_t i = 1; i <= 200; ++i) trie.put(256 * i, 'b', 256 * (i + 1), 0);
  trie.put(256, 'a', 256 * 101, 0);
  EXPECT_THAT(charsmap_refusal(trie.charsmap()), HasSubstr("more than 128 bytes"));
}

// "a", "aa", …: the library has room for 64 of those that a text begins with.
TEST(SentencePieceModel, UserDefinedPiecesBeginWithOneAnotherUpTo64Times) {
  std::string model;
  for (int n = 1; n <= 64; ++n) {
    const std::string piece = "\x0A" + std::string(1, static_cast<char>(n)) +
                              std::string(static_cast<std::size_t>(n), 'a') + "\x18\x04";
    model += "\x0A" + std::string(1, static_cast<char>(piece.size())) + piece;
  }
  EXPECT_EQ(check_sentencepiece_model(model, "it").n_pieces, 64);
  const std::string beside("\x0A\x05\x0A\x01z\x18\x04", 7);
  EXPECT_EQ(check_sentencepiece_model(model + beside, "it").n_pieces, 65);
  const std::string above("\x0A\x06\x0A\x02\x61z\x18\x04", 8);
  EXPECT_EQ(check_sentencepiece_model(model + above, "it").n_pieces, 65);
  const std::string one_more =
      std::string("\x0A\x45\x0A\x41", 4) + std::string(65, 'a') + std::string("\x18\x04", 2);
  EXPECT_THAT(refusal(write_model(model + one_more)),
              HasSubstr("more than 64 user-defined pieces"));
}

TEST(SentencePieceModel, AModelCutAnywhereLoadsOrSaysWhy) {
  SINKSCOPE_REQUIRE_SHARED(path, "data/tokenizers/tok512.model");
  const std::string whole = test::read_text_file(path);
  const std::string cut = write_model("");
  for (std::size_t n = 0; n < whole.size(); n += 41) {
    std::ofstream(cut, std::ios::binary | std::ios::trunc) << whole.substr(0, n);
    try {
      open_sentencepiece_tokenizer(cut)->encode("Once upon");
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), HasSubstr("tokenizer.model")) << n;
    }
  }
}

}  // namespace
}  // namespace sinkscope
