// SPDX-License-Identifier: GPL-3.0-or-later
// "Copy as Python" run by Python: the array it draws is the one that the figure draws.
#include "core/figure/figure_python.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "core/figure/figure_request.h"
#include "tests/app/cli_run.h"
#include "tests/app/small_capture.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

// matplotlib as far as the scripts use it: keeps what is drawn.
constexpr const char* kPlotter = R"(import numpy as np
class Axis:
    drawn = 0
    def imshow(self, image, **how):
        np.savetxt(f"image{Axis.drawn}.txt", image)
        Axis.drawn += 1
    def plot(self, values, label=None):
        np.savetxt(f"line{Axis.drawn}.txt", values)
        Axis.drawn += 1
    def legend(self): pass
    def set_title(self, title): pass
class Figure:
    def colorbar(self, shown, ax=None): pass
    def savefig(self, path): open(path, "w").close()
def subplots(rows, cols, squeeze=True):
    return Figure(), np.array([[Axis() for _ in range(cols)]], dtype=object)
)";

class FigurePython : public ::testing::Test {
 protected:
  void SetUp() override {
    if (test::shell("/usr/bin/python3 -c 'import h5py, numpy'", folder_).code != 0) {
      if (std::getenv("CI") != nullptr) FAIL() << "python3-h5py is needed here (./dev setup)";
      GTEST_SKIP() << "python3-h5py is not installed";
    }
    std::filesystem::create_directory(folder_ + "/matplotlib");
    test::write_file(folder_ + "/matplotlib", "__init__.py", "");
    test::write_file(folder_ + "/matplotlib", "pyplot.py", kPlotter);
    test::small_capture(folder_);
  }

  void run_script(const FigureRequest& request) const {
    test::write_file(folder_, "script.py", figure_python(request));
    const test::CliRun run =
        test::shell("rm -f image*.txt line*.txt; /usr/bin/python3 script.py", folder_);
    ASSERT_EQ(run.code, 0) << run.err << figure_python(request);
  }

  // The finite numbers that one drawing of the script has, row by row.
  std::vector<double> drawn(int i) const {
    std::istringstream text(test::read_file(folder_ + "/image" + std::to_string(i) + ".txt"));
    std::vector<double> values;
    for (std::string word; text >> word;)
      if (const double value = std::stod(word); std::isfinite(value)) values.push_back(value);
    return values;
  }

  // Those of one panel of the figure, from its CSV: "panel,map,x,y,value".
  std::vector<double> in_figure(const FigureRequest& request, int panel) const {
    std::string command = figure_command(request, "f.csv") + " --force";
    const test::CliRun run = test::shell(command + " -q", folder_);
    EXPECT_EQ(run.code, 0) << command << run.err;
    std::istringstream lines(test::read_file(folder_ + "/f.csv"));
    std::vector<std::string> panels;
    std::vector<double> values;
    for (std::string line; std::getline(lines, line);) {
      if (line.find(",map,") == std::string::npos) continue;
      const std::string name = line.substr(0, line.find(",map,"));
      if (panels.empty() || panels.back() != name) panels.push_back(name);
      if (static_cast<int>(panels.size()) - 1 != panel) continue;
      const double value = std::stod(line.substr(line.rfind(',') + 1));
      if (std::isfinite(value)) values.push_back(value);
    }
    return values;
  }

  void expect_the_same(const std::vector<std::string>& words, int n_drawings = 1) const {
    const FigureRequest request = parse_figure_words(words);
    run_script(request);
    for (int i = 0; i < n_drawings; ++i) {
      const std::vector<double> script = drawn(i), figure = in_figure(request, i);
      ASSERT_EQ(script.size(), figure.size()) << figure_python(request);
      for (std::size_t k = 0; k < script.size(); ++k)
        ASSERT_NEAR(script[k], figure[k], 1e-5 * (1 + std::abs(figure[k])))
            << i << ", " << k << "\n"
            << figure_python(request);
    }
  }

  std::string folder_ = test::scratch_folder();
};

TEST_F(FigurePython, ReadsTheRecordedMapOfAHead) {
  expect_the_same({"attention-head", "small.h5", "--layer", "2", "--head", "3"});
  EXPECT_EQ(drawn(0).front(), 2300) << "1000 · layer + 100 · head, not the window's value";
  expect_the_same(
      {"attention-head", "small.h5::run1", "--layer", "2", "--head", "3", "--view", "1:5,0:3"});
  expect_the_same({"attention-head", "small.h5", "--layer", "1", "--head", "0"});  // the window's
  expect_the_same({"attention-head", "small.h5", "--layer", "2", "--head", "3", "--without-sink"});
}

TEST_F(FigurePython, ReadsAveragesStatesScoresAndComparisons) {
  expect_the_same({"attention-mean", "small.h5", "--source", "window"});
  expect_the_same({"attention-mean", "small.h5", "--layer", "2", "--head", "1"});
  expect_the_same({"residual-sorted", "small.h5", "--dims", "3"});
  expect_the_same({"residual-sorted", "small.h5", "--order", "sorted-without-first"});
  expect_the_same({"residual-sorted", "small.h5", "--layer", "1", "--signed", "--order", "natural",
                   "--tokens", "4"});
  expect_the_same({"residual-sorted", "small.h5", "--dim-list", "3,1"});
  expect_the_same({"sink-heads", "small.h5"});
  expect_the_same(
      {"compare", "small.h5", "small.h5", "small.h5", "--layers", "2,0,2", "--heads", "1,1,3"}, 5);
  expect_the_same({"compare", "small.h5", "small.h5::run1", "--of", "norm-gains", "--role", "ln2"},
                  3);
}

TEST_F(FigurePython, EveryKindRuns) {
  for (const char* kind : {"attention-grid", "norm-gains", "key-mass", "logit-gap", "value-norms",
                           "length-lines", "depth-lines", "kurtosis", "channel-token"})
    run_script(parse_figure_words({kind, "small.h5"}));
}

}  // namespace
}  // namespace sinkscope
