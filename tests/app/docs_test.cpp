// SPDX-License-Identifier: GPL-3.0-or-later
// Every command that the documentation prints is run: documents and program must not drift apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <sstream>

#include "capture/record/site.h"
#include "tests/app/cli_run.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

// Lines beginning with "sinkscope " or "$ sinkscope " inside console or sh fences; a backslash at
// the end joins the next line.
std::vector<std::string> commands_in(const std::string& text) {
  std::vector<std::string> commands;
  std::istringstream lines(text);
  bool is_shell = false, is_open = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      is_shell = !is_open && (line == "```console" || line == "```sh");
      is_open = !is_open;
      continue;
    }
    if (line.starts_with("$ ")) line.erase(0, 2);
    if (!is_shell || !line.starts_with("sinkscope ")) continue;
    for (std::string next; line.ends_with('\\') && std::getline(lines, next);)
      line = line.substr(0, line.size() - 1) + next;
    commands.push_back(line.substr(10));
  }
  return commands;
}

std::string with_model(std::string command) {
  const std::string model = std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted";
  for (std::size_t at = 0; (at = command.find("MODEL", at)) != std::string::npos;
       at += model.size())
    command.replace(at, 5, model);
  return command;
}

// Commands that run a model, or read a capture that an earlier one made.
bool needs_engine(const std::string& command) {
  for (const char* verb :
       {"capture ", "sinks ", "dump ", "probe ", "whatif ", "absorb ", "compare --kl "})
    if (command.starts_with(verb)) return true;
  return command.find(".h5") != std::string::npos || command.find(".json") != std::string::npos;
}

// Pictures; the data behind them comes out of every build.
[[maybe_unused]] bool needs_gui(const std::string& command) {
  return command.starts_with("figure ") && command.find(" -o ") != std::string::npos &&
         !command.ends_with(".csv");
}

void run_all(const std::string& document) {
  const std::string folder = test::scratch_folder();
  // A document may call the sample model by its place in the project.
  fs::create_directory_symlink(std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data",
                               folder + "/sample_data");
  for (const std::string& command : commands_in(document)) {
#ifndef SINKSCOPE_WITH_TORCH
    if (needs_engine(command)) continue;
#endif
#ifndef SINKSCOPE_WITH_GUI
    if (needs_gui(command)) continue;
#endif
    const test::CliRun run = test::shell("sinkscope " + with_model(command), folder);
    EXPECT_EQ(run.code, 0) << "sinkscope " << command << "\n" << run.err;
    const bool writes_file =
        command.find(" -o") != std::string::npos || command.find(" > ") != std::string::npos;
    EXPECT_FALSE(run.out.empty() && !writes_file) << command;
  }
}

std::string document(const std::string& name) {
  return test::read_file(std::string(SINKSCOPE_SOURCE_DIR) + "/" + name);
}

TEST(FieldCases, FC53_EveryCommandInTheReadmeRuns) {
  EXPECT_FALSE(commands_in(document("README.md")).empty());
  run_all(document("README.md"));
}

TEST(FieldCases, FC53_EveryCommandInHackingAndTheFormatRuns) {
  run_all(document("HACKING.md"));
  run_all(document("core/FORMAT.md"));
  run_all(document("sample_data/README.md"));
}

TEST(DocumentCommands, OnlyShellFencesCount) {
  const std::string text =
      "sinkscope prose\n```\nsinkscope plain\n```\n```console\n$ sinkscope info MODEL\noutput\n"
      "sinkscope norms \\\nMODEL\n```\n```sh\nsinkscope --help\n```\n";
  EXPECT_THAT(commands_in(text), ::testing::ElementsAre("info MODEL", "norms MODEL", "--help"));
  EXPECT_TRUE(needs_engine("capture MODEL -o a.h5"));
  EXPECT_FALSE(needs_engine("info MODEL"));
}

// Not as the beginning of a longer name.
bool has_word(const std::string& text, const std::string& word) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const char behind = at + word.size() < text.size() ? text[at + word.size()] : ' ';
    if (std::isalnum(static_cast<unsigned char>(behind)) == 0 && behind != '_') return true;
  }
  return false;
}

// The mixes of several streams share their names: "hyper_*.hook_norm".
TEST(Docs, FormatNamesEverySiteWithStatistics) {
  const std::string text = document("core/FORMAT.md");
  const std::size_t begin = text.find("## 8 stats"), end = text.find("## 9 taps");
  ASSERT_LT(begin, end);
  const std::string section = text.substr(begin, end - begin);
  for (const Site site : kAllSites) {
    std::string hook = hook_name(site);
    if (!has_statistics(site)) continue;
    if (is_stream_site(site)) hook = "hyper_*" + hook.substr(hook.find('.'));
    EXPECT_TRUE(has_word(section, hook)) << hook;
  }
}

}  // namespace
}  // namespace sinkscope
