// SPDX-License-Identifier: GPL-3.0-or-later
// File systems without locks are used without: flock() is taken away from the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/app/cli_run.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they come first themselves

const std::string kModel = SINKSCOPE_SOURCE_DIR "/sample_data/planted";

test::CliRun without_locks(int error, const std::string& command, const std::string& folder) {
  return test::shell("NO_FLOCK_ERRNO=" + std::to_string(error) +
                         " LD_PRELOAD='" NO_FLOCK_LIBRARY "' sinkscope " + command,
                     folder);
}

TEST(FileLocks, AFileSystemThatHasNoneIsUsedWithout) {
  for (const int error : {ENOLCK, ENOSYS, EOPNOTSUPP}) {
    const std::string folder = test::scratch_folder();
    const test::CliRun run = without_locks(
        error, "capture '" + kModel + "' --tokens 1,2,3,4,5 --threads 1 -o run.h5", folder);
    EXPECT_EQ(run.code, 0) << error << ": " << run.err;
    EXPECT_EQ(without_locks(error, "sinks run.h5", folder).code, 0) << error;
    EXPECT_EQ(test::shell("sinkscope sinks run.h5", folder).code, 0) << error;
  }
}

// The same taking away, of a lock that another program holds.
TEST(FileLocks, AnotherProgramsLockIsTold) {
  const std::string folder = test::scratch_folder();
  ASSERT_EQ(test::shell("sinkscope capture '" + kModel + "' --tokens 1,2,3 -o run.h5", folder).code,
            0);
  const test::CliRun run = without_locks(EWOULDBLOCK, "sinks run.h5", folder);
  EXPECT_EQ(run.code, 5);
  EXPECT_THAT(run.err, ::testing::HasSubstr("is being written by another program"));
}

#endif

}  // namespace
}  // namespace sinkscope
