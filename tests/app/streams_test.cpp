// SPDX-License-Identifier: GPL-3.0-or-later
// A model with several residual streams on its way through the verbs: each says what it shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/run_cli.h"
#include "core/capture_reader.h"
#include "core/error.h"
#include "core/snapshot/residual_snapshot.h"
#include "tests/app/cli_run.h"
#include "tests/support/h5_reference.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using test::cli;
using test::CliRun;
using ::testing::HasSubstr;

const char* const kNote =
    "3 residual streams of 48 dimensions; dimension s·48 + d is d of stream s";

#ifdef SINKSCOPE_WITH_TORCH

std::string recorded(const std::string& model, const std::string& more = "") {
  const std::string path = test::scratch_folder() + "/run.h5";
  const CliRun run = test::shell("sinkscope capture '" + model +
                                 "' --tokens 5,9,2,31,7,8 --threads 1 -o " + path + " " + more);
  EXPECT_EQ(run.code, 0) << run.err;
  return path;
}

TEST(StreamVerbs, SinksSaysWhatADimensionIs) {
  SINKSCOPE_REQUIRE_SHARED(model, "oracles/qwen4_exp");
  const std::string path = recorded(model);
  EXPECT_THAT(cli({"sinks", path}).out, HasSubstr(kNote));
  EXPECT_THAT(cli({"sinks", path}).out, HasSubstr("of 144 dimensions"));
  EXPECT_EQ(nlohmann::json::parse(cli({"sinks", path, "--json"}).out)["model"]["n_streams"], 3);
  EXPECT_THAT(cli({path}).out, HasSubstr(kNote));
}

TEST(StreamVerbs, DumpWritesTokensStreamsAndDimensions) {
  SINKSCOPE_REQUIRE_SHARED(model, "oracles/deepseek_v4");
  const std::string path = recorded(model, "--record all");
  const std::string array = test::scratch_folder() + "/post.npy";
  const CliRun run = cli({"dump", path, "blocks.1.hook_resid_post", "-o", array});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(test::read_file(array).substr(0, 128), HasSubstr("(6, 3, 48)"));
  EXPECT_THAT(cli({"dump", path, "--list"}).out, HasSubstr("blocks.2.hyper_mlp.hook_comb"));
}

// Rows of the panel are states over all streams; the values are those of the file.
TEST(StreamVerbs, ResidualPanelShowsTheStreamsSideBySide) {
  SINKSCOPE_REQUIRE_SHARED(model, "oracles/qwen4_exp");
  const std::string path = recorded(model);
  const auto reader = CaptureReader::open(path);
  EXPECT_EQ(reader->model("run0").n_streams, 3);
  ResidualRequest request;
  request.run = "run0";
  request.site = "blocks.2.hook_resid_mid";
  request.order = DimOrder::natural;
  for (const auto source : {ResidualSource::stream, ResidualSource::window}) {
    request.source = source;
    const ResidualSnapshot shown = read_residual(*reader, request);
    EXPECT_THAT(shown.source_text, HasSubstr(kNote));
    ASSERT_EQ(shown.map.cols(), 144);
    const std::vector<float> all = test::H5Reference(path).floats("/run0/residual/stream");
    const std::size_t site = 5;  // pre, mid and post of blocks 0 and 1, mid of block 2
    for (int t = 0; t < 6; ++t)
      for (int d = 0; d < 144; ++d)
        ASSERT_EQ(
            shown.map.at(t, d),
            all[(site * 6 + static_cast<std::size_t>(t)) * 144 + static_cast<std::size_t>(d)]);
  }
}

TEST(StreamVerbs, RescaleNeedsOneStream) {
  SINKSCOPE_REQUIRE_SHARED(model, "oracles/deepseek_v4");
  const CliRun run = cli({"rescale", recorded(model)});
  EXPECT_EQ(run.code, kExitUnsupported);
  EXPECT_THAT(run.err, HasSubstr("this model has 3"));
}

TEST(StreamVerbs, DryRunSaysTheSizeOfTheFile) {
  std::string ids;
  for (int i = 0; i < 2000; ++i) ids += std::to_string(3 + i % 150) + " ";
  const std::string file = test::write_file(test::scratch_folder(), "ids.txt", ids);
  for (const char* name : {"qwen4_exp", "deepseek_v4"}) {
    SINKSCOPE_REQUIRE_SHARED(model, std::string("oracles/") + name);
    const std::string path = test::scratch_folder() + "/" + name + ".h5";
    const CliRun dry = cli({"capture", model, "--tokens-file", file, "--dry-run", "--json"});
    const CliRun run = test::shell("sinkscope capture '" + model + "' --tokens-file " + file +
                                   " --threads 1 -q -o " + path);
    ASSERT_EQ(run.code, 0) << run.err;
    const auto size = static_cast<double>(fs::file_size(path));
    EXPECT_NEAR(nlohmann::json::parse(dry.out)["total_bytes"].get<double>(), size, 0.05 * size)
        << name;
  }
}

#endif

TEST(StreamVerbs, InfoNamesTheMechanisms) {
  SINKSCOPE_REQUIRE_SHARED(qwen, "oracles/qwen4_exp");
  SINKSCOPE_REQUIRE_SHARED(deepseek, "oracles/deepseek_v4");
  const std::string one = cli({"info", qwen}).out, other = cli({"info", deepseek}).out;
  EXPECT_THAT(one, HasSubstr("3 residual streams"));
  EXPECT_THAT(one, HasSubstr("embeddings of n-grams in 1 layers"));
  EXPECT_THAT(one, HasSubstr("24 blocks of 4 keys selected"));
  EXPECT_THAT(other, HasSubstr("3 residual streams"));
  EXPECT_THAT(other, HasSubstr("compressed keys in 3 layers"));
  EXPECT_THAT(other, HasSubstr("one key and value head"));
  EXPECT_THAT(cli({"norms", qwen}).out, HasSubstr("hyper_attn"));
}

}  // namespace
}  // namespace sinkscope
