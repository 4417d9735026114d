// SPDX-License-Identifier: GPL-3.0-or-later
// Many captures from one manifest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/command_line.h"
#include "app/cli/manifest.h"
#include "core/error.h"
#include "tests/app/cli_run.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using test::cli;
using test::CliRun;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kModel = SINKSCOPE_SOURCE_DIR "/sample_data/planted";

std::vector<BatchEntry> entries_of(const std::string& manifest, const std::string& folder = "out") {
  std::istringstream in(manifest);
  std::ostringstream out, err;
  Console console{in, out, err};
  return read_manifest("-", folder, console);
}

std::string refusal(const std::string& manifest) {
  try {
    entries_of(manifest);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    return error.what();
  }
  return "not refused";
}

TEST(Manifest, ListsMultiplyAndTheLastVariesFastest) {
  const auto entries = entries_of(R"({
    "models": ["org/a", {"model": "dir/b.gguf", "dtype": "bfloat16"}],
    "prompts": [{"tokens": [1, 2, 3], "name": "ids"}, "plain text"],
    "options": [{"record": ["stats", "logits"], "name": "s"}, {"record": "maps", "layers": [0, 2]},
                {"record": "stream", "chat": true}],
    "top-k": 5, "bos": "never", "output": "{model}/{n}-{prompt}-{options}.h5"})");
  ASSERT_EQ(entries.size(), 12u);
  EXPECT_EQ(entries[1].flags.output, "out/a/0001-ids-1.h5");
  EXPECT_EQ(entries[11].flags.output, "out/b/0011-1-2.h5");
  EXPECT_EQ(entries[11].where, "-, models[1], prompts[1], options[2]");
  EXPECT_EQ(entries[0].flags.prompt.tokens, "1,2,3");
  EXPECT_EQ(entries[0].flags.record.record, "stats,logits");
  EXPECT_EQ(entries[0].flags.record.top_k, "5");
  EXPECT_EQ(entries[0].flags.prompt.bos, "never");
  EXPECT_EQ(entries[4].flags.record.layers, "0,2");
  EXPECT_EQ(entries[4].flags.prompt.text, "plain text");
  EXPECT_TRUE(entries[5].flags.prompt.chat);
  EXPECT_FALSE(entries[5].flags.run.dtype.has_value());
  EXPECT_EQ(entries[6].flags.model, "dir/b.gguf");
  EXPECT_EQ(entries[6].flags.run.dtype, "bfloat16");
}

TEST(Manifest, ANameLeadsToNoOtherFolder) {
  const auto entries = entries_of(
      R"({"model": "m", "prompts": [{"text": "a", "name": ".."}, {"text": "a", "name": "."},
          {"text": "a", "name": "a/../.."}, {"text": "a", "name": ".x"}],
          "output": "{prompt}/r.h5"})");
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].flags.output, "out/--/r.h5");
  EXPECT_EQ(entries[1].flags.output, "out/-/r.h5");
  EXPECT_EQ(entries[2].flags.output, "out/a-..-../r.h5");
  EXPECT_EQ(entries[3].flags.output, "out/.x/r.h5");
}

TEST(Manifest, LinesAndListsAreTheSame) {
  const std::string a = R"({"model":"a","text":"x"})", b = R"({"model":"b/","prompts":"f.jsonl"})";
  for (const std::string& manifest : {a + "\n\n" + b + "\n", "[" + a + ",\n" + b + "]"}) {
    const auto entries = entries_of(manifest, "");
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_EQ(entries[0].flags.output, "0000-a.h5");
    EXPECT_EQ(entries[1].flags.output, "0001-b.h5");
    EXPECT_EQ(entries[1].flags.prompt.prompts, "f.jsonl");
  }
}

TEST(Manifest, WhatIsWrongIsNamedByEntryAndField) {
  const auto in_second = [](const std::string& fields) {
    return refusal("{\"model\":\"a\"}\n{" + fields + "}\n");
  };
  EXPECT_THAT(in_second(R"("text":"x")"),
              AllOf(HasSubstr("-:2: model: "), HasSubstr("found none")));
  EXPECT_THAT(in_second(R"("model":"a","layer":"1")"),
              AllOf(HasSubstr("-:2: layer: unknown field"), HasSubstr("layers")));
  EXPECT_THAT(in_second(R"("model":"a","force":true)"), HasSubstr("force: unknown field"));
  EXPECT_THAT(in_second(R"("model":"a","text":{})"), HasSubstr("-:2: text: expected"));
  EXPECT_THAT(in_second(R"("model":"a","chat":"yes")"), HasSubstr("chat: expected true or false"));
  EXPECT_THAT(in_second(R"("model":"a","tokens":[1,2.5])"), HasSubstr("tokens: expected"));
  EXPECT_THAT(in_second(R"("model":"a","tokens":"1,x")"),
              HasSubstr("-:2: --tokens, position 1: expected"));
  EXPECT_THAT(in_second(R"("model":"a","threads":"many")"), HasSubstr("-:2: --threads: expected"));
  EXPECT_THAT(in_second(R"("model":"a","text":"x","tokens":[1])"), HasSubstr("found several"));
  EXPECT_THAT(in_second(R"("model":"a","text":"x","text":"y")"), HasSubstr("-:2"));
  EXPECT_THAT(in_second(R"("model":"a","models":[])"), HasSubstr("models: expected a list"));
  EXPECT_THAT(in_second(R"("models":["b",7])"), HasSubstr("models[1]: expected an object"));
  EXPECT_THAT(in_second(R"("model":"a","text-file":"-")"), HasSubstr("standard input"));
  EXPECT_THAT(in_second(R"("model":"a","output":"{name}.h5")"), HasSubstr("found '{name}'"));
  EXPECT_THAT(in_second(R"("model":"a")"), HasSubstr("not refused"));
  EXPECT_THAT(in_second(R"("model":)"), HasSubstr("-:2"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("-: entry 0: expected an object"));
  EXPECT_THAT(refusal("[]"), HasSubstr("holds no entry"));
  EXPECT_THAT(refusal("{\"model\":"), HasSubstr("-: "));
}

TEST(Manifest, TwoEntriesNeverWriteOneFile) {
  EXPECT_THAT(refusal("{\"model\":\"a\",\"output\":\"x.h5\"}\n{\"model\":\"b\",\"output\":"
                      "\"./sub/../x.h5\"}\n"),
              AllOf(HasSubstr("-:2: output: "), HasSubstr("that of -:1")));
  EXPECT_THAT(refusal("{\"model\":\"a\",\"output\":\"x.h5\"}\n{\"model\":\"b\",\"output\":"
                      "\"x.h5.part\"}\n"),
              HasSubstr("-:2: output"));
  // Slashes in names stay inside the folder.
  EXPECT_EQ(entries_of(R"({"models":[{"model":"a","name":"../../b"}],"output":"{model}.h5"})")
                .front()
                .flags.output,
            "out/..-..-b.h5");
}

// Fields are the long flags of capture, all of them but what is the batch's own.
TEST(Manifest, EveryFlagOfCaptureIsAField) {
  const std::string help = cli({"capture", "--help"}).out;
  const std::vector<std::string> own = {"--output",  "--force",   "--resume", "--dry-run",
                                        "--json",    "--csv",     "--help",   "--quiet",
                                        "--verbose", "--progress"};
  CaptureFlags flags;
  CommandLine command("batch", "");
  add_request_flags(command, flags);
  int n = 0;
  const std::string begin = "\n  --";  // of a line that explains a flag
  for (std::size_t at = 0; (at = help.find(begin, at)) != std::string::npos;) {
    at += begin.size() - 2;
    const std::size_t end = help.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at);
    const std::string name = help.substr(at, end - at);
    at = end;
    if (std::find(own.begin(), own.end(), name) != own.end()) continue;
    EXPECT_NE(command.kind_of(name), CommandLine::Kind::none) << name;
    ++n;
  }
  EXPECT_GT(n, 20);
}

TEST(Shard, PartsAreDisjointAndWhole) {
  for (int number = 0; number < 100; ++number) {
    int owners = 0;
    for (const char* text : {"0/3", "1/3", "2/3"}) owners += parse_shard(text).has(number);
    EXPECT_EQ(owners, 1);
  }
  for (const char* text : {"3/3", "1", "-1/3", "1/0", "1/2/3", "a/3"})
    EXPECT_THROW(parse_shard(text), Error) << text;
}

TEST(BatchVerb, ABadManifestIsOneLineAndExit2BeforeAnythingIsDone) {
  const std::string folder = test::scratch_folder();
  test::write_file(
      folder, "m.jsonl",
      "{\"model\":\"" + kModel + "\"}\n{\"model\":\"x\",\"record\":7,\"rows\":\"a\"}\n");
  const CliRun run = cli({"batch", folder + "/m.jsonl", "-o", folder + "/out"});
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(test::n_lines(run.err), 1) << run.err;
  EXPECT_THAT(run.err, HasSubstr("m.jsonl:2: --rows"));
  EXPECT_FALSE(fs::exists(folder + "/out"));
  EXPECT_EQ(cli({"batch", folder + "/none.json"}).code, 3);
}

TEST(BatchVerb, AnOutputIsNeitherAnInputNorNamedLikeAnUnfinishedFile) {
  const std::string folder = test::scratch_folder();
  test::write_file(folder, "text.txt", "hello");
  const std::string manifest = folder + "/m.json";
  const auto run = [&](const std::string& output) {
    test::write_file(folder, "m.json",
                     R"({"model": ")" + kModel + R"(", "text-file": ")" + folder +
                         R"(/text.txt", "output": ")" + output + R"("})");
    return cli({"batch", manifest, "-o", folder, "--force"});
  };
  for (const char* name : {"text.txt", "m.json"}) {
    const CliRun refused = run(name);
    EXPECT_EQ(refused.code, 2) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("is the input itself"));
  }
  EXPECT_EQ(test::read_file(folder + "/text.txt"), "hello");
  for (const char* name : {"a.h5.part", "a.h5.part.state", "a.h5.part.redo", "a.h5.part.tmp"}) {
    const CliRun refused = run(name);
    EXPECT_EQ(refused.code, 2) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("unfinished file"));
  }
}

TEST(BatchVerb, ExistingFilesAreRefusedBeforeAnythingIsDone) {
  const std::string folder = test::scratch_folder();
  test::write_file(folder, "m.jsonl",
                   "{\"model\":\"" + kModel + "\",\"output\":\"a.h5\"}\n{\"model\":\"" + kModel +
                       "\",\"output\":\"b.h5\"}\n");
  test::write_file(folder, "b.h5", "mine");
  const CliRun run = cli({"batch", folder + "/m.jsonl", "-o", folder});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("m.jsonl:2"), HasSubstr("--force")));
  EXPECT_FALSE(fs::exists(folder + "/a.h5"));
  EXPECT_EQ(test::read_file(folder + "/b.h5"), "mine");
}

#ifdef SINKSCOPE_WITH_TORCH

// 100 entries of different lengths, of which entries 7, 50 and 93 cannot be recorded.
std::string hundred_entries() {
  std::string manifest;
  for (int i = 0; i < 100; ++i) {
    nlohmann::json entry = {{"model", kModel}, {"record", i % 5 == 0 ? "maps" : "stats"}};
    for (int t = 0; t < 5 + i % 13; ++t) entry["tokens"].push_back(1 + (i * 7 + t * 3) % 200);
    if (i == 7) entry["model"] = "there/is/none";
    if (i == 50) entry["tokens"].push_back(1000000);
    if (i == 93) entry["layers"] = "99";
    manifest += entry.dump() + "\n";
  }
  return manifest;
}

class HundredEntries : public ::testing::Test {
 protected:
  void SetUp() override { test::write_file(folder_, "runs.jsonl", hundred_entries()); }

  CliRun batch(const std::string& more) const {
    return test::shell("sinkscope batch runs.jsonl --threads 1 -q " + more, folder_);
  }
  // What `out` has is what `expected` has, file by file.
  void expect_same_files(const std::string& expected, const std::string& out) const {
    const CliRun run =
        test::shell("ls " + expected + " >a; ls " + out + " >b; cmp a b || exit 1; for f in " +
                        expected + "/*.h5; do cmp -s $f " + out + "/${f##*/} || h5diff $f " + out +
                        "/${f##*/} || exit 2; done",
                    folder_);
    EXPECT_EQ(run.code, 0) << run.out << run.err;
  }

  const std::string folder_ = test::scratch_folder();
};

TEST_F(HundredEntries, ThreeBrokenOnesAreNamedAndTheOthersAreThere) {
  const CliRun run = batch("-o out --json");
  EXPECT_EQ(run.code, 1);
  EXPECT_EQ(test::n_lines(run.err), 3) << run.err;
  for (const char* name : {"runs.jsonl:8: there/is/none", "runs.jsonl:51: ", "runs.jsonl:94: "})
    EXPECT_THAT(run.err, HasSubstr(name));
  EXPECT_THAT(run.err, AllOf(HasSubstr("1000000"), HasSubstr("99")));
  EXPECT_EQ(test::shell("ls out/*.h5 | wc -l; ls out | wc -l", folder_).out, "97\n97\n");

  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["recorded"], 97);
  EXPECT_EQ(json["failed"].size(), 3u);
  EXPECT_EQ(json["failed"][1]["entry"], 50);
  EXPECT_EQ(json["failed"][1]["exit_code"], 2);
  ASSERT_EQ(json["runs"].size(), 97u);
  const std::string help = cli({"batch", "--help"}).out;
  for (const auto& [key, value] : json.items()) EXPECT_THAT(help, HasSubstr(key)) << key;

  // The numbers are those of `sinks`, the file that of `capture`.
  const auto row = json["runs"][10];
  EXPECT_EQ(row["entry"], 11);
  const auto sinks = nlohmann::json::parse(
      test::shell("sinkscope sinks out/0011-planted.h5 --json", folder_).out)["runs"][0];
  EXPECT_EQ(row["attention.gu.sink_ratio"], sinks["attention"]["gu"]["sink_ratio"]);
  EXPECT_EQ(row["tokens"], sinks["tokens"]);
  EXPECT_EQ(row["sink_dims"], sinks["residual"]["sink_dims"]);
  std::string ids;
  for (int t = 0; t < 5 + 10 % 13; ++t)
    ids += (t > 0 ? "," : "") + std::to_string(1 + (70 + t * 3) % 200);
  ASSERT_EQ(test::shell("sinkscope capture " + kModel + " --tokens " + ids +
                            " --record maps --threads 1 -o alone.h5",
                        folder_)
                .code,
            0);
  EXPECT_EQ(test::shell("h5diff alone.h5 out/0010-planted.h5", folder_).code, 0);

  // Again with --resume: nothing is recorded, the table is the same.
  const auto before = fs::last_write_time(folder_ + "/out/0000-planted.h5");
  const CliRun again = batch("-o out --json --resume");
  EXPECT_EQ(again.code, 1);
  const auto second = nlohmann::json::parse(again.out);
  EXPECT_EQ(second["whole_already"], 97);
  EXPECT_EQ(second["recorded"], 0);
  EXPECT_EQ(second["runs"], json["runs"]);
  EXPECT_EQ(fs::last_write_time(folder_ + "/out/0000-planted.h5"), before);
  const CliRun csv = batch("-o out --csv --resume");
  EXPECT_EQ(test::n_lines(csv.out), 98);
}

TEST_F(HundredEntries, KilledInTheMiddleAndResumedAndInThreeShardsItIsTheSame) {
  ASSERT_EQ(batch("-o whole").code, 1);
  const CliRun killed = test::shell(
      "sinkscope batch runs.jsonl --threads 1 -q -o killed & pid=$!\n"
      "while [ $(ls killed 2>/dev/null | wc -l) -lt 40 ]; do kill -0 $pid || exit 3; sleep 0.01; "
      "done\nkill -KILL $pid; wait $pid; ls killed/*.h5 | wc -l",
      folder_);
  ASSERT_GE(std::stoi(killed.out), 30) << killed.err;
  ASSERT_LT(std::stoi(killed.out), 97) << killed.err;
  EXPECT_EQ(batch("-o killed").code, 2);
  const CliRun resumed = batch("-o killed --resume");
  EXPECT_EQ(resumed.code, 1) << resumed.err;
  EXPECT_EQ(test::n_lines(resumed.err), 3) << resumed.err;
  expect_same_files("whole", "killed");

  int recorded = 0, failed = 0;
  for (const char* shard : {"0/3", "1/3", "2/3"}) {
    const CliRun part = batch("-o shards --json --shard " + std::string(shard));
    EXPECT_EQ(part.code, part.err.empty() ? 0 : 1) << part.err;
    const auto json = nlohmann::json::parse(part.out);
    EXPECT_EQ(json["manifest_entries"], 100);
    EXPECT_EQ(json["entries"],
              json["recorded"].get<int>() + static_cast<int>(json["failed"].size()));
    recorded += json["recorded"].get<int>();
    failed += static_cast<int>(json["failed"].size());
  }
  EXPECT_EQ(recorded, 97);
  EXPECT_EQ(failed, 3);
  expect_same_files("whole", "shards");
}

TEST_F(HundredEntries, InterruptedItSaysSoAndExits130) {
  const CliRun run = test::shell(
      "sinkscope batch runs.jsonl --threads 1 -o out --json & pid=$!\n"
      "while [ $(ls out/*.h5 2>/dev/null | wc -l) -lt 10 ]; do kill -0 $pid || exit 3; sleep 0.01; "
      "done\nkill -TERM $pid; wait $pid",
      folder_);
  EXPECT_EQ(run.code, 130) << run.err;
  EXPECT_THAT(run.err, HasSubstr("--resume goes on"));
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_GE(json["recorded"].get<int>(), 10);  // a file has its name when it is whole
  EXPECT_LT(json["recorded"].get<int>(), 97);
  EXPECT_EQ(json["runs"].size(), json["recorded"].get<std::size_t>());
}

TEST(BatchVerb, AFileMadeByOtherOptionsIsNotTakenForTheEntrys) {
  const std::string folder = test::scratch_folder();
  const auto manifest = [&](const std::string& record) {
    return test::write_file(folder, "m.json",
                            "{\"model\":\"" + kModel +
                                "\",\"tokens\":[1,2,3],"
                                "\"record\":\"" +
                                record + "\",\"output\":\"a.h5\"}");
  };
  ASSERT_EQ(cli({"batch", manifest("stats"), "-o", folder, "--threads", "1"}).code, 0);
  const CliRun run = cli({"batch", manifest("maps"), "-o", folder, "--threads", "1", "--resume"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("--record stats"), HasSubstr("--record maps")));
  EXPECT_EQ(cli({"batch", manifest("maps"), "-o", folder, "--threads", "1", "--force"}).code, 0);
}

// Files are found by their names, which say only the entry's number.
TEST(BatchVerb, AFileOfAnotherTextOrModelIsNotTakenForTheEntrys) {
  const std::string folder = test::scratch_folder();
  const auto resume = [&](const std::string& prompts) {
    test::write_file(folder, "m.json",
                     "{\"model\":\"" + kModel + "\",\"prompts\":" + prompts + "}");
    return test::shell("sinkscope batch m.json -o out --threads 1 --resume --json", folder);
  };
  ASSERT_EQ(resume(R"(["alpha beta", "gamma delta"])").code, 0);
  EXPECT_EQ(resume(R"(["alpha beta", "gamma delta"])").code, 0);
  const CliRun moved = resume(R"(["new one", "alpha beta", "gamma delta"])");
  EXPECT_EQ(moved.code, 1);
  const auto json = nlohmann::json::parse(moved.out);
  EXPECT_EQ(json["whole_already"], 0);
  EXPECT_EQ(json["recorded"], 1);
  ASSERT_EQ(json["failed"].size(), 2u);
  EXPECT_EQ(json["failed"][0]["exit_code"], 2);
  EXPECT_THAT(json["failed"][1]["error"].get<std::string>(),
              AllOf(HasSubstr("0001-planted.h5"), HasSubstr("tokens of run0 was")));

  fs::copy(kModel, folder + "/planted");
  std::string weights = test::read_file(kModel + "/model.safetensors");
  weights.back() ^= 1;
  test::write_file(folder + "/planted", "model.safetensors", weights);
  test::write_file(folder, "m.json", "{\"model\":\"planted\",\"prompts\":[\"alpha beta\"]}");
  const CliRun model = test::shell("sinkscope batch m.json -o out --threads 1 --resume", folder);
  EXPECT_EQ(model.code, 1);
  EXPECT_THAT(model.err, HasSubstr("model was"));
}

TEST(BatchVerb, WhatIsMissingIsToldFirstAndWhatIsWholeNeedsItNoMore) {
  const std::string folder = test::scratch_folder();
  test::write_file(folder, "text.txt", "hello");
  fs::create_directory_symlink(kModel, folder + "/model");
  test::write_file(folder, "m.jsonl",
                   "{\"model\":\"model\",\"text-file\":\"text.txt\",\"output\":\"a.h5\"}\n"
                   "{\"model\":\"model\",\"text-file\":\"none.txt\",\"output\":\"b.h5\"}\n");
  const CliRun run = test::shell("sinkscope batch m.jsonl --threads 1", folder);
  EXPECT_EQ(run.code, 1);
  EXPECT_EQ(run.err.find("warning: m.jsonl:2: none.txt: no such file"), 0u) << run.err;
  EXPECT_TRUE(fs::exists(folder + "/a.h5"));
  fs::remove(folder + "/model");
  fs::remove(folder + "/text.txt");
  const CliRun again =
      test::shell("sinkscope batch m.jsonl --threads 1 --resume --json -q", folder);
  EXPECT_EQ(again.code, 1);
  const auto json = nlohmann::json::parse(again.out);
  EXPECT_EQ(json["whole_already"], 1);
  // What could not be compared with its entry any more is counted, and named as such.
  ASSERT_EQ(json["unchecked"].size(), 1u);
  EXPECT_EQ(json["unchecked"][0]["entry"], 0);
  EXPECT_EQ(json["unchecked"][0]["file"], "a.h5");
  EXPECT_THAT(json["unchecked"][0]["reason"].get<std::string>(), HasSubstr("model"));
  ASSERT_EQ(json["failed"].size(), 1u);
  EXPECT_EQ(json["failed"][0]["entry"], 1);
}

TEST(BatchVerb, ProgressSaysWhichEntryIsAtWork) {
  const std::string folder = test::scratch_folder();
  const std::string manifest = test::write_file(
      folder, "m.json",
      "{\"model\":\"" + kModel + "\",\"prompts\":[\"one\",\"two\"],\"output\":\"{prompt}.h5\"}");
  const CliRun run = test::shell(
      "sinkscope batch m.json --threads 1 --progress json -o out 2>&1 >/dev/null", folder);
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, AllOf(HasSubstr("1 of 2 recorded: out/0.h5"),
                             HasSubstr("2 of 2 recorded: out/1.h5")));
}

#endif  // SINKSCOPE_WITH_TORCH

}  // namespace
}  // namespace sinkscope
