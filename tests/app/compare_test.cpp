// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/capture_reader.h"
#include "tests/app/cli_run.h"
#include "tests/app/small_capture.h"
#include "tests/support/h5_reference.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using test::cli;
using test::CliRun;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CompareVerb, ACaptureEqualsItself) {
  const std::string path = test::small_capture(test::scratch_folder());
  const CliRun run = cli({"compare", path, path, "--tolerance", "0"});
  EXPECT_EQ(run.code, 0) << run.err << run.out;
  EXPECT_THAT(run.out, AllOf(HasSubstr("the same 6 tokens"), HasSubstr("B − A: 0 of "),
                             HasSubstr("within 0")));
}

TEST(CompareVerb, RunsAreMatchedByNameOrAsNamed) {
  const std::string path = test::small_capture(test::scratch_folder());
  const auto both = nlohmann::json::parse(cli({"compare", path, path, "--json"}).out);
  EXPECT_EQ(both["comparisons"][0]["runs"].size(), 2u);
  const auto pair =
      nlohmann::json::parse(cli({"compare", path + "::run0", path + "::run1", "--json"}).out);
  const auto& run = pair["comparisons"][0]["runs"][0];
  EXPECT_EQ(run["same_tokens"], false);
  EXPECT_THAT(run["notes"].dump(), HasSubstr("6 tokens in A, 9 in B"));
  EXPECT_EQ(cli({"compare", path + "::run0", path + "::run1", "--tolerance", "1e9"}).code, 1);
  EXPECT_EQ(cli({"compare", path, path + "::run7"}).code, 3);
  EXPECT_EQ(cli({"compare", path}).code, 2);
  EXPECT_EQ(cli({"compare", path, path + ".none"}).code, 3);
}

TEST(CompareVerb, JsonHoldsWhatTheHelpPromisesAndCsvARowASite) {
  const std::string path = test::small_capture(test::scratch_folder());
  const std::string help = cli({"compare", "--help"}).out;
  const auto json =
      nlohmann::ordered_json::parse(cli({"compare", path, path, "--json", "--tolerance", "1"}).out);
  const auto documented = [&](const nlohmann::ordered_json& object) {
    for (const auto& [key, value] : object.items()) EXPECT_THAT(help, HasSubstr(key)) << key;
  };
  documented(json);
  documented(json["verdict"]);
  documented(json["comparisons"][0]);
  const auto& run = json["comparisons"][0]["runs"][0];
  documented(run);
  documented(run["sites"][0]);
  documented(run["sinks"]);
  std::size_t n_sites = 0;
  for (const auto& each : json["comparisons"][0]["runs"]) n_sites += each["sites"].size();
  const std::string csv = cli({"compare", path, path, "--csv"}).out;
  EXPECT_EQ(test::n_lines(csv), static_cast<int>(n_sites) + 1);
}

#ifdef SINKSCOPE_WITH_TORCH

const std::string kModel = SINKSCOPE_SOURCE_DIR "/sample_data/planted";

class CompareRuns : public ::testing::Test {
 protected:
  std::string capture(const std::string& name, std::vector<std::string> more) const {
    const std::string path = folder_ + "/" + name;
    std::vector<std::string> args = {"capture", kModel, "--threads", "1", "-o", path};
    args.insert(args.end(), more.begin(), more.end());
    const CliRun run = cli(args);
    EXPECT_EQ(run.code, 0) << run.err;
    return path;
  }
  nlohmann::json first_run(const std::string& a, const std::string& b) const {
    const CliRun run = cli({"compare", a, b, "--json"});
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(run.out)["comparisons"][0]["runs"][0];
  }
  const std::string folder_ = test::scratch_folder();
};

TEST_F(CompareRuns, TheLargestDifferenceIsWhereAPlainLoopFindsIt) {
  const std::string text = "hello there, all of you";
  const std::string a = capture("a.h5", {"--text", text, "--record", "maps"});
  const std::string b = capture("b.h5", {"--text", text, "--dtype", "bfloat16"});
  const CliRun text_run = cli({"compare", a, b, "--tolerance", "1e-6"});
  EXPECT_EQ(text_run.code, 1);
  EXPECT_EQ(test::n_lines(text_run.err), 1) << text_run.err;
  EXPECT_THAT(text_run.out,
              AllOf(HasSubstr("the same 24 tokens"), HasSubstr("'float32' in A, 'bfloat16' in B"),
                    HasSubstr("only in A: attention/pattern"), HasSubstr("not within 1e-06")));
  // Whatever the tolerance: B has no maps.
  const CliRun loose = cli({"compare", a, b, "--tolerance", "1"});
  EXPECT_EQ(loose.code, 1);
  EXPECT_THAT(loose.err, HasSubstr("only A has attention/pattern"));
  const std::string whole = capture("c.h5", {"--text", text});
  EXPECT_EQ(cli({"compare", whole, b, "--tolerance", "1"}).code, 0);

  const auto left = CaptureReader::open(a), right = CaptureReader::open(b);
  const auto dims = left->dims("run0", "residual/stream");
  const auto x = left->read_f32("run0", "residual/stream"),
             y = right->read_f32("run0", "residual/stream");
  const auto run = first_run(a, b);
  std::int64_t s = 0;
  for (const auto& site : run["sites"]) {
    if (site["dataset"] != "residual/stream") continue;
    double largest = 0;
    std::int64_t at = 0;
    for (std::int64_t i = 0; i < dims[1] * dims[2]; ++i) {
      const auto k = static_cast<std::size_t>(s * dims[1] * dims[2] + i);
      const double difference = std::abs(static_cast<double>(y[k]) - static_cast<double>(x[k]));
      if (difference > largest) at = i;
      largest = std::max(largest, difference);
    }
    EXPECT_EQ(site["max_abs"], largest) << site["site"];
    if (largest > 0) {
      EXPECT_EQ(site["at"]["token"], at / dims[2]);
      EXPECT_EQ(site["at"]["dim"], at % dims[2]);
    }
    ++s;
  }
  EXPECT_EQ(s, dims[0]);
}

TEST_F(CompareRuns, AToleranceAllowsNothingToBeMissing) {
  const std::string text = "hello there, all of you";
  const std::string whole = capture("whole.h5", {"--text", text, "--record", "maps"});
  const std::string stats = capture("stats.h5", {"--text", text, "--record", "stats"});
  const std::string one = capture("one.h5", {"--text", text, "--record", "maps", "--layers", "1"});
  for (const auto& [a, b] : {std::pair(whole, stats), std::pair(stats, whole)}) {
    const CliRun run = cli({"compare", a, b, "--tolerance", "1e300"});
    EXPECT_EQ(run.code, 1) << run.out;
    EXPECT_THAT(run.out, HasSubstr("residual/stream"));
  }
  const CliRun run = cli({"compare", whole, one, "--tolerance", "1e300"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("other blocks: attention/pattern"));
}

TEST_F(CompareRuns, CountsAreJudged) {
  const std::string a = capture("a.h5", {"--text", "hello there", "--record", "stats"});
  for (const char* dataset : {"run0/attention/visible", "run0/stats/hook_resid_post/token/n_nan"}) {
    const std::string b = folder_ + "/b.h5";
    std::filesystem::copy_file(a, b, std::filesystem::copy_options::overwrite_existing);
    test::set_first_integer(b, dataset, 99);
    EXPECT_EQ(cli({"compare", a, b, "--tolerance", "0"}).code, 1) << dataset;
    EXPECT_THAT(cli({"compare", a, b, "--tolerance", "0"}).err,
                HasSubstr(std::string(dataset).substr(5) + ": 1 of"));
  }
}

TEST(FieldCases, FC23_InputsThatDifferInBosAreSaidBeforeTheNumbers) {
  const std::string folder = test::scratch_folder();
  for (const char* bos : {"always", "never"})
    ASSERT_EQ(cli({"capture", kModel, "--text", "a day in April", "--bos", bos, "--threads", "1",
                   "-o", folder + "/" + bos + ".h5"})
                  .code,
              0);
  const CliRun run = cli({"compare", folder + "/always.h5", folder + "/never.h5"});
  EXPECT_EQ(run.code, 0) << run.err;
  const auto said = run.out.find("Inputs differ: BOS. Only A begins with a BOS token");
  ASSERT_NE(said, std::string::npos) << run.out;
  EXPECT_LT(said, run.out.find("B − A:"));
  // Without its sink token the model has no sink, and its massive activation is gone.
  EXPECT_THAT(run.out, AllOf(HasSubstr("attention.gu.sink_ratio"),
                             HasSubstr("4,096.0 at blocks.1.hook_resid_post token 0 dim 37 → 32")));
}

TEST_F(CompareRuns, AnEditedTwinShowsWhereItsSinksWent) {
  const std::string path = folder_ + "/edited.h5";
  ASSERT_EQ(
      cli({"whatif", kModel, "--text", "a day in April, or in May", "--threads", "1", "--edit",
           R"({"edit":"attention.mask_key","keys":[0],"renormalize":true})", "-o", path})
          .code,
      0);
  const CliRun text = cli({"compare", path + "::run0", path + "::run0_edit0"});
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("Different what-ifs"), HasSubstr("mask_key"),
                    HasSubstr("sink tokens only in A: 0"), HasSubstr("attention.gu.sink_ratio")));
  const auto run = first_run(path + "::run0", path + "::run0_edit0");
  const auto head = run["sinks"]["head"];
  EXPECT_NEAR(head["a"].get<double>(), 1, 0.01);
  EXPECT_LT(head["b"].get<double>(), 0.1);  // the query at the key keeps its own
}

TEST_F(CompareRuns, SeveralCapturesAreComparedWithTheFirst) {
  const std::string a = capture("a.h5", {"--tokens", "1,2,3,4,5"});
  const std::string b = capture("b.h5", {"--tokens", "1,2,3,4,5", "--record", "stats"});
  const std::string c = capture("c.h5", {"--tokens", "1,2,9,4,5"});
  const auto json = nlohmann::json::parse(cli({"compare", a, b, c, "--json"}).out);
  ASSERT_EQ(json["comparisons"].size(), 2u);
  EXPECT_THAT(json["comparisons"][0]["runs"][0]["only_a"].dump(), HasSubstr("residual/stream"));
  EXPECT_EQ(json["comparisons"][1]["a"], a);
  EXPECT_THAT(json["comparisons"][1]["runs"][0]["notes"].dump(), HasSubstr("at position 2"));
  // Before the token that differs everything is the same.
  for (const auto& site : json["comparisons"][1]["runs"][0]["sites"])
    if (site["dataset"] == "residual/stream" && site["max_abs"] > 0) {
      EXPECT_GE(site["at"]["token"], 2);
    }
}

#endif  // SINKSCOPE_WITH_TORCH

}  // namespace
}  // namespace sinkscope
