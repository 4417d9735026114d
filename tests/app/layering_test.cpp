// SPDX-License-Identifier: GPL-3.0-or-later
// The one direction of dependency: reads every #include of the tree and fails on a forbidden edge.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "tests/app/cli_run.h"
#include "tests/support/shared_files.h"

namespace {

namespace fs = std::filesystem;

// Files under `folder` (and, where `only` is set, of that pattern) must not include `forbidden`;
// a file whose path matches `except` may.
struct Rule {
  const char* folder;
  const char* forbidden;
  const char* except;
  const char* why;
};

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = {
      {"core", "^(capture|views|app|tests)/", "", "core knows only itself"},
      {"core", "^(torch|ATen|c10|Q[A-Z]|Qt|qcustomplot|CLI)", "", "core has no Qt and no Torch"},
      {"capture", "^(views|app|tests)/", "", "capture knows core only"},
      {"capture", "^(Q[A-Z]|Qt|qcustomplot)", "", "capture has no Qt"},
      {"capture/checkpoint", "^(torch|ATen|c10)", "", "checkpoints are read without Torch"},
      {"capture/tokenizer", "^(torch|ATen|c10)", "", "tokenizers work without Torch"},
      {"views", "^(capture|app|tests)/", "", "views know core only"},
      {"views", "^(torch|ATen|c10)", "", "views have no Torch"},
      {"app", "^(torch|ATen|c10)", "", "app talks to the engine through capture/engine.h"},
      {"app", "^tests/", "", "the program does not depend on its tests"},
      {"core", "^hdf5", "^core/h5/", "the HDF5 library is behind core/h5"},
      {"capture", "^hdf5", "", "the HDF5 library is behind core/h5"},
      {"views", "^hdf5", "", "the HDF5 library is behind core/h5"},
      {"app", "^hdf5", "", "the HDF5 library is behind core/h5"},
      {"views", "^qcustomplot", "\\.cpp$", "qcustomplot.h stays out of headers"},
      {"capture", "^(torch|ATen|c10)",
       "(\\.cpp|/model/[^/]*\\.h|/record/[^/]*\\.h|/run/[^/]*\\.h|/edits/[^/]*\\.h)$",
       "the public headers of capture are plain C++"},
      {"capture/engine.h", "^(torch|ATen|c10)", "", "the engine's face is plain C++"},
  };
  return all;
}

std::vector<std::string> includes_of(const fs::path& file) {
  static const std::regex directive("^\\s*#\\s*include\\s*[<\"]([^>\"]+)[>\"]");
  std::vector<std::string> names;
  std::ifstream in(file);
  std::string line;
  std::smatch match;
  while (std::getline(in, line))
    if (std::regex_search(line, match, directive)) names.push_back(match[1]);
  return names;
}

bool is_source(const fs::path& file) {
  const std::string suffix = file.extension().string();
  return suffix == ".h" || suffix == ".cpp" || suffix == ".cu" || suffix == ".cuh";
}

std::vector<fs::path> sources_below(const fs::path& place) {
  std::vector<fs::path> files;
  if (fs::is_regular_file(place)) return {place};
  if (!fs::exists(place)) return {};
  for (const auto& entry : fs::recursive_directory_iterator(place))
    if (entry.is_regular_file() && is_source(entry.path())) files.push_back(entry.path());
  return files;
}

const fs::path& root() {
  static const fs::path path = SINKSCOPE_SOURCE_DIR;
  return path;
}

TEST(Layering, NoForbiddenInclude) {
  for (const Rule& rule : rules()) {
    const std::regex forbidden(rule.forbidden);
    for (const fs::path& file : sources_below(root() / rule.folder)) {
      const std::string name = fs::relative(file, root()).string();
      if (*rule.except != '\0' && std::regex_search(name, std::regex(rule.except))) continue;
      for (const std::string& include : includes_of(file))
        EXPECT_FALSE(std::regex_search(include, forbidden))
            << name << " includes " << include << ": " << rule.why;
    }
  }
}

TEST(Layering, IncludesAreWrittenFromTheRoot) {
  for (const char* folder : {"core", "capture", "views", "app", "tests"})
    for (const fs::path& file : sources_below(root() / folder)) {
      std::ifstream in(file);
      std::string line;
      while (std::getline(in, line)) {
        if (!line.starts_with("#include \"")) continue;
        const std::string include = line.substr(10, line.find('"', 10) - 10);
        EXPECT_TRUE(fs::exists(root() / include))
            << fs::relative(file, root()).string() << " includes " << include;
      }
    }
}

struct Libraries {
  bool qt = false, torch = false;
};

// What a file includes, by itself or through headers of the tree.
Libraries libraries_of(const fs::path& file, std::map<fs::path, Libraries>& known) {
  static const std::regex qt("^(Q[A-Z]|Qt|qcustomplot)"), torch("^(torch|ATen|c10)/");
  const auto [found, is_new] = known.emplace(file, Libraries());
  if (!is_new) return found->second;
  Libraries all;
  for (const std::string& include : includes_of(file)) {
    all.qt = all.qt || std::regex_search(include, qt);
    all.torch = all.torch || std::regex_search(include, torch);
    if (!fs::exists(root() / include)) continue;
    const Libraries behind = libraries_of(root() / include, known);
    all.qt = all.qt || behind.qt;
    all.torch = all.torch || behind.torch;
  }
  return known[file] = all;
}

// Qt's `slots` breaks torch's headers, and QT_NO_KEYWORDS breaks qcustomplot.h.
TEST(FieldCases, FC86_QtAndTorchNeverMeetInOneTranslationUnit) {
  std::map<fs::path, Libraries> known;
  int n_qt = 0, n_torch = 0;
  for (const char* folder : {"core", "capture", "views", "app", "tests", "bench"})
    for (const fs::path& file : sources_below(root() / folder)) {
      const Libraries libraries = libraries_of(file, known);
      n_qt += libraries.qt;
      n_torch += libraries.torch;
      EXPECT_FALSE(libraries.qt && libraries.torch) << fs::relative(file, root()).string();
    }
  EXPECT_GT(n_qt, 50);
  EXPECT_GT(n_torch, 10);
}

// A LibTorch of the old C++ ABI would link and crash, or not link with thousands of lines.
TEST(FieldCases, FC86_CMakeRefusesALibTorchOfTheOldAbiWithASentence) {
  const std::string folder = sinkscope::test::scratch_folder();
  const fs::path torch = fs::path(folder) / "torch";
  fs::create_directories(torch / "include/ATen");
  fs::create_directories(torch / "include/torch/headeronly");
  fs::create_directories(torch / "lib");
  const auto write = [](const fs::path& path, const std::string& text) {
    std::ofstream(path) << text;
  };
  write(torch / "include/ATen/ATen.h", "");
  write(torch / "include/torch/headeronly/version.h", "#define TORCH_VERSION \"2.15.0\"\n");
  write(torch / "lib/libtorch_cpu.so", "");
  write(fs::path(folder) / "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.25)\nproject(abi LANGUAGES NONE)\n"
        "set(CMAKE_FIND_LIBRARY_PREFIXES lib)\nset(CMAKE_FIND_LIBRARY_SUFFIXES .so)\n"
        "list(APPEND CMAKE_MODULE_PATH \"" +
            (root() / "cmake").string() + "\")\nfind_package(LibTorch 2.15 REQUIRED)\n");
  const auto configure = [&](const char* symbol) {
    write(torch / "lib/libc10.so", std::string("junk\n") + symbol + "\n");
    return sinkscope::test::shell("rm -rf b; cmake -S . -B b -DSINKSCOPE_TORCH_DIR=$PWD/torch 2>&1",
                                  folder);
  };
  const auto refused = configure("_ZN3c105ErrorC1ENS_14SourceLocationESs");
  EXPECT_NE(refused.code, 0);
  EXPECT_NE(refused.out.find("C++ string ABI (_GLIBCXX_USE_CXX11_ABI=0)"), std::string::npos)
      << refused.out;
  const auto taken = configure(
      "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
  EXPECT_EQ(taken.code, 0) << taken.out;
}

TEST(Layering, TheScanFindsTheTree) {
  // A scan of an empty list would pass everything above.
  EXPECT_GT(sources_below(root() / "core").size(), 10u);
  EXPECT_GT(sources_below(root() / "capture").size(), 10u);
  EXPECT_GT(sources_below(root() / "app").size(), 10u);
  EXPECT_FALSE(includes_of(root() / "app" / "main.cpp").empty());
}

TEST(Layering, EverySourceCarriesItsLicense) {
  for (const char* folder : {"core", "capture", "views", "app", "tests"})
    for (const fs::path& file : sources_below(root() / folder)) {
      std::ifstream in(file);
      std::string line;
      std::getline(in, line);
      EXPECT_EQ(line, "// SPDX-License-Identifier: GPL-3.0-or-later")
          << fs::relative(file, root()).string();
    }
}

}  // namespace
