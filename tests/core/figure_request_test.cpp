// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figure/figure_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "core/figure/figure_kinds.h"
#include "core/figure/figure_python.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;

// The words of a command as a shell would hand them over; only for commands without quotes.
std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> words(1);
  for (const char c : command) {
    if (c == ' ') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

FigureRequest round_trip(const FigureRequest& request) {
  std::vector<std::string> words = words_of(figure_command(request, ""));
  words.erase(words.begin(), words.begin() + 2);  // sinkscope figure
  return parse_figure_words(words);
}

FigureRequest plain() {
  FigureRequest request;
  request.kind = "attention-mean";
  request.inputs = {"a.h5", "b.h5::run1"};
  return request;
}

TEST(FigureRequest, TheDefaultIsTheShortestCommand) {
  EXPECT_EQ(figure_command(plain(), "out/f.pdf"),
            "sinkscope figure attention-mean a.h5 b.h5::run1 -o out/f.pdf");
  EXPECT_EQ(round_trip(plain()), plain());
}

TEST(FigureRequest, EveryFieldSurvivesTheCommandLine) {
  FigureRequest request = plain();
  request.run = "run0";
  request.archs = {"", "own.json"};
  request.layer = 3;
  request.head = 11;
  request.takes_maximum = true;
  request.removes_sink = true;
  request.order = "natural";
  request.n_dims = 0;
  request.n_tokens = 17;
  request.of = "norm-gains";
  request.labels_tokens = true;
  request.divides_by_median = true;
  request.colormap = "Blues";
  request.scale = Scale::symlog;
  request.range = parse_range_request("-1.5,2");
  request.range_each = true;
  request.n_columns = 2;
  request.width_mm = 120.5;
  request.font_pt = 8.5;
  request.dpi = 600;
  request.title = "Title";
  request.names = {"A", "B"};
  request.panel_labels = "A";
  request.text = FigureText::as_text;
  request.cells = FigureCells::as_rectangles;
  EXPECT_EQ(round_trip(request), request);

  FigureRequest preset;
  preset.preset = "2601.22966/fig2";
  preset.inputs = {"a.h5", "b.h5", "c.h5"};
  preset.width_mm = 170;
  EXPECT_EQ(figure_command(preset, ""),
            "sinkscope figure a.h5 b.h5 c.h5 --preset 2601.22966/fig2 --width text");
  EXPECT_EQ(round_trip(preset), preset);
}

TEST(FigureRequest, EachOptionAloneChangesTheRequestAndPrintsItself) {
  for (const FigureOption& option : figure_options()) {
    FigureRequest request = plain();
    const std::string flag = option.flag;
    const std::string value = flag == "--preset"         ? "2601.22966/fig8"
                              : flag == "--order"        ? "natural"
                              : flag == "--of"           ? "sink-heads"
                              : flag == "--range"        ? "0,1"
                              : flag == "--scale"        ? "log"
                              : flag == "--colormap"     ? "Blues"
                              : flag == "--combine"      ? "max"
                              : flag == "--source"       ? "window"
                              : flag == "--score"        ? "with-row0"
                              : flag == "--dim-list"     ? "507,3"
                              : flag == "--view"         ? "10:40,0:64"
                              : flag == "--heads"        ? "3,-1"
                              : flag == "--width"        ? "60mm"
                              : flag == "--panel-labels" ? "a"
                              : flag == "--text"         ? "text"
                              : flag == "--cells"        ? "rectangles"
                                                         : "25";
    EXPECT_FALSE(option.text(request).has_value()) << flag;
    option.set(request, value);
    EXPECT_NE(request, plain()) << flag;
    EXPECT_EQ(option.text(request), *option.placeholder == '\0' ? "" : value) << flag;
  }
}

TEST(FigureRequest, ModelsHaveTheFilesThatDescribeThem) {
  const ModelArchs models = {{"usual", ""}, {"ours", "a.json"}, {"theirs", "b.json"}};
  using Files = std::vector<std::string>;
  EXPECT_EQ(archs_for({"ours"}, models), Files{"a.json"});
  EXPECT_EQ(archs_for({"run.h5", "ours"}, models), Files{"a.json"}) << "captures do not look";
  EXPECT_EQ(archs_for({"run.h5", "usual"}, models), Files());
  EXPECT_EQ(archs_for({"ours", "usual"}, models), (Files{"a.json", ""}));
  EXPECT_EQ(archs_for({"ours", "run.h5", "theirs"}, models), (Files{"a.json", "", "b.json"}));
  FigureRequest request;
  request.kind = "norm-gains";
  request.inputs = {"ours", "usual"};
  request.archs = {"a.json", ""};
  EXPECT_EQ(figure_command(request, ""), "sinkscope figure norm-gains ours usual --arch a.json,");
  EXPECT_EQ(arch_of(request, 0), "a.json");
  EXPECT_EQ(arch_of(request, 1), "");
  set_archs(request, "our file.json");
  EXPECT_EQ(arch_of(request, 1), "our file.json") << "one for all";
  request.inputs = {"ours"};
  request.archs = {"a,b.json"};
  EXPECT_EQ(round_trip(request), request) << "a comma in a path";
}

TEST(FigureRequest, WordsForAShellAreQuoted) {
  FigureRequest request = plain();
  request.inputs = {"my run.h5", "-odd.h5"};
  request.title = "It's";
  EXPECT_EQ(figure_command(request, "o.svg"),
            "sinkscope figure attention-mean 'my run.h5' ./-odd.h5 --title 'It'\\''s' -o o.svg");
}

std::string complaint(const std::vector<std::string>& words) {
  try {
    check_request(parse_figure_words(words));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(FigureRequest, WhatMakesNoSenseIsRefusedWithTheChoices) {
  EXPECT_EQ(complaint({"attention-mean", "a.h5"}), "");
  EXPECT_THAT(complaint({"attention", "a.h5"}), HasSubstr("attention-mean"));
  EXPECT_THAT(complaint({"attention-mean"}), HasSubstr("expected a capture"));
  EXPECT_THAT(complaint({}), HasSubstr("--list"));
  EXPECT_THAT(complaint({"compare", "a.h5"}), HasSubstr("two inputs or more"));
  EXPECT_THAT(complaint({"attention-mean", "a.h5", "--width", "wide"}), HasSubstr("120mm"));
  EXPECT_THAT(complaint({"attention-mean", "a.h5", "--font-pt", "x"}), HasSubstr("3 to 72"));
  EXPECT_THAT(complaint({"attention-mean", "a.h5", "--dpi", "300.5"}), HasSubstr("whole number"));
  EXPECT_THAT(complaint({"attention-mean", "a.h5", "--colormap", "jet"}), HasSubstr("viridis"));
  EXPECT_THAT(complaint({"attention-mean", "a.h5", "--nonsense"}), HasSubstr("--nonsense"));
  EXPECT_THAT(complaint({"attention-mean", "a.h5", "--names", "A,B"}), HasSubstr("expected 1"));
  FigureRequest too_many = plain();
  too_many.archs = {"a.json", "b.json", "c.json"};
  EXPECT_THROW(check_request(too_many), Error);
  EXPECT_THAT(complaint({"norm-gains", "m", "--arch"}), HasSubstr("F.json"));
  EXPECT_THAT(complaint({"a.h5", "--preset", "2601.22966/fig3"}), HasSubstr("training step"));
  EXPECT_THAT(complaint({"a.h5", "--preset", "fig1"}), HasSubstr("2601.22966/fig1"));
}

TEST(FigurePython, ReadsTheArraysOfTheRequest) {
  FigureRequest request = plain();
  request.inputs = {"a \"b\".h5", "c.h5::run3"};
  const std::string mean = figure_python(request);
  EXPECT_THAT(mean, HasSubstr("(\"a \\\"b\\\".h5\", \"run0\", None, None)"));
  EXPECT_THAT(mean, HasSubstr("(\"c.h5\", \"run3\", None, None)"));
  EXPECT_THAT(mean, HasSubstr("attention/window"));
  EXPECT_THAT(mean, HasSubstr("combined(run, layer, head, \"automatic\", False)"));
  request.kind = "attention-head";
  request.layer = 4;
  request.head = 7;
  EXPECT_THAT(figure_python(request), HasSubstr("attention(run, 4, 7, \"automatic\")"));
  for (const FigureKind& kind : figure_kinds()) {
    request.kind = kind.name;
    const char* reads =
        request.kind == "probes" ? "json.load(open(path))" : "h5py.File(path)[name]";
    EXPECT_THAT(figure_python(request), HasSubstr(reads)) << kind.name;
  }
}

TEST(FigureKinds, NamesAreDistinctAndFound) {
  std::set<std::string> names;
  for (const FigureKind& kind : figure_kinds()) {
    EXPECT_TRUE(names.insert(kind.name).second);
    EXPECT_STREQ(figure_kind(kind.name).name, kind.name);
  }
  EXPECT_EQ(names.size(), 17u);
}

}  // namespace
}  // namespace sinkscope
