// SPDX-License-Identifier: GPL-3.0-or-later
// What only looks must not pay for LibTorch, what draws nothing not for Qt: asks the dynamic loader
// what it mapped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/app/cli_run.h"
#include "tests/app/small_capture.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The loader writes a line for each file it maps, libraries opened at run time included.
std::string loader_log(const std::string& command) {
  const std::string folder = test::scratch_folder();
  const test::CliRun run =
      test::shell("LD_DEBUG=files LD_DEBUG_OUTPUT=loader sinkscope " + command, folder);
  EXPECT_EQ(run.code, 0) << command << "\n" << run.err;
  return test::shell("cat loader.*", folder).out;
}

void expect_no_torch_in(const std::string& log, const std::string& command) {
  EXPECT_THAT(log, HasSubstr("libhdf5")) << "the loader's log is not there";
  EXPECT_THAT(log, Not(HasSubstr("libtorch"))) << command;
  EXPECT_THAT(log, Not(HasSubstr("libc10"))) << command;
  EXPECT_THAT(log, Not(HasSubstr("libsinkscope_engine"))) << command;
}

void expect_no_torch(const std::string& command) {
  const std::string log = loader_log(command);
  expect_no_torch_in(log, command);
  EXPECT_THAT(log, Not(HasSubstr("libQt6"))) << command;
  EXPECT_THAT(log, Not(HasSubstr("libsinkscope_gui"))) << command;
}

TEST(NoTorch, HelpAndVersion) {
  expect_no_torch("--help");
  expect_no_torch("--version");
  expect_no_torch("capture --help");
}

TEST(NoTorch, VerbsThatOnlyLookAtAModel) {
  SINKSCOPE_REQUIRE_SHARED(model, "data/models/stories260Ktok512.gguf");
  expect_no_torch("info " + model);
  expect_no_torch("norms " + model);
  expect_no_torch("tokenize " + model + " --text hello");
  expect_no_torch("capture " + model + " --dry-run");
}

TEST(NoTorch, VerbsThatReadACapture) {
  const std::string path = test::small_capture(test::scratch_folder());
  expect_no_torch("sinks " + path);
  expect_no_torch("dump " + path + " attention/key_mass");
  expect_no_torch("compare " + path + " " + path);
  expect_no_torch(path);
  expect_no_torch("figure sink-heads " + path + " -o f.csv");
#ifdef SINKSCOPE_WITH_GUI
  const std::string draw = "figure attention-mean " + path + " -o f.pdf";
  const std::string log = loader_log(draw);
  expect_no_torch_in(log, draw);
  EXPECT_THAT(log, HasSubstr("libQt6Gui"));
#endif
}

}  // namespace
}  // namespace sinkscope
