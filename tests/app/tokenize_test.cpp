// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/cli/run_cli.h"
#include "tests/app/cli_run.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using test::cli;
using test::CliRun;
using ::testing::HasSubstr;

const std::string kPlanted = std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted";

TEST(Tokenize, IdsPiecesAndBos) {
  const CliRun run = cli({"tokenize", kPlanted, "--text", "Hi", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::ordered_json::parse(run.out);
  EXPECT_EQ(json.items().begin().key(), "schema");
  EXPECT_EQ(json["ids"], nlohmann::json({256, 'H', 'i'}));
  EXPECT_EQ(json["pieces"], nlohmann::json({"<s>", "H", "i"}));
  EXPECT_EQ(json["bos_positions"], nlohmann::json({0}));
  const std::string help = cli({"tokenize", "--help"}).out;
  for (const auto& [key, value] : json.items()) EXPECT_THAT(help, HasSubstr(key)) << key;
}

TEST(Tokenize, CsvIsATokenARow) {
  const CliRun run = cli({"tokenize", kPlanted, "--text", "H,", "--csv"});
  EXPECT_EQ(run.out, "position,id,label,piece\n0,256,<s>,<s>\n1,72,H,H\n2,44,\",\",\",\"\n");
  EXPECT_EQ(cli({"tokenize", kPlanted, "--text", "H", "--csv", "--json"}).code, kExitUsage);
}

TEST(Tokenize, ReadsAFileAndStandardInput) {
  const std::string file = test::write_file(test::scratch_folder(), "t.txt", "ab");
  EXPECT_EQ(cli({"tokenize", kPlanted, "--text-file", file, "--ids"}).out, "256 97 98\n");
  EXPECT_EQ(cli({"tokenize", kPlanted, "--text-file", "-", "--ids"}, "ab").out, "256 97 98\n");
  EXPECT_EQ(cli({"tokenize", kPlanted, "--text-file", "no/file"}).code, kExitCorrupt);
}

TEST(Tokenize, ATextThatCannotBeReadIsNamedWithTheReason) {
  const std::string folder = test::scratch_folder();
  const auto refused = [&](const std::string& file) {
    return cli({"tokenize", kPlanted, "--text-file", file});
  };
  // A device has no end.
  EXPECT_EQ(refused("/dev/zero").code, kExitUsage);
  EXPECT_THAT(refused("/dev/zero").err, HasSubstr("/dev/zero: expected a file, found a device"));
  const std::string huge = test::write_file(folder, "huge.txt", "");
  std::filesystem::resize_file(huge, (std::uintmax_t{256} << 20) + 1);
  EXPECT_EQ(refused(huge).code, kExitUsage);
  EXPECT_THAT(refused(huge).err, HasSubstr("huge.txt: expected a text of at most 256 MiB"));
  std::filesystem::create_symlink("loop", folder + "/loop");
  EXPECT_EQ(refused(folder + "/loop").code, kExitIo);
  EXPECT_THAT(refused(folder + "/loop").err, HasSubstr("symbolic links"));
  EXPECT_EQ(cli({"batch", folder + "/loop"}).code, kExitIo);
  const std::string latin = test::write_file(folder, "latin.txt",
                                             "ab\xe4"
                                             "c");
  EXPECT_EQ(refused(latin).code, kExitUsage);
  EXPECT_THAT(refused(latin).err, HasSubstr("latin.txt: text is not UTF-8: byte 2 is 0xE4"));
  EXPECT_THAT(cli({"tokenize", kPlanted, "--text-file", "-"}, "\xff").err,
              HasSubstr("standard input: text is not UTF-8"));
}

TEST(Tokenize, WritesAFileOnceOnly) {
  const std::string target = test::scratch_folder() + "/ids.txt";
  const std::vector<std::string> args = {"tokenize", kPlanted, "--text", "ab",
                                         "--ids",    "-o",     target};
  EXPECT_EQ(cli(args).code, 0);
  EXPECT_EQ(test::read_file(target), "256 97 98\n");
  EXPECT_EQ(cli(args).code, kExitUsage);
}

TEST(Tokenize, TextThatIsNotUtf8IsRefused) {
  const CliRun run = cli({"tokenize", kPlanted, "--text", "a\xff"});
  EXPECT_EQ(run.code, kExitUsage);
  EXPECT_EQ(test::n_lines(run.err), 1);
}

// Every golden text of llama.cpp, [CLS] and [SEP] left out, from the command line.
TEST(Tokenize, NoSpecialIsTheTextAlone) {
  SINKSCOPE_REQUIRE_SHARED(bge, "data/tokenizers/ggml-vocab-bert-bge.gguf");
  const std::string stem = bge.substr(0, bge.size() - 5);
  const std::string folder = test::scratch_folder();
  std::istringstream ids(test::read_file(stem + ".out"));
  std::string inputs = test::read_file(stem + ".inp");
  const std::string mark = "\n__ggml_vocab_test__\n";
  int n = 0;
  for (std::string line; std::getline(ids, line); ++n) {
    const std::size_t end = inputs.find(mark);
    const std::string file = test::write_file(folder, "t.txt", inputs.substr(0, end));
    inputs.erase(0, end == std::string::npos ? end : end + mark.size());
    std::istringstream expected(line),
        found(cli({"tokenize", bge, "--text-file", file, "--no-special", "--ids"}).out);
    const std::vector<int> want(std::istream_iterator<int>(expected), {});
    EXPECT_EQ(std::vector<int>(std::istream_iterator<int>(found), {}), want) << "text " << n;
  }
  EXPECT_EQ(n, 46);  // the 47th text is empty
  const std::string plain =
      cli({"tokenize", kPlanted, "--text", "a<s>", "--no-special", "--ids"}).out;
  EXPECT_EQ(plain, "97 60 115 62\n");
  EXPECT_EQ(cli({"tokenize", kPlanted, "--text", "a<s>", "--ids"}).out, "256 97 256\n");
  for (const char* beside : {"--bos=always", "--chat"}) {
    const CliRun run = cli({"tokenize", kPlanted, "--text", "a", "--no-special", beside});
    EXPECT_EQ(run.code, kExitUsage) << beside;
    EXPECT_THAT(run.err, HasSubstr("--no-special")) << beside;
  }
}

TEST(Tokenize, APreTokenizerIsForGgufFilesAndSaysSo) {
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"tokenize", kPlanted, "--text", "a", "--pre-tokenizer", "qwen2"},
           {"capture", kPlanted, "--tokens", "1", "--dry-run", "--pre-tokenizer", "qwen2"}}) {
    const CliRun run = cli(args);
    EXPECT_EQ(run.code, kExitUsage) << args.front();
    EXPECT_THAT(run.err, HasSubstr("--pre-tokenizer is for GGUF files; "));
    EXPECT_THAT(run.err, HasSubstr("planted/tokenizer.json says how it cuts text"));
  }
}

TEST(Tokenize, ATokenizerThatCannotBeReadIsNamed) {
  const std::string file =
      test::write_file(test::scratch_folder(), "tokenizer.json", R"({"model":{"type":"Magic"}})");
  const CliRun run = cli({"tokenize", file, "--text", "a"});
  EXPECT_NE(run.code, 0);
  EXPECT_THAT(run.err, HasSubstr(file));
  EXPECT_EQ(test::n_lines(run.err), 1) << run.err;
}

TEST(Tokenize, NeedsNoTensors) {
  SINKSCOPE_REQUIRE_SHARED(vocabulary, "data/tokenizers/ggml-vocab-gpt-2.gguf");
  const CliRun run = cli({"tokenize", vocabulary, "--text", "Hello world", "--ids"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, "15496 995\n");
}

TEST(Tokenize, AModelWithoutATokenizerIsNamed) {
  SINKSCOPE_REQUIRE_SHARED(model, "oracles/llama");
  const CliRun run = cli({"tokenize", model, "--text", "a"});
  EXPECT_THAT(run.code, ::testing::AnyOf(kExitCorrupt, kExitUnsupported));
  EXPECT_EQ(test::n_lines(run.err), 1) << run.err;
}

TEST(FieldCases, FC22_TwoBosAreWarnedOf) {
  const CliRun run = cli({"tokenize", kPlanted, "--text", "<s>ab", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("2 BOS"));
  EXPECT_EQ(nlohmann::json::parse(run.out)["bos_positions"], nlohmann::json({0, 1}));
  const CliRun never = cli({"tokenize", kPlanted, "--text", "<s>ab", "--bos", "never", "--json"});
  EXPECT_EQ(never.err, "");
  EXPECT_EQ(nlohmann::json::parse(never.out)["bos_positions"], nlohmann::json({0}));
}

TEST(Tokenize, AQuietRunKeepsWarningsBack) {
  const CliRun run = cli({"tokenize", kPlanted, "--text", "<s>ab", "-q"});
  EXPECT_EQ(run.err, "");
}

}  // namespace
}  // namespace sinkscope
