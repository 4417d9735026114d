// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "tests/app/cli_run.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

ProgressView at_block_17() {
  ProgressView view;
  view.stage = Stage::running;
  view.layer = 17;
  view.n_layers = 30;
  view.done = 60;
  view.total = 100;
  view.seconds = 18;
  return view;
}

TEST(ProgressBar, NamesTheBlockAndWhatIsLeft) {
  const std::string bar = progress_bar(at_block_17());
  EXPECT_THAT(bar, StartsWith("blocks.17 (18th of 30) ▓"));
  EXPECT_THAT(bar, HasSubstr("▓░"));
  EXPECT_THAT(bar, HasSubstr("0:12 left"));
}

TEST(ProgressBar, SaysNothingOfTheRestBeforeItIsKnown) {
  ProgressView view = at_block_17();
  view.done = 0;
  view.total = 0;
  EXPECT_THAT(progress_bar(view), ::testing::Not(HasSubstr("left")));
  EXPECT_FALSE(view.seconds_left().has_value());
}

TEST(ProgressJson, IsOneLineOfJson) {
  const auto line = nlohmann::json::parse(progress_json(at_block_17()));
  EXPECT_EQ(line["schema"], "sinkscope.progress/1");
  EXPECT_EQ(line["stage"], "running");
  EXPECT_EQ(line["layer"], 17);
  EXPECT_EQ(line["layers"], 30);
  EXPECT_DOUBLE_EQ(line["seconds_left"], 12);
}

TEST(ProgressPrinter, JsonLinesComeWhenTheLayerChanges) {
  std::istringstream in;
  std::ostringstream out, err;
  Console console{in, out, err};
  Progress progress;
  progress.stage = Stage::running;
  {
    ProgressPrinter printer(ProgressMode::json, console, 30);
    printer.update(progress);
    printer.update(progress);
    progress.layer = 1;
    printer.update(progress);
  }
  EXPECT_EQ(test::n_lines(err.str()), 2);
  EXPECT_EQ(out.str(), "");
}

TEST(ProgressMode, AutoIsSilentWhereNobodyWatches) {
  std::istringstream in;
  std::ostringstream out, err;
  Console console{in, out, err};
  EXPECT_EQ(parse_progress_mode("auto", console), ProgressMode::none);
  console.err_is_terminal = true;
  EXPECT_EQ(parse_progress_mode(std::nullopt, console), ProgressMode::bar);
  console.verbosity = Verbosity::quiet;
  EXPECT_EQ(parse_progress_mode("auto", console), ProgressMode::none);
  EXPECT_EQ(parse_progress_mode("json", console), ProgressMode::json);
  EXPECT_THROW(parse_progress_mode("dots", console), Error);
}

}  // namespace
}  // namespace sinkscope
