// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "app/cli/figure_inputs.h"
#include "core/capture_reader.h"
#include "core/figure/figure_kinds.h"
#include "tests/app/cli_run.h"
#include "tests/app/small_capture.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

namespace fs = std::filesystem;

struct Folder {
  std::string path = test::scratch_folder();
  std::string capture = test::small_capture(path);
  std::string file(const std::string& name) const { return path + "/" + name; }
};

TEST(FigureVerb, ListNamesEveryKindAndPreset) {
  const test::CliRun run = test::cli({"figure", "--list"});
  EXPECT_EQ(run.code, 0);
  for (const FigureKind& kind : figure_kinds()) EXPECT_THAT(run.out, HasSubstr(kind.name));
  for (const FigurePreset& preset : figure_presets()) EXPECT_THAT(run.out, HasSubstr(preset.name));
}

TEST(FigureVerb, CsvHasTheNumbersOfTheCapture) {
  const Folder folder;
  const test::CliRun run = test::cli({"figure", "attention-head", folder.capture, "--layer", "2",
                                      "--head", "3", "-o", folder.file("h.csv")});
  ASSERT_EQ(run.code, 0) << run.err;
  const std::string csv = test::read_file(folder.file("h.csv"));
  // 1000 · layer + 100 · head + 10 · row + key.
  EXPECT_THAT(csv, HasSubstr(",map,1,4,2341\n"));
  EXPECT_EQ(test::n_lines(csv), 1 + 6 * 7 / 2);
}

TEST(FigureVerb, StandardOutputAndFormats) {
  const Folder folder;
  const test::CliRun csv =
      test::cli({"figure", "key-mass", folder.capture, "-o", "-", "--format", "csv"});
  EXPECT_EQ(csv.code, 0) << csv.err;
  EXPECT_THAT(csv.out, StartsWith("panel,series,x,y,value\n"));
  const test::CliRun bad = test::cli({"figure", "key-mass", folder.capture, "-o", "f.jpg"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("pdf, svg, png or csv"));
  EXPECT_FALSE(fs::exists("f.jpg"));
}

TEST(FigureVerb, WrongUsageIsExit2) {
  const Folder folder;
  const auto code = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"figure", "-q"});
    const test::CliRun run = test::cli(args);
    EXPECT_EQ(test::n_lines(run.err), 1) << run.err;
    return run.code;
  };
  const std::string out = folder.file("f.csv");
  EXPECT_EQ(code({"attention-mean", folder.capture}), 2);  // no -o
  EXPECT_EQ(code({"-o", out}), 2);
  EXPECT_EQ(code({"nonsense", folder.capture, "-o", out}), 2);
  EXPECT_EQ(code({"attention-head", folder.capture, "--range", "a", "-o", out}), 2);
  EXPECT_EQ(code({"attention-head", folder.capture, "--layer", "9", "-o", out}), 3);
  EXPECT_EQ(code({"attention-head", folder.file("absent.h5"), "-o", out}), 3);
  EXPECT_EQ(code({folder.capture, "--preset", "2601.22966/fig3", "-o", out}), 4);
  EXPECT_FALSE(fs::exists(out));
  EXPECT_FALSE(fs::exists(out + ".part"));
}

// The overview's further maps by their names; one that the capture has not is named, with those it
// has.
#ifdef SINKSCOPE_WITH_TORCH
TEST(FigureVerb, DrawsTheMapOfAMechanism) {
  SINKSCOPE_REQUIRE_SHARED(model, "oracles/gpt_oss");
  const Folder folder;
  const std::string capture = folder.file("run.h5"), csv = folder.file("share.csv");
  ASSERT_EQ(test::cli({"capture", model, "--tokens", "5,9,3,7,1,8", "-o", capture}).code, 0);
  const test::CliRun run = test::cli(
      {"figure", "sink-heads", capture, "--score", "Sink share", "-o", csv, "--view", "1:2,2:3"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto reader = CaptureReader::open(capture);
  const std::vector<float> share = reader->read_f32("run0", "attention/null_mass");  // [A, H, T]
  const auto H = static_cast<std::size_t>(reader->dims("run0", "attention/null_mass")[1]);
  double mean = 0;
  for (std::size_t t = 0; t < 6; ++t) mean += share[(2 * H + 1) * 6 + t] / 6;
  const std::string text = test::read_file(csv), last = text.substr(text.rfind(',') + 1);
  EXPECT_EQ(test::n_lines(text), 2);
  EXPECT_NEAR(std::stod(last), mean, 1e-5) << text;
  const test::CliRun bad =
      test::cli({"figure", "sink-heads", capture, "--score", "Sinks", "-o", csv, "--force"});
  EXPECT_NE(bad.code, 0);
  EXPECT_THAT(bad.err, HasSubstr("no map 'Sinks', it has gu, with-row0, without-row0, Sink share"));
}
#endif

TEST(FieldCases, FC81_ExistingFilesAreKeptWithoutForce) {
  const Folder folder;
  const std::string out = test::write_file(folder.path, "f.csv", "mine");
  const std::vector<std::string> args = {"figure", "key-mass", folder.capture, "-o", out};
  const test::CliRun refused = test::cli(args);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--force"));
  EXPECT_EQ(test::read_file(out), "mine");
  std::vector<std::string> forced = args;
  forced.emplace_back("--force");
  EXPECT_EQ(test::cli(forced).code, 0);
  EXPECT_THAT(test::read_file(out), StartsWith("panel,"));
}

TEST(FieldCases, FC81_TheFolderOfTheFileIsMade) {
  const Folder folder;
  const std::string out = folder.file("figures/paper/f.csv");
  EXPECT_EQ(test::cli({"figure", "key-mass", folder.capture, "-o", out}).code, 0);
  EXPECT_TRUE(fs::exists(out));
  const std::string file = test::write_file(folder.path, "file", "");
  EXPECT_EQ(test::cli({"figure", "key-mass", folder.capture, "-o", file + "/f.csv"}).code, 5);
}

TEST(FigureInputs, NamesTellInputsApart) {
  EXPECT_THAT(distinct_names({"A", "B"}, {"x", "y"}, {"run0", "run0"}), ElementsAre("A", "B"));
  EXPECT_THAT(distinct_names({"A", "A"}, {"x", "y"}, {"run0", "run0"}), ElementsAre("x", "y"));
  EXPECT_THAT(distinct_names({"A", "A"}, {"x", "x"}, {"run0", "run1"}),
              ElementsAre("run0", "run1"));
  EXPECT_THAT(distinct_names({"A", "A", "A"}, {"x", "x", "x"}, {"run0", "run0", "run1"}),
              ElementsAre("x · run0", "x · run0 (2)", "x · run1"));
}

#ifdef SINKSCOPE_WITH_GUI

TEST(FieldCases, FC81_TwiceTheSameBytesFromTheProgram) {
  const Folder folder;
  for (const char* suffix : {"pdf", "svg", "png"}) {
    const test::CliRun run = test::shell(
        std::string(
            "unset DISPLAY QT_QPA_PLATFORM\nsinkscope figure -q depth-lines small.h5 -o a.") +
            suffix + " && sinkscope figure -q depth-lines small.h5 -o b." + suffix + " && cmp a." +
            suffix + " b." + suffix,
        folder.path);
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(run.err, "");
  }
}

TEST(FigureVerb, ThePipeCarriesThePdfAndTheDateIsTheBuilds) {
  const Folder folder;
  const test::CliRun run = test::shell(
      "SOURCE_DATE_EPOCH=86400 sinkscope figure residual-sorted small.h5 -o - | head -c 9000",
      folder.path);
  EXPECT_THAT(run.out, StartsWith("%PDF-"));
  EXPECT_THAT(run.out, HasSubstr("D:19700102000000"));
}

TEST(FigureVerb, EveryPictureOfThePaperComesOutOfASmallCapture) {
  const Folder folder;
  for (const char* name : {"fig1", "fig2", "fig5", "fig8"}) {
    const test::CliRun run =
        test::shell(std::string("sinkscope figure --preset 2601.22966/") + name +
                        " small.h5 -o f.pdf --force && pdftotext f.pdf -",
                    folder.path);
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.out,
                HasSubstr(std::string(name) == "fig5" ? "PreNorm Lambda" : "Max Activation Value"));
  }
}

#else

TEST(FigureVerb, PicturesNeedQt) {
  const Folder folder;
  const test::CliRun run =
      test::cli({"figure", "key-mass", folder.capture, "-o", folder.file("f.pdf")});
  EXPECT_EQ(run.code, 4);
  EXPECT_THAT(run.err, HasSubstr("built without Qt"));
}

#endif

}  // namespace
}  // namespace sinkscope
