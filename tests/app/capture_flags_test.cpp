// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/capture_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseRecord, LevelsContainEachOther) {
  const RecordRequest stats = parse_record("stats"), stream = parse_record("stream"),
                      maps = parse_record("maps"), all = parse_record("all");
  EXPECT_FALSE(stats.stream || stats.maps || stats.all);
  EXPECT_TRUE(stream.stream && !stream.maps);
  EXPECT_TRUE(maps.stream && maps.maps && !maps.all);
  EXPECT_TRUE(all.stream && all.maps && all.all);
  EXPECT_FALSE(all.logits);
}

TEST(ParseRecord, LogitsAndHooksAreAddedByName) {
  const RecordRequest record = parse_record("stats,logits,hook_attn_out,mlp.hook_post");
  EXPECT_FALSE(record.stream);
  EXPECT_TRUE(record.logits);
  EXPECT_THAT(record.sites, ElementsAre("hook_attn_out", "mlp.hook_post"));
}

TEST(ParseRecord, WithoutALevelItIsTheStandardOne) {
  EXPECT_TRUE(parse_record("logits").stream);
  EXPECT_THROW(parse_record("stats,"), Error);
}

TEST(NamesStream, OnlyTheWordItselfCounts) {
  RecordFlags flags;
  EXPECT_FALSE(names_stream(flags));
  flags.record = "maps";
  EXPECT_FALSE(names_stream(flags));
  flags.record = "maps,stream";
  EXPECT_TRUE(names_stream(flags));
}

TEST(CaptureRequest, FlagsBecomeNumbers) {
  RunFlags run;
  run.device = "cuda:1";
  run.dtype = "bfloat16";
  run.threads = "3";
  run.weight_budget = "2GiB";
  run.activation_budget = "256MiB";
  RecordFlags record;
  record.record = "maps";
  record.layers = "0-3,7";
  record.heads = "1";
  record.rows = "0-63";
  record.reduce = "max";
  record.top_k = "5";
  const CaptureRequest request = capture_request(run, record);
  EXPECT_EQ(request.device, "cuda:1");
  EXPECT_EQ(request.dtype, RunDtype::bfloat16);
  EXPECT_EQ(request.threads, 3);
  EXPECT_EQ(request.weight_budget, std::int64_t{2} << 30);
  EXPECT_EQ(request.activation_budget, 256 << 20);
  EXPECT_THAT(request.record.layers, ElementsAre(0, 1, 2, 3, 7));
  EXPECT_THAT(request.record.heads, ElementsAre(1));
  EXPECT_EQ(request.record.rows.size(), 64u);
  EXPECT_EQ(request.record.reduce, Reduce::max);
  EXPECT_EQ(request.top_k, 5);
}

TEST(CaptureRequest, EveryBadValueNamesItsFlag) {
  const auto complaint = [](const RunFlags& run, const RecordFlags& record) -> std::string {
    try {
      capture_request(run, record);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  RunFlags run;
  RecordFlags record;
  run.device = "gpu";
  EXPECT_THAT(complaint(run, record), HasSubstr("--device: expected auto, cpu, cuda or cuda:N"));
  run = {};
  run.dtype = "float16";
  EXPECT_THAT(complaint(run, record), HasSubstr("--dtype"));
  run = {};
  run.threads = "0";
  EXPECT_THAT(complaint(run, record), HasSubstr("--threads"));
  run = {};
  run.kernel = "magic";
  EXPECT_THAT(complaint(run, record), HasSubstr("--kernel"));
  record.reduce = "median";
  EXPECT_THAT(complaint({}, record), HasSubstr("--reduce"));
}

TEST(CaptureRequest, FlagsOfMapsNeedMaps) {
  RecordFlags record;
  record.heads = "0";
  EXPECT_THROW(capture_request({}, record), Error);
  record.record = "maps";
  EXPECT_NO_THROW(capture_request({}, record));
}

TEST(CanonicalCommand, TheSameRequestReadsTheSame) {
  RunFlags run;
  run.dtype = "float32";
  RecordFlags record;
  record.record = "maps";
  record.layers = "0,1,2,3,7";
  PromptFlags prompt;
  prompt.bos = "auto";
  prompt.text_file = "some/file.txt";
  EXPECT_EQ(canonical_command(run, record, prompt), "capture --record maps --layers 0-3,7");
  EXPECT_EQ(canonical_command({}, {}, {}), "capture --record stream");
}

TEST(CanonicalCommand, ReadsBackIntoFlagsThatAreNotGiven) {
  RunFlags run;
  run.threads = "2";
  RecordFlags record;
  record.record = "maps";
  record.heads = "1-2";
  PromptFlags prompt;
  prompt.bos = "never";
  const std::string command = canonical_command(run, record, prompt);

  RunFlags run_back;
  RecordFlags record_back;
  record_back.record = "stats";
  PromptFlags prompt_back;
  read_command(command, run_back, record_back, prompt_back);
  EXPECT_EQ(run_back.threads, "2");
  EXPECT_EQ(record_back.heads, "1-2");
  EXPECT_EQ(prompt_back.bos, "never");
  EXPECT_EQ(record_back.record, "stats");  // the command line's own
}

TEST(CanonicalCommand, ATextThatIsNoneIsCorrupt) {
  RunFlags run;
  RecordFlags record;
  PromptFlags prompt;
  for (const char* text : {"", "rm -rf x", "capture --record", "capture --output x.h5"})
    EXPECT_THROW(read_command(text, run, record, prompt), Error) << text;
}

}  // namespace
}  // namespace sinkscope
