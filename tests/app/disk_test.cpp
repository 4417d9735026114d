// SPDX-License-Identifier: GPL-3.0-or-later
// What may happen to the place that a recording goes to. (RLIMIT_FSIZE: resume_test.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/app/cli_run.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kModel = SINKSCOPE_SOURCE_DIR "/sample_data/planted";

// 300 tokens: maps of about 1 MB a layer, 4 layers. `place`: where run.h5 goes.
std::string capture(const std::string& place, const std::string& flags = "") {
  return "sinkscope capture " + kModel + " --tokens $(seq -s, 1 150),$(seq -s, 1 150)" +
         " --record maps --progress none --threads 1 -o " + place + "/run.h5 " + flags;
}

// Begins the recording, holds it as soon as its .part is there, does `action`, lets it go on.
// (Processes are stopped, not slept for: the action always comes before the first layer is whole.)
std::string interrupted(const std::string& place, const std::string& action) {
  return capture(place) + " & pid=$!\n" + "while ! [ -e " + place +
         "/run.h5.part ]; do kill -0 $pid || exit 99; done\nkill -STOP $pid\n" + action +
         "\nkill -CONT $pid; wait $pid";
}

// Runs a script in which m is an empty disk of 8 MB.
test::CliRun on_a_small_disk(const std::string& folder, const std::string& script) {
  test::write_file(folder, "inner", "mount -t tmpfs -o size=8m tmpfs m || exit 77\n" + script);
  fs::create_directories(folder + "/m");
  return test::shell(std::string(getuid() == 0 ? "unshare -m" : "unshare -rm") + " bash ./inner",
                     folder);
}

#define REQUIRE_SMALL_DISKS(folder)                \
  if (on_a_small_disk(folder, "exit 0").code != 0) \
  GTEST_SKIP() << "needs mount namespaces: this system lets nobody mount a tmpfs"

TEST(Disk, ARecordingThatCannotFitIsRefusedBeforeItBegins) {
  const std::string folder = test::scratch_folder();
  REQUIRE_SMALL_DISKS(folder);
  const test::CliRun run = on_a_small_disk(
      folder, "head -c 4M /dev/zero > m/fill; " + capture("m") + "; code=$?; ls m; exit $code");
  EXPECT_EQ(run.code, 5) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("m/run.h5: the capture takes"), HasSubstr("free")));
  EXPECT_EQ(run.out, "fill\n");
}

TEST(FieldCases, FC63_ADiskThatFillsUpMeanwhileKeepsWholeLayersAndResumes) {
  const std::string folder = test::scratch_folder();
  REQUIRE_SMALL_DISKS(folder);
  const test::CliRun run = on_a_small_disk(
      folder, "(" +
                  interrupted("m", "cat /dev/zero > m/fill 2> /dev/null; truncate -s -2M m/fill") +
                  ")\ncode=$?; rm m/fill; sinkscope repair m/run.h5 --json > repair.json\n" +
                  capture("m", "--resume") + " || exit 98\n" + capture(".") +
                  " || exit 97\nh5diff m/run.h5 run.h5 || exit 96; exit $code");
  EXPECT_EQ(run.code, 5) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("No space left on device"), HasSubstr("run.h5.part"),
                             HasSubstr("--resume goes on with it")));
}

TEST(Disk, AFolderThatMayNotBeWrittenIsNamed) {
  const std::string folder = test::scratch_folder();
  fs::create_directories(folder + "/readonly");
  std::string as_user;
  if (getuid() == 0) {  // whom permissions do not hold
    as_user = "setpriv --reuid 65534 --regid 65534 --clear-groups ";
    for (fs::path part = folder; part != part.root_path(); part = part.parent_path())
      if (part.string().starts_with("/tmp/"))
        fs::permissions(part, fs::perms(0755), fs::perm_options::add);
    if (test::shell(as_user + "sinkscope --version", folder).code != 0)
      GTEST_SKIP() << "needs a user without rights who may run the program";
  }
  fs::permissions(folder + "/readonly", fs::perms(0555));
  const test::CliRun run = test::shell(as_user + capture("readonly"), folder);
  EXPECT_EQ(run.code, 5) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("readonly/run.h5"), HasSubstr("Permission denied")));
  EXPECT_EQ(test::n_lines(run.err), 1) << run.err;
}

TEST(Disk, AFolderThatVanishesMeanwhileIsNamed) {
  const std::string folder = test::scratch_folder();
  fs::create_directories(folder + "/d");
  const test::CliRun run = test::shell(interrupted("d", "rm -r d"), folder);
  EXPECT_EQ(run.code, 5) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("d/run.h5: its folder d is gone")));
  EXPECT_EQ(test::n_lines(run.err), 1) << run.err;
}

}  // namespace
}  // namespace sinkscope
