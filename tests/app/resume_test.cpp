// SPDX-License-Identifier: GPL-3.0-or-later
// Recordings that end badly, from the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/h5/dataset.h"
#include "core/h5/file.h"
#include "tests/app/cli_run.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kModel = SINKSCOPE_SOURCE_DIR "/sample_data/planted";

// 600 tokens: maps of about 4 MB a layer.
std::string capture(const std::string& flags, int threads = 1) {
  return "sinkscope capture " + kModel + " --tokens $(seq -s, 1 200),$(seq -s, 1 200)," +
         "$(seq -s, 1 200) --record maps --progress none --threads " + std::to_string(threads) +
         " " + flags;
}

// A disk on which the file may not grow beyond 12 MB.
test::CliRun on_a_full_disk(const std::string& folder) {
  return test::shell("ulimit -f 12000; " + capture("-o run.h5"), folder);
}

TEST(FieldCases, FC63_ARecordingOnAFullDiskResumesToTheSameFile) {
  const std::string folder = test::scratch_folder();
  const test::CliRun full = on_a_full_disk(folder);
  EXPECT_EQ(full.code, 5) << full.err;
  EXPECT_THAT(full.err, AllOf(HasSubstr("File too large"), HasSubstr("--resume")));

  const test::CliRun found = test::shell("sinkscope repair run.h5 --json", folder);
  const auto report = nlohmann::json::parse(found.out);
  EXPECT_EQ(report["complete"], false);
  const int whole = report["runs"][0]["whole_layers"];
  EXPECT_GE(whole, 1);
  EXPECT_LT(whole, 4);
  EXPECT_EQ(report["resumable_after"], whole);

  EXPECT_EQ(test::shell(capture("-o run.h5"), folder).code, 2);
  const test::CliRun resumed = test::shell(capture("-o run.h5 --resume"), folder);
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  const test::CliRun undisturbed = test::shell(capture("-o whole.h5"), folder);
  ASSERT_EQ(undisturbed.code, 0) << undisturbed.err;
  const auto said = [](const std::string& text) { return text.substr(0, text.find(", in ")); };
  EXPECT_EQ(said(resumed.out), said(undisturbed.out));
  EXPECT_EQ(test::shell("h5diff run.h5 whole.h5", folder).code, 0);
  EXPECT_EQ(test::shell("ls", folder).out, "run.h5\nwhole.h5\n");
}

TEST(Resume, AnotherThreadCountIsRefusedByName) {
  const std::string folder = test::scratch_folder();
  ASSERT_EQ(on_a_full_disk(folder).code, 5);
  const test::CliRun other = test::shell(capture("-o run.h5 --resume", 2), folder);
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("threads was 1, is 2"));
}

TEST(Resume, WithNothingThereItStartsAndAWholeFileIsLeftAlone) {
  const std::string folder = test::scratch_folder();
  const std::string command =
      "sinkscope capture " + kModel + " --tokens 1,2,3,4,5 --threads 1 -o run.h5 --resume";
  ASSERT_EQ(test::shell(command, folder).code, 0);
  const test::CliRun again = test::shell(command, folder);
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.err, HasSubstr("nothing to resume"));
}

TEST(Resume, AWholeFileOfAnotherTextModelOrRunIsRefusedByField) {
  const std::string folder = test::scratch_folder();
  const auto resume = [&](const std::string& what) {
    return test::shell("sinkscope capture " + what + " --threads 1 -o r.h5 --resume", folder);
  };
  ASSERT_EQ(resume(kModel + " --text 'one text'").code, 0);
  EXPECT_EQ(resume(kModel + " --text 'one text'").code, 0);
  const test::CliRun text = resume(kModel + " --text 'other one'");
  EXPECT_EQ(text.code, 2);
  EXPECT_THAT(text.err, AllOf(HasSubstr("r.h5"), HasSubstr("tokens of run0 was")));
  test::write_file(folder, "p.jsonl", "{\"text\":\"one text\",\"name\":\"fox\"}\n");
  const test::CliRun name = resume(kModel + " --prompts p.jsonl");
  EXPECT_EQ(name.code, 2);
  EXPECT_THAT(name.err, HasSubstr("the name of run0 was \"\", is \"fox\""));
  const test::CliRun maps = resume(kModel + " --text 'one text' --record maps");
  EXPECT_EQ(maps.code, 2);
  EXPECT_THAT(maps.err, HasSubstr("command was"));
  fs::create_directory(folder + "/m");
  for (const char* file : {"config.json", "tokenizer.json"})
    fs::copy_file(kModel + "/" + file, folder + "/m/" + file);
  std::string weights = test::read_file(kModel + "/model.safetensors");
  weights.back() ^= 1;
  test::write_file(folder + "/m", "model.safetensors", weights);
  const test::CliRun model = resume("m --text 'one text'");
  EXPECT_EQ(model.code, 2);
  EXPECT_THAT(model.err, HasSubstr("model was"));
}

// The request that a recording goes on with is the one it began with, in every field.
TEST(Resume, AnotherNameWindowOrTokenInThePartIsRefusedByName) {
  const std::string folder = test::scratch_folder();
  const std::string ids = test::shell("seq -s, 1 200 | tr -d '\\n'", folder).out;
  const auto prompts = [&](const std::string& name) {
    test::write_file(
        folder, "p.jsonl",
        "{\"tokens\":[" + ids + "," + ids + "," + ids + "],\"name\":\"" + name + "\"}\n");
  };
  const auto record = [&](const std::string& flags, const std::string& before = "") {
    return test::shell(before + "sinkscope capture " + kModel +
                           " --prompts p.jsonl --record maps --threads 1 -o run.h5 " + flags,
                       folder);
  };
  prompts("fox");
  ASSERT_EQ(record("", "ulimit -f 12000; ").code, 5);
  EXPECT_EQ(record("--resume --max-tokens 900").code, 2);
  prompts("cat");
  const test::CliRun name = record("--resume");
  EXPECT_EQ(name.code, 2);
  EXPECT_THAT(name.err, HasSubstr("names was [\"fox\"], is [\"cat\"]"));
  prompts("fox");
  {
    const h5::File file = h5::File::open_for_writing(folder + "/run.h5.part");
    const int id = 9;
    h5::Dataset::open_for_writing(file.root(), "run0/input/token_ids", "ids")
        .write({7}, {1}, ElementType::i32, &id);
  }
  const test::CliRun token = record("--resume");
  EXPECT_EQ(token.code, 3);
  EXPECT_THAT(token.err, AllOf(HasSubstr("token_ids"), HasSubstr("9 in place of 8 at position 7")));
}

// Without a state there is nothing to go on from, and the sentence does not say the opposite.
TEST(Resume, WithoutAStateTheSentenceDoesNotContradictItself) {
  const std::string folder = test::scratch_folder();
  ASSERT_EQ(on_a_full_disk(folder).code, 5);
  for (const char* state : {".state", ".state.before"}) fs::remove(folder + "/run.h5.part" + state);
  const test::CliRun run = test::shell(capture("-o run.h5 --resume"), folder);
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.err, AllOf(HasSubstr("no whole state to go on from"), HasSubstr("--force")));
  EXPECT_EQ(run.err.find("--resume goes on"), std::string::npos) << run.err;
}

TEST(Repair, CopiesWhatIsWholeAndTakesTheRestAway) {
  const std::string folder = test::scratch_folder();
  ASSERT_EQ(on_a_full_disk(folder).code, 5);
  const test::CliRun copied = test::shell("sinkscope repair run.h5 -o kept.h5", folder);
  EXPECT_EQ(copied.code, 0) << copied.err;
  EXPECT_THAT(copied.out, HasSubstr("layers are whole"));
  EXPECT_EQ(test::shell("sinkscope sinks kept.h5", folder).code, 0);
  EXPECT_EQ(test::shell("sinkscope repair run.h5 --discard", folder).code, 0);
  EXPECT_EQ(test::shell("ls", folder).out, "kept.h5\n");
  EXPECT_EQ(test::shell("sinkscope repair kept.h5 --discard", folder).code, 0);
  EXPECT_EQ(test::shell("sinkscope repair run.h5", folder).code, 3);
}

TEST(Repair, DiscardsAnUnfinishedFileThatIsNoHdf5) {
  const std::string folder = test::scratch_folder();
  test::write_file(folder, "run.h5.part", "cut off");
  test::write_file(folder, "run.h5.part.state", "x");
  test::write_file(folder, "other.h5", "not ours");
  EXPECT_EQ(test::shell("sinkscope repair run.h5", folder).code, 3);
  EXPECT_EQ(test::shell("sinkscope repair other.h5 --discard", folder).code, 3);
  const test::CliRun gone = test::shell("sinkscope repair run.h5 --discard", folder);
  EXPECT_EQ(gone.code, 0) << gone.err;
  EXPECT_EQ(test::shell("ls", folder).out, "other.h5\n");
}

TEST(Repair, ChecksEveryArrayOfTheRuns) {
  const std::string folder = test::scratch_folder();
  ASSERT_EQ(
      test::shell("sinkscope capture " + kModel + " --tokens 1,2,3,4,5 -o run.h5", folder).code, 0);
  const test::CliRun all = test::shell("sinkscope repair run.h5 --check all", folder);
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_THAT(all.out, HasSubstr("every array can be read"));
  const test::CliRun json = test::shell("sinkscope repair run.h5 --check first --json", folder);
  EXPECT_EQ(nlohmann::json::parse(json.out)["unreadable"], nlohmann::json::array());
  EXPECT_EQ(test::shell("sinkscope repair run.h5 --check some", folder).code, 2);
}

}  // namespace
}  // namespace sinkscope
