// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/run_cli.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "app/cli/verbs.h"
#include "tests/app/cli_run.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using test::cli;
using test::CliRun;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(RunCli, HelpListsEveryVerbAndTheExitCodes) {
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{}, {"--help"}, {"-h"}, {"-q", "--help"}}) {
    const CliRun run = cli(args);
    EXPECT_EQ(run.code, 0);
    for (const Verb& verb : verbs()) EXPECT_THAT(run.out, HasSubstr(verb.name));
    EXPECT_THAT(run.out, HasSubstr("130 canceled"));
    EXPECT_EQ(run.err, "");
  }
}

TEST(RunCli, VersionIsOneLine) {
  const CliRun run = cli({"--version"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out, StartsWith("sinkscope "));
  EXPECT_EQ(test::n_lines(run.out), 1);
}

TEST(RunCli, EveryVerbExplainsItselfAndItsJson) {
  for (const Verb& verb : verbs()) {
    const CliRun run = cli({verb.name, "--help"});
    EXPECT_EQ(run.code, 0) << verb.name;
    EXPECT_THAT(run.out, HasSubstr(std::string("sinkscope ") + verb.name));
    if (std::string(verb.name) == "figure") continue;  // draws; its numbers are the CSV
    if (std::string(verb.name) == "view") continue;    // prints no numbers
    EXPECT_THAT(run.out, HasSubstr(std::string("sinkscope.") + verb.name + "/1")) << verb.name;
    EXPECT_THAT(run.out, HasSubstr("conventions")) << verb.name;
  }
}

TEST(RunCli, AnUnknownWordIsAUsageErrorThatListsTheVerbs) {
  const CliRun run = cli({"frobnicate"});
  EXPECT_EQ(run.code, kExitUsage);
  EXPECT_EQ(test::n_lines(run.err), 1);
  EXPECT_THAT(run.err, HasSubstr("frobnicate"));
  for (const Verb& verb : verbs()) EXPECT_THAT(run.err, HasSubstr(verb.name));
  EXPECT_EQ(run.out, "");
}

TEST(RunCli, VerbsThatDoNotExistYetAreUnknownWords) {
  for (const char* word : {"batch", "probe", "figure", "train"})
    EXPECT_EQ(cli({word}).code, kExitUsage) << word;
}

TEST(RunCli, ViewWithoutADisplayIsUnsupported) {
  // Only main() opens the window, and only where there is a display; who comes here has none.
  const CliRun run = cli({"view", "run.h5"});
  EXPECT_EQ(run.code, kExitUnsupported);
  EXPECT_EQ(test::n_lines(run.err), 1);
  EXPECT_EQ(run.out, "");
}

TEST(RunCli, WrongUsageIsOneLineAndExit2) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"info"},
                                             {"info", "a", "b"},
                                             {"info", "a", "--nonsense"},
                                             {"info", "a", "--json", "--csv"},
                                             {"--nonsense"},
                                             {"tokenize", "a"},
                                             {"tokenize", "a", "--text", "x", "--text-file", "y"},
                                             {"capture", "a"},
                                             {"capture", "a", "-o"},
                                             {"capture", "a", "-o", "x.h5", "--layers", "three"},
                                             {"capture", "a", "-o", "x.h5", "--progress", "dots"},
                                             {"sinks", "a", "--json", "--csv"},
                                             {"sinks", "a", "--epsilon", "2"},
                                             {"sinks", "a", "--at", "everywhere"}}) {
    const CliRun run = cli(args);
    std::string line;
    for (const std::string& arg : args) line += arg + " ";
    EXPECT_EQ(run.code, kExitUsage) << line << run.err;
    EXPECT_EQ(test::n_lines(run.err), 1) << line << run.err;
    EXPECT_THAT(run.err, StartsWith("sinkscope: ")) << line;
    EXPECT_EQ(run.out, "") << line;
  }
}

TEST(RunCli, AMissingInputIsExit3AndNamed) {
  for (const char* verb : {"info", "norms", "dump", "sinks"}) {
    std::vector<std::string> args = {verb, "no/such/thing"};
    if (std::string(verb) == "dump") args.push_back("hook_resid_post");
    const CliRun run = cli(args);
    EXPECT_EQ(run.code, kExitCorrupt) << verb << run.err;
    EXPECT_EQ(test::n_lines(run.err), 1) << verb;
    EXPECT_THAT(run.err, HasSubstr("no/such/thing")) << verb;
  }
}

// Nothing waits for a writer, and a pipe is what any unreadable model is.
TEST(RunCli, APipeInPlaceOfAModelIsExit3) {
  const std::string folder = test::scratch_folder();
  for (const char* command : {"info pipe", "norms pipe", "sinks pipe", "tokenize pipe --text a",
                              "capture pipe --dry-run", "capture pipe -o x.h5"}) {
    const CliRun run = test::shell(
        std::string("test -p pipe || mkfifo pipe; timeout 20 sinkscope ") + command, folder);
    EXPECT_EQ(run.code, kExitCorrupt) << command << "\n" << run.err;
    EXPECT_THAT(run.err, HasSubstr("pipe: expected a model")) << command;
  }
}

TEST(RunCli, AFileThatIsNeitherModelNorCaptureIsRefused) {
  const std::string path = test::write_file(test::scratch_folder(), "notes.txt", "just text\n");
  for (const char* verb : {"info", "norms", "sinks"}) {
    const CliRun run = cli({verb, path});
    EXPECT_THAT(run.code, ::testing::AnyOf(kExitCorrupt, kExitUnsupported)) << run.err;
    EXPECT_EQ(test::n_lines(run.err), 1) << run.err;
    EXPECT_THAT(run.err, HasSubstr("notes.txt"));
  }
  EXPECT_EQ(cli({"dump", path, "x"}).code, kExitCorrupt);
}

TEST(RunCli, AFirstArgumentEqualToAVerbIsTheVerb) {
  // A folder called info is not opened: the verb asks for its MODEL.
  const CliRun run = cli({"info"});
  EXPECT_EQ(run.code, kExitUsage);
  EXPECT_THAT(run.err, HasSubstr("MODEL"));
}

TEST(OneLine, LineBreaksAndControlCharactersDoNotReachTheTerminal) {
  EXPECT_EQ(one_line("a\nb\r\n"), "a b");
  EXPECT_EQ(one_line("a\x1b[31mb"), "a?[31mb");
  EXPECT_EQ(one_line("⟨E6 88⟩"), "⟨E6 88⟩");
}

TEST(Program, ClosedPipeIsNoError) {
  // `true` never reads: whatever is written meets a closed pipe.
  const CliRun run = test::shell("(sleep 0.2; sinkscope --help) | true; echo ${PIPESTATUS[0]}");
  EXPECT_EQ(run.out, "0\n");
  EXPECT_EQ(run.err, "");
}

TEST(Program, AFullDiskOnStandardOutputIsExit5) {
  const CliRun run = test::shell("sinkscope --help >/dev/full");
  EXPECT_EQ(run.code, kExitIo);
  EXPECT_EQ(test::n_lines(run.err), 1) << run.err;
}

TEST(Program, HelpNeedsNoDisplay) {
  const CliRun run = test::shell("env -u DISPLAY -u WAYLAND_DISPLAY sinkscope --help");
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out, HasSubstr("usage: sinkscope"));
}

TEST(Program, NoColorReachesAPipe) {
  const CliRun run = test::shell("sinkscope frobnicate");
  EXPECT_EQ(run.code, kExitUsage);
  EXPECT_THAT(run.err, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace sinkscope
