// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/terminal_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/capture_layout.h"
#include "tests/app/cli_run.h"
#include "tests/app/small_capture.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using test::cli;
using test::CliRun;
using ::testing::HasSubstr;

TEST(TerminalText, PassesPrintableTextAndEscapesTheRest) {
  EXPECT_EQ(terminal_text("a\tb\nñ 我 😊 ⟨E6 88⟩"), "a\tb\nñ 我 😊 ⟨E6 88⟩");
  EXPECT_EQ(terminal_text("\x1b[31mred\r\a"), "\\x1B[31mred\\x0D\\x07");
  EXPECT_EQ(terminal_text("\x7f\xc2\x9b"), "\\u007F\\u009B");
  EXPECT_EQ(terminal_text("\xff\xc3(\xed\xa0\x80\xc0\x9b"), "\\xFF\\xC3(\\xED\\xA0\\x80\\xC0\\x9B");
  EXPECT_EQ(terminal_text("cut \xe6\x88"), "cut \\xE6\\x88");
  EXPECT_EQ(terminal_text("\xe6\x1b"), "\\xE6\\x1B");
}

TEST(TerminalText, CharactersMayComeInPieces) {
  const std::string text = "ñ我😊\x1b\x7f\xe6 end \xf0\x9f";
  std::stringbuf sink;
  {
    TerminalText terminal(sink);
    for (const char c : text) terminal.sputc(c);
  }
  EXPECT_EQ(sink.str(), terminal_text(text));
  EXPECT_EQ(sink.str(), "ñ我😊\\x1B\\u007F\\xE6 end \\xF0\\x9F");
}

// Titles of windows, colors, the 8-bit form of ESC [, and what clears the line.
const std::string kEvil =
    "evil\x1b]0;owned\x07\x1b[31m\xc2\x9b"
    "5m\x7f\r";

bool is_clean(const std::string& text) { return text == terminal_text(text); }

TEST(HostileFiles, NothingOfACaptureReachesTheTerminalRaw) {
  const std::string path = test::small_capture(test::scratch_folder(), [](CaptureLayout& layout) {
    layout.model.name = layout.model.source = layout.model.architecture = kEvil;
    for (RunInput& run : layout.runs) {
      run.name = run.text = kEvil;
      for (std::string& token : run.token_text) token = kEvil;
    }
    for (NormFacts& norm : layout.norms) norm.kind = kEvil;
    layout.taps.front().hook = "attn.hook_z" + kEvil;
  });
  const std::vector<std::vector<std::string>> lines = {
      {path},
      {"sinks", path},
      {"sinks", path, "--run", "all"},
      {"sinks", path, "--csv"},
      {"sinks", path, "--json"},
      {"rescale", path},
      {"rescale", path, "--json"},
      {"compare", path, path},
      {"compare", path, path, "--json"},
      {"dump", path, "--list"},
      {"dump", path, "attention/key_mass"},
      {"repair", path, "--check", "all"},
      {"sinks", path, "--run", kEvil},
      {"figure", "sink-heads", path, "-o", "-", "--format", "csv"}};
  for (const std::vector<std::string>& line : lines) {
    const CliRun run = cli(line);
    EXPECT_FALSE((run.out + run.err).empty()) << line.front();
    EXPECT_TRUE(is_clean(run.out)) << line.front() << ": " << terminal_text(run.out);
    EXPECT_TRUE(is_clean(run.err)) << line.front() << ": " << terminal_text(run.err);
    const bool is_json = std::find(line.begin(), line.end(), "--json") != line.end();
    if (is_json) {
      EXPECT_TRUE(nlohmann::json::accept(run.out)) << line.front();
    }
  }
  EXPECT_THAT(cli({path}).out, HasSubstr("evil\\x1B]0;owned\\x07"));
}

TEST(HostileFiles, NothingOfAModelReachesTheTerminalRaw) {
  test::GgufBytes gguf;
  gguf.key("general.architecture", kEvil).key("general.name", kEvil);
  const std::string path = test::scratch_folder() + "/evil.gguf";
  gguf.write(path);
  for (const char* verb : {"", "info", "norms", "capture"}) {
    std::vector<std::string> line = {verb, path};
    if (line.front().empty()) line.erase(line.begin());
    const CliRun run = cli(line);
    EXPECT_FALSE((run.out + run.err).empty()) << line.front();
    EXPECT_TRUE(is_clean(run.out)) << verb << ": " << terminal_text(run.out);
    EXPECT_TRUE(is_clean(run.err)) << verb << ": " << terminal_text(run.err);
  }
  EXPECT_THAT(cli({"info", path}).out, HasSubstr("evil\\x1B"));
}

TEST(HostileFiles, DataThatWereAskedForStayAsTheyAre) {
  const std::string folder = test::scratch_folder();
  const std::string path = test::small_capture(folder);
  ASSERT_EQ(cli({"dump", path, "residual/stream", "-o", folder + "/x.npy"}).code, 0);
  EXPECT_EQ(cli({"dump", path, "residual/stream", "-o", "-"}).out,
            test::read_file(folder + "/x.npy"));
}

}  // namespace
}  // namespace sinkscope
