// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/recorded_array.h"
#include "app/cli/run_cli.h"
#include "core/h5/file.h"
#include "core/h5/object.h"
#include "tests/app/cli_run.h"
#include "tests/app/small_capture.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using test::cli;
using test::CliRun;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DumpTest : public ::testing::Test {
 protected:
  std::string folder = test::scratch_folder();
  std::string path = test::small_capture(folder);
};

TEST_F(DumpTest, TheListAsJson) {
  const auto json = nlohmann::json::parse(cli({"dump", path, "--list", "--json"}).out);
  EXPECT_EQ(json["run"], "run0");
  EXPECT_THAT(json["names"], Contains("attention/key_mass"));
}

// The elements of a .npy file, and its header text.
struct Npy {
  std::string header;
  std::vector<float> values;
};
Npy parse_npy(const std::string& bytes) {
  Npy npy;
  EXPECT_EQ(bytes.substr(1, 5), "NUMPY");
  const auto length = static_cast<std::size_t>(static_cast<unsigned char>(bytes[8]) +
                                               256 * static_cast<unsigned char>(bytes[9]));
  npy.header = bytes.substr(10, length);
  npy.values.resize((bytes.size() - 10 - length) / sizeof(float));
  std::memcpy(npy.values.data(), bytes.data() + 10 + length, npy.values.size() * sizeof(float));
  return npy;
}

TEST_F(DumpTest, AStreamSiteIsItsTokensByDims) {
  const CliRun run = cli({"dump", path, "blocks.0.hook_resid_mid", "-o", folder + "/a.npy"});
  ASSERT_EQ(run.code, 0) << run.err;
  const Npy npy = parse_npy(test::read_file(folder + "/a.npy"));
  EXPECT_THAT(npy.header, HasSubstr("(6, 7)"));
  EXPECT_THAT(npy.header, HasSubstr("<f4"));
  ASSERT_EQ(npy.values.size(), 42u);
  EXPECT_EQ(npy.values[0], 1000);
  EXPECT_EQ(npy.values[7 * 5 + 6], 1000 + 50 + 6);
  EXPECT_THAT(run.out, HasSubstr("[6, 7]"));
  EXPECT_THAT(run.out, HasSubstr("min 1000 "));
  EXPECT_THAT(run.out, HasSubstr("max 1056 "));
}

TEST_F(DumpTest, WhatLeavesABlockIsWhatEntersTheNext) {
  const CliRun pre = cli({"dump", path, "blocks.2.hook_resid_pre", "--json"});
  const CliRun post = cli({"dump", path, "blocks.1.hook_resid_post", "--json"});
  const auto a = nlohmann::json::parse(pre.out), b = nlohmann::json::parse(post.out);
  EXPECT_EQ(a["sum"], b["sum"]);
  EXPECT_EQ(a["min"], 4000);  // sites: pre 0, mid 0, post 0, mid 1, post 1
}

TEST_F(DumpTest, AMapIsHeadsByQueriesByKeys) {
  const CliRun run = cli({"dump", path + "::run1", "blocks.2.attn.hook_pattern", "-o", "-"});
  ASSERT_EQ(run.code, 0) << run.err;
  const Npy npy = parse_npy(run.out);
  EXPECT_THAT(npy.header, HasSubstr("(3, 9, 9)"));
  ASSERT_EQ(npy.values.size(), 243u);
  EXPECT_EQ(npy.values[(1 * 9 + 4) * 9 + 3], 2000 + 200 + 40 + 3);
  EXPECT_EQ(npy.values[(1 * 9 + 3) * 9 + 4], 0);
  EXPECT_THAT(run.err, HasSubstr("shape [3, 9, 9]"));
}

TEST_F(DumpTest, ATapComesByBlockOrWhole) {
  const auto one = nlohmann::json::parse(cli({"dump", path, "blocks.2.attn.hook_z", "--json"}).out);
  EXPECT_EQ(one["shape"], nlohmann::json({4, 6, 5}));
  EXPECT_EQ(one["max"], 119);
  const auto all = nlohmann::json::parse(cli({"dump", path, "attn.hook_z", "--json"}).out);
  EXPECT_EQ(all["shape"], nlohmann::json({2, 4, 6, 5}));
}

TEST_F(DumpTest, ADatasetComesByItsPathAndType) {
  const auto mass = nlohmann::json::parse(cli({"dump", path, "attention/key_mass", "--json"}).out);
  EXPECT_EQ(mass["shape"], nlohmann::json({3, 4, 6}));
  EXPECT_EQ(mass["dtype"], "float32");
  const auto ids = nlohmann::json::parse(cli({"dump", path, "input/token_ids", "--json"}).out);
  EXPECT_EQ(ids["dtype"], "int32");
  EXPECT_EQ(ids["sum"], 21);
  const auto rms =
      nlohmann::json::parse(cli({"dump", path, "stats/hook_resid_mid/token/rms", "--json"}).out);
  EXPECT_EQ(rms["dtype"], "float64");
}

TEST_F(DumpTest, NothingIsOverwrittenWithoutForce) {
  const std::string target = test::write_file(folder, "kept.npy", "mine");
  const CliRun refused = cli({"dump", path, "attention/key_mass", "-o", target});
  EXPECT_EQ(refused.code, kExitUsage);
  EXPECT_THAT(refused.err, HasSubstr("--force"));
  EXPECT_EQ(test::read_file(target), "mine");
  EXPECT_EQ(cli({"dump", path, "attention/key_mass", "-o", target, "--force"}).code, 0);
  EXPECT_NE(test::read_file(target), "mine");
}

TEST_F(DumpTest, AFailureLeavesNoFile) {
  const CliRun run = cli({"dump", path, "blocks.9.attn.hook_pattern", "-o", folder + "/no.npy"});
  EXPECT_EQ(run.code, kExitCorrupt);
  EXPECT_THAT(run.err, HasSubstr("its blocks are 0, 2"));
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    EXPECT_THAT(entry.path().string(), ::testing::Not(HasSubstr("no.npy")));
}

TEST_F(DumpTest, WhatIsNotRecordedIsNamed) {
  for (const char* hook : {"blocks.0.attn.hook_q", "hook_nothing", "attention/nothing", "attention",
                           "blocks.7.hook_resid_post", "../run1/attention/key_mass"}) {
    const CliRun run = cli({"dump", path, hook, "-q"});
    EXPECT_EQ(run.code, kExitCorrupt) << hook << run.err;
    EXPECT_EQ(test::n_lines(run.err), 1) << run.err;
    EXPECT_THAT(run.err, HasSubstr(hook));
  }
  EXPECT_EQ(cli({"dump", path, "input/text"}).code, kExitUsage);
}

TEST_F(DumpTest, RunsAreChosenByNameAndTheChoiceIsSaid) {
  const CliRun first = cli({"dump", path, "input/token_ids"});
  EXPECT_THAT(first.err, HasSubstr("run0 of 2 runs"));
  EXPECT_THAT(cli({"dump", path, "input/token_ids", "--run", "run1"}).out, HasSubstr("shape [9]"));
  EXPECT_EQ(cli({"dump", path, "input/token_ids", "--run", "all"}).code, kExitUsage);
  const CliRun none = cli({"dump", path + "::run7", "input/token_ids"});
  EXPECT_EQ(none.code, kExitCorrupt);
  EXPECT_THAT(none.err, HasSubstr("run0, run1"));
}

TEST_F(DumpTest, ListNamesOnlyWhatCanBeDumped) {
  const CliRun run = cli({"dump", path, "--list", "-q"});
  ASSERT_EQ(run.code, 0) << run.err;
  std::istringstream lines(run.out);
  int n = 0;
  for (std::string name; std::getline(lines, name); ++n)
    EXPECT_EQ(cli({"dump", path, name, "-q"}).code, 0) << name;
  EXPECT_GT(n, 60);
  EXPECT_THAT(run.out, HasSubstr("blocks.2.attn.hook_pattern\n"));
}

// A debug dump elsewhere summed only the corners it printed.
TEST_F(DumpTest, FieldCases_FC41_SumAndExtremesAreOverAllValues) {
  const auto json = nlohmann::json::parse(cli({"dump", path, "residual/stream", "--json"}).out);
  double sum = 0;
  for (int site = 0; site < 7; ++site)
    for (int token = 0; token < 6; ++token)
      for (int dim = 0; dim < 7; ++dim) sum += 1000 * site + 10 * token + dim;
  EXPECT_EQ(json["sum"], sum);
  EXPECT_EQ(json["max"], 6056);
  EXPECT_EQ(json["n_nan"], 0);
}

TEST_F(DumpTest, SmallBlocksGiveTheSameArrayAsOneLargeBlock) {
  const auto reader = CaptureReader::open(path);
  for (const char* hook : {"residual/stream", "blocks.0.attn.hook_pattern", "attention/window",
                           "stats/hook_resid_mid/dim_rest/m4", "input/token_ids"}) {
    const RecordedArray array = find_array(*reader, "run0", hook);
    std::string whole;
    const auto summary = stream_array(*reader, "run0", array, 1 << 20,
                                      [&](const char* b, std::int64_t n) { whole.append(b, n); });
    EXPECT_EQ(static_cast<std::int64_t>(whole.size()),
              array.n_elements() * element_size(array.type));
    for (const std::int64_t block : {16, 5 * 16, 7 * 16, 50 * 16}) {
      std::string pieces;
      const auto again =
          stream_array(*reader, "run0", array, block, [&](const char* b, std::int64_t n) {
            EXPECT_LE(n, block) << hook;
            pieces.append(b, n);
          });
      EXPECT_EQ(pieces, whole) << hook << " in blocks of " << block;
      EXPECT_DOUBLE_EQ(again.sum, summary.sum);
    }
  }
}

TEST_F(DumpTest, NanAndInfinityAreCountedApart) {
  // token_ids has no NaN; a fake of the numbers alone shows the counting.
  const auto reader = CaptureReader::open(path);
  const RecordedArray array = find_array(*reader, "run0", "attention/entropy");
  const ArraySummary summary =
      stream_array(*reader, "run0", array, 1 << 20, [](const char*, std::int64_t) {});
  EXPECT_EQ(summary.n_nan, 0);
  EXPECT_EQ(summary.n_inf, 0);
  EXPECT_EQ(summary.min, 0.125);
  EXPECT_EQ(summary.max, 0.625);
}

// One of three layers is there: what is not was never zero.
class UnfinishedDump : public DumpTest {
 protected:
  void SetUp() override {
    const h5::File file = h5::File::open_for_writing(path);
    for (const auto& [name, value] :
         {std::pair{"complete", 0}, {"layers_done", 1}, {"runs_done", 0}, {"runs_begun", 1}})
      h5::set_attribute(file.root(), name, value);
  }
};

TEST_F(UnfinishedDump, ALayerThatWasNotRecordedIsRefusedByName) {
  for (const char* hook : {"blocks.1.hook_resid_post", "blocks.2.attn.hook_pattern",
                           "ln_final.hook_out", "logits/loss"}) {
    const CliRun run = cli({"dump", path, hook, "-o", folder + "/a.npy"});
    EXPECT_EQ(run.code, 3) << hook << run.out;
    EXPECT_THAT(run.err, ::testing::AllOf(HasSubstr(hook), HasSubstr("1 of 3 layers are whole")));
    EXPECT_FALSE(std::filesystem::exists(folder + "/a.npy"));
  }
  EXPECT_EQ(cli({"dump", path, "blocks.0.hook_resid_post"}).code, 0);
  EXPECT_EQ(cli({"dump", path, "blocks.0.attn.hook_pattern"}).code, 0);
  EXPECT_EQ(cli({"dump", path, "input/token_ids"}).code, 0);
  EXPECT_EQ(cli({"dump", path + "::run1", "blocks.0.hook_resid_post"}).code, 3);
}

TEST_F(UnfinishedDump, ArraysOfAllLayersEndWithTheLastWholeOne) {
  const CliRun run = cli({"dump", path, "attention/key_mass", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out)["shape"], (nlohmann::json{1, 4, 6}));
  EXPECT_THAT(run.err, HasSubstr("incomplete, 1 whole layers: the 2 rows of attention/key_mass"));
  const CliRun means = cli({"dump", path, "residual/abs_mean", "--json"});
  EXPECT_EQ(nlohmann::json::parse(means.out)["shape"], (nlohmann::json{2, 7}));
  const CliRun sites = cli({"dump", path, "residual/stream", "--json"});
  EXPECT_EQ(nlohmann::json::parse(sites.out)["shape"], (nlohmann::json{3, 6, 7}));
}

TEST_F(UnfinishedDump, RescaleAndFiguresSaySo) {
  EXPECT_THAT(cli({"rescale", path}).err, HasSubstr("incomplete, 1 whole layers"));
  const CliRun figure = cli({"figure", "depth-lines", path, "-o", folder + "/f.csv"});
  EXPECT_EQ(figure.code, 0) << figure.err;
  EXPECT_THAT(figure.err, HasSubstr("incomplete, 1 whole layers"));
}

}  // namespace
}  // namespace sinkscope
