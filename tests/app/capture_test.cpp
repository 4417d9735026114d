// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/cli/run_cli.h"
#include "app/record_capture.h"
#include "core/capture_reader.h"
#include "tests/app/cli_run.h"
#include "tests/app/small_capture.h"
#include "tests/support/h5_reference.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using test::cli;
using test::CliRun;
using ::testing::HasSubstr;

const std::string kPlanted = std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted";

TEST(CaptureVerb, DryRunPrintsTheSizeTableAndMakesNothing) {
  const std::string folder = test::scratch_folder();
  const CliRun run = cli({"capture", kPlanted, "--text", "abc", "--record", "all,logits",
                          "--dry-run", "-o", folder + "/x.h5"});
  ASSERT_EQ(run.code, 0) << run.err;
  for (const char* group :
       {"attention/pattern", "residual/stream", "logits/full", "stats", "taps/attn.hook_q",
        "structure", "memory while recording", "time: about"})
    EXPECT_THAT(run.out, HasSubstr(group));
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(CaptureVerb, DryRunAsJsonHoldsWhatTheHelpPromises) {
  const CliRun run = cli({"capture", kPlanted, "--tokens", "1,2,3,4,5", "--dry-run", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::ordered_json::parse(run.out);
  EXPECT_EQ(json["schema"], "sinkscope.plan/1");
  EXPECT_EQ(json["tokens"], 5);
  std::int64_t sum = 0;
  for (const auto& group : json["groups"]) sum += group["bytes"].get<std::int64_t>();
  EXPECT_EQ(json["total_bytes"], sum);
  EXPECT_GT(json["predicted_memory_bytes"].get<std::int64_t>(), 0);
  EXPECT_GT(json["predicted_read_bytes"].get<std::int64_t>(), 0);
  EXPECT_GT(json["predicted_seconds"].get<double>(), 0);
  const std::string help = cli({"capture", "--help"}).out;
  for (const auto& [key, value] : json.items()) EXPECT_THAT(help, HasSubstr(key)) << key;
}

TEST(CaptureVerb, DryRunAsCsvIsOneTable) {
  const CliRun run = cli({"capture", kPlanted, "--tokens", "1,2,3", "--dry-run", "--csv"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, ::testing::StartsWith("group,shape,bytes\n"));
  // 9 sites, 3 tokens, 64 dimensions of 4 bytes
  EXPECT_THAT(run.out, HasSubstr("\nresidual/stream,"));
  EXPECT_THAT(run.out, HasSubstr(",6912\n"));
  EXPECT_EQ(cli({"capture", kPlanted, "--tokens", "1", "-o", "x.h5", "--csv"}).code, kExitUsage);
}

TEST(CaptureVerb, WhatTheModelDoesNotHaveIsNamed) {
  const auto refused = [](const std::vector<std::string>& more) {
    std::vector<std::string> args = {"capture", kPlanted, "--tokens", "1,2,3", "--dry-run"};
    args.insert(args.end(), more.begin(), more.end());
    const CliRun run = cli(args);
    EXPECT_EQ(run.code, kExitUsage) << run.err;
    EXPECT_EQ(test::n_lines(run.err), 1) << run.err;
    return run.err;
  };
  EXPECT_THAT(refused({"--record", "maps", "--layers", "2,9"}), HasSubstr("9"));
  EXPECT_THAT(refused({"--record", "maps", "--heads", "4"}), HasSubstr("4"));
  EXPECT_THAT(refused({"--record", "maps", "--rows", "0-7"}), HasSubstr("3"));
  EXPECT_THAT(refused({"--record", "hook_nonsense"}), HasSubstr("hook_nonsense"));
  EXPECT_THAT(refused({"--record", "blocks.3.hook_resid_post"}),
              HasSubstr("expected a hook without its block, 'hook_resid_post'; --layers says"));
}

TEST(CaptureVerb, AnExistingFileIsKept) {
  const std::string path = test::write_file(test::scratch_folder(), "mine.h5", "mine");
  const CliRun run = cli({"capture", kPlanted, "--text", "abc", "-o", path});
  EXPECT_EQ(run.code, kExitUsage);
  EXPECT_THAT(run.err, HasSubstr("--force"));
  EXPECT_EQ(test::read_file(path), "mine");
}

TEST(CaptureVerb, AModelThatCannotBeRunIsExit4WithTheReason) {
  const std::string model = test::scratch_folder() + "/model";
  fs::copy(kPlanted, model, fs::copy_options::recursive);
  std::string config = test::read_file(model + "/config.json");
  const std::string known = "\"llama\"";
  config.replace(config.find(known), known.size(), "\"martian\"");
  test::write_file(model, "config.json", config);
  const CliRun run = cli({"capture", model, "--tokens", "1,2", "--dry-run"});
  EXPECT_EQ(run.code, kExitUnsupported);
  EXPECT_THAT(run.err, HasSubstr("cannot be run"));
}

// The stream of a long text is large: it has to be asked for by its name.
TEST(CaptureVerb, AStreamBeyondFourGibibytesHasToBeNamed) {
  SINKSCOPE_REQUIRE_SHARED(model, "data/models/stories260Ktok512.gguf");
  const std::string folder = test::scratch_folder();
  // 11 sites x 64 dims x 4 bytes = 2,816 bytes a token.
  std::string ids;
  for (int i = 0; i < 1600000; ++i) ids += "5 ";
  const std::string file = test::write_file(folder, "ids.txt", ids);
  const CliRun run = cli({"capture", model, "--tokens-file", file, "-o", folder + "/x.h5", "-q"});
  EXPECT_EQ(run.code, kExitUsage);
  EXPECT_THAT(run.err, HasSubstr("stream"));
  EXPECT_THAT(run.err, HasSubstr("4.2 GiB"));
}

#ifdef SINKSCOPE_WITH_TORCH

TEST(CaptureVerb, RecordsAndSaysWhatIsNext) {
  const std::string path = test::scratch_folder() + "/run.h5";
  const CliRun run = cli({"capture", kPlanted, "--text", "hello there", "--record", "maps",
                          "--threads", "1", "-o", path});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("recorded 12 tokens"));
  EXPECT_THAT(run.out, HasSubstr("next: sinkscope sinks "));
  const auto reader = CaptureReader::open(path);
  EXPECT_TRUE(reader->complete());
  EXPECT_EQ(reader->read_text("run0", "provenance/command"), "capture --record maps --threads 1");
  EXPECT_FALSE(fs::exists(path + ".part"));
  EXPECT_EQ(test::H5Reference(path).text("/", "creator") + "\n", cli({"--version"}).out);
}

TEST(CaptureVerb, JsonHoldsWhatTheHelpPromises) {
  const std::string path = test::scratch_folder() + "/run.h5";
  const CliRun run = cli({"capture", kPlanted, "--text", "hello", "--threads", "1", "--json",
                          "--progress", "json", "-o", path});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::ordered_json::parse(run.out);
  EXPECT_EQ(json["schema"], "sinkscope.capture/1");
  EXPECT_EQ(json["tokens"], 6);
  EXPECT_EQ(json["file_bytes"], fs::file_size(path));
  const std::string help = cli({"capture", "--help"}).out;
  for (const auto& [key, value] : json.items()) EXPECT_THAT(help, HasSubstr(key)) << key;
}

// The loss of windows is that of the windows fed one by one, over the positions the rule scores,
// with the weights of transformers' documentation.
TEST(FieldCases, FC27_WindowsSayTheirRuleAndScoreByIt) {
  const std::string folder = test::scratch_folder();
  const std::string text = "the cat sat on the mat and saw the moon";  // 39 bytes and BOS
  const CliRun run =
      cli({"capture", kPlanted, "--text", text, "--window", "16", "--stride", "8", "--record",
           "stats", "--threads", "1", "--json", "-o", folder + "/hf.h5"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out)["windows"];
  EXPECT_EQ(json["rule"], "hf");
  EXPECT_EQ(json["count"], 4);
  EXPECT_EQ(json["scored"], 39);
  EXPECT_EQ(json["positions"][1]["scored_from"], 16);
  EXPECT_EQ(json["positions"][0]["bos"], nlohmann::json({0}));
  EXPECT_EQ(json["positions"][1]["bos"], nlohmann::json::array());

  const auto ids = cli({"tokenize", kPlanted, "--text", text, "--ids"}).out;
  std::istringstream words(ids);
  std::vector<std::string> all(std::istream_iterator<std::string>(words), {});
  ASSERT_EQ(all.size(), 40u);
  double sum = 0, nll_sum = 0;
  int prev_end = 0, n = 0, n_tokens = 0;
  for (int begin = 0; prev_end < 40; begin += 8) {
    const int end = std::min(begin + 16, 40);
    std::string window;
    for (int i = begin; i < end; ++i) window += all[static_cast<std::size_t>(i)] + ",";
    window.pop_back();
    const std::string path = folder + "/" + std::to_string(begin) + ".h5";
    ASSERT_EQ(cli({"capture", kPlanted, "--tokens", window, "--record", "stats", "--threads", "1",
                   "-o", path})
                  .code,
              0);
    const auto loss = CaptureReader::open(path)->read_f64("run0", "logits/loss");
    double here = 0;
    const int first = std::max(prev_end, begin + 1);
    for (int at = first; at < end; ++at) here += loss[static_cast<std::size_t>(at - begin - 1)];
    const int num_loss_tokens = end - prev_end - 1;  // valid labels, less batch_size
    nll_sum += here / (end - first) * num_loss_tokens;
    n_tokens += num_loss_tokens;
    sum += here;
    n += end - first;
    prev_end = end;
  }
  EXPECT_EQ(n, 39);
  EXPECT_EQ(n_tokens, 36);
  EXPECT_NEAR(json["mean_loss"].get<double>(), nll_sum / n_tokens, 1e-12);
  EXPECT_NEAR(json["perplexity"].get<double>(), std::exp(nll_sum / n_tokens), 1e-9);
  EXPECT_NEAR(json["position_loss"].get<double>(), sum / n, 1e-12);
  EXPECT_NE(json["mean_loss"], json["position_loss"]);
  // Its tokens again: the same windows, and the same perplexity.
  const CliRun again =
      cli({"capture", kPlanted, "--like", folder + "/hf.h5", "--json", "-o", folder + "/again.h5"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(nlohmann::json::parse(again.out)["windows"], json);
  const CliRun one = cli(
      {"capture", kPlanted, "--like", folder + "/hf.h5::run2", "--json", "-o", folder + "/one.h5"});
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(nlohmann::json::parse(one.out)["windows"]["positions"][0], json["positions"][2]);

  const CliRun llama =
      cli({"capture", kPlanted, "--text", text, "--window", "16", "--window-rule", "llama.cpp",
           "--record", "stats", "--threads", "1", "-o", folder + "/llama.h5"});
  ASSERT_EQ(llama.code, 0) << llama.err;
  EXPECT_THAT(llama.out, HasSubstr("over the 14 scored positions (rule llama.cpp)"));
  EXPECT_EQ(CaptureReader::open(folder + "/llama.h5")->read_text("run0", "provenance/command"),
            "capture --record stats --window 16 --window-rule llama.cpp --threads 1");
}

TEST(CaptureVerb, ManyPromptsAreManyRuns) {
  const std::string folder = test::scratch_folder();
  const std::string prompts = test::write_file(
      folder, "p.jsonl", "{\"text\":\"ab\",\"name\":\"short\"}\n{\"tokens\":[97,98,99,100,101]}\n");
  const CliRun run = cli({"capture", kPlanted, "--prompts", prompts, "--record", "stats",
                          "--threads", "1", "-o", folder + "/run.h5"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto reader = CaptureReader::open(folder + "/run.h5");
  ASSERT_EQ(reader->runs().size(), 2u);
  EXPECT_EQ(reader->input("run0").name, "short");
  EXPECT_EQ(reader->input("run1").seq_len(), 5);
}

TEST(CaptureVerb, LikeTakesOneRunOfACapture) {
  const std::string folder = test::scratch_folder();
  const std::string prompts =
      test::write_file(folder, "p.jsonl", "{\"tokens\":[1,2,3,4,5]}\n{\"tokens\":[9,8,7]}\n");
  ASSERT_EQ(cli({"capture", kPlanted, "--prompts", prompts, "-o", folder + "/a.h5"}).code, 0);
  const auto planned = [&](const std::string& like) {
    return nlohmann::json::parse(
        cli({"capture", kPlanted, "--like", folder + "/a.h5" + like, "--dry-run", "--json"}).out);
  };
  EXPECT_EQ(planned("")["tokens"], 8);
  EXPECT_EQ(planned("::run1")["runs"], 1);
  EXPECT_EQ(planned("::run1")["tokens"], 3);
  const CliRun absent = cli({"capture", kPlanted, "--like", folder + "/a.h5::run7", "--dry-run"});
  EXPECT_EQ(absent.code, 3);
  EXPECT_THAT(absent.err, HasSubstr("expected one of its runs (run0, run1), found 'run7'"));
}

TEST(CaptureVerb, LikeAnotherCaptureIsTheSameTokensAndOptions) {
  const std::string folder = test::scratch_folder();
  ASSERT_EQ(cli({"capture", kPlanted, "--text", "hello there", "--record", "maps", "--layers",
                 "2-3", "--threads", "1", "-o", folder + "/a.h5"})
                .code,
            0);
  const CliRun run = cli({"capture", kPlanted, "--like", folder + "/a.h5", "-o", folder + "/b.h5"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto a = CaptureReader::open(folder + "/a.h5"), b = CaptureReader::open(folder + "/b.h5");
  EXPECT_EQ(a->input("run0"), b->input("run0"));
  EXPECT_EQ(a->read_text("run0", "provenance/command"), b->read_text("run0", "provenance/command"));
  EXPECT_EQ(a->read_f32("run0", "attention/pattern"), b->read_f32("run0", "attention/pattern"));
}

TEST(CaptureVerb, LikeGivesWhatNoFlagSays) {
  const std::string folder = test::scratch_folder();
  const auto like = [&](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> args = {"capture",        kPlanted, "--like",
                                     folder + "/a.h5", "-o",     folder + "/" + name};
    args.insert(args.end(), more.begin(), more.end());
    return cli(args);
  };
  ASSERT_EQ(cli({"capture", kPlanted, "--text", "hello there", "--bos", "never", "--record", "maps",
                 "--layers", "2-3", "--threads", "1", "-o", folder + "/a.h5"})
                .code,
            0);
  ASSERT_EQ(like("layers.h5", {"--layers", "0"}).code, 0);
  const auto layers = CaptureReader::open(folder + "/layers.h5");
  EXPECT_EQ(layers->read_i32("run0", "attention/pattern_layers"), std::vector<int>{0});
  EXPECT_EQ(layers->input("run0").seq_len(), 11);
  // Another text, the same request: without BOS, too.
  ASSERT_EQ(like("text.h5", {"--text", "abc"}).code, 0);
  const auto text = CaptureReader::open(folder + "/text.h5");
  EXPECT_EQ(text->input("run0").token_ids, (std::vector<int>{'a', 'b', 'c'}));
  EXPECT_EQ(text->read_i32("run0", "attention/pattern_layers"), (std::vector<int>{2, 3}));
  // Maps of some heads are no matter where the maps are not asked for; one's own flags still are.
  ASSERT_EQ(cli({"capture", kPlanted, "--text", "hello there", "--record", "maps", "--heads", "0",
                 "--rows", "0-3", "--reduce", "mean", "--threads", "1", "--force", "-o",
                 folder + "/a.h5"})
                .code,
            0);
  const CliRun stats = like("stats.h5", {"--record", "stats"});
  EXPECT_EQ(stats.code, 0) << stats.err;
  EXPECT_EQ(CaptureReader::open(folder + "/stats.h5")->read_text("run0", "provenance/command"),
            "capture --record stats --threads 1");
  const CliRun heads = like("heads.h5", {"--record", "stats", "--heads", "1"});
  EXPECT_EQ(heads.code, kExitUsage);
  EXPECT_THAT(heads.err, HasSubstr("--heads"));
  // What makes tokens of text has nothing to do here.
  const CliRun refused = like("no.h5", {"--window", "4"});
  EXPECT_EQ(refused.code, kExitUsage);
  EXPECT_THAT(refused.err, HasSubstr("--window"));
}

TEST(CaptureVerb, LikeWithAModelOfAnotherVocabularySaysSo) {
  SINKSCOPE_REQUIRE_SHARED(stories, "data/models/stories260Ktok512.gguf");
  const std::string folder = test::scratch_folder();
  ASSERT_EQ(
      cli({"capture", kPlanted, "--text", "hello", "--threads", "1", "-o", folder + "/a.h5"}).code,
      0);
  const CliRun run = cli({"capture", stories, "--like", folder + "/a.h5", "-o", folder + "/b.h5"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("another vocabulary"));
  const auto a = CaptureReader::open(folder + "/a.h5"), b = CaptureReader::open(folder + "/b.h5");
  EXPECT_EQ(a->input("run0").token_ids, b->input("run0").token_ids);
  EXPECT_NE(a->input("run0").token_text, b->input("run0").token_text);
}

TEST(CaptureVerb, ADryRunSaysThatTheDiskIsTooSmall) {
  const CliRun run =
      cli({"capture", kPlanted, "--text", "a", "--dry-run", "-o", "/proc/self/kept.h5"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("the disk has 0 B free"));
  const CliRun roomy = cli(
      {"capture", kPlanted, "--text", "a", "--dry-run", "-o", test::scratch_folder() + "/run.h5"});
  EXPECT_THAT(roomy.err, ::testing::Not(HasSubstr("the disk has")));
}

TEST(CaptureVerb, AFullDiskIsToldBeforeTheModelRuns) {
  const CliRun run = cli({"capture", kPlanted, "--text", "a", "-o", "/proc/self/kept.h5"});
  EXPECT_EQ(run.code, kExitIo) << run.err;
  EXPECT_THAT(run.err, HasSubstr("the disk has 0 B free"));  // /proc has no room for anything
}

void expect_close(const std::vector<float>& got, const std::vector<float>& want, float relative,
                  float absolute, const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(got[i], want[i], absolute + relative * std::fabs(want[i])) << what << ' ' << i;
}

// The whole way through the program: flags, ids, file. The engine's tests do all the oracles.
TEST(CaptureVerb, AnOracleFromTheCommandLineEqualsExpected) {
  SINKSCOPE_REQUIRE_SHARED(model, "oracles/qwen2");
  const test::H5Reference want(model + "/expected.h5");
  std::string ids;
  for (const int id : want.ints("/input_ids")) ids += std::to_string(id) + ",";
  ids.pop_back();
  const std::string path = test::scratch_folder() + "/run.h5";
  const CliRun run = test::shell("sinkscope capture '" + model + "' --record all,logits --tokens " +
                                 ids + " --threads 1 -o " + path);
  ASSERT_EQ(run.code, 0) << run.err;
  const test::H5Reference got(path);
  expect_close(got.floats("/run0/residual/stream"), want.floats("/residual"), 1e-4F, 1e-4F,
               "residual");
  expect_close(got.floats("/run0/attention/pattern"), want.floats("/attention"), 0, 1e-5F,
               "attention");
  expect_close(got.floats("/run0/logits/full"), want.floats("/logits"), 1e-4F, 1e-4F, "logits");
}

// FC-44: one NaN in one row of the embedding is told by capture and by sinks, with its place.
TEST(FieldCases, FC44_ANaNInTheModelIsToldByItsPlace) {
  const std::string folder = test::scratch_folder() + "/model";
  fs::copy(kPlanted, folder, fs::copy_options::recursive);
  std::string bytes = test::read_file(folder + "/model.safetensors");
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), sizeof header_size);
  const auto header = nlohmann::json::parse(bytes.substr(8, header_size));
  const auto& embedding = header["model.embed_tokens.weight"];
  ASSERT_EQ(embedding["dtype"], "F32");
  const auto width = embedding["shape"][1].get<std::size_t>();
  const std::size_t at = 8 + header_size + embedding["data_offsets"][0].get<std::size_t>();
  const float nan = std::nanf("");
  std::memcpy(bytes.data() + at + 4 * (3 * width + 5), &nan, sizeof nan);
  test::write_file(folder, "model.safetensors", bytes);

  const std::string path = test::scratch_folder() + "/run.h5";
  const CliRun run = cli(
      {"capture", folder, "--tokens", "1,2,4,5,3,6,7,8,9,10,11,12", "--threads", "1", "-o", path});
  ASSERT_EQ(run.code, 0) << run.err;
  const std::string place =
      "are NaN or infinite, the first at blocks.0.hook_resid_pre, token 4, dimension 5";
  EXPECT_THAT(run.err, HasSubstr(place));
  const CliRun sinks = cli({"sinks", path});
  EXPECT_THAT(sinks.err, HasSubstr(place));
  EXPECT_THAT(sinks.out, HasSubstr(place));
  EXPECT_THAT(sinks.out, ::testing::Not(HasSubstr("No token is an attention sink")));
  EXPECT_THAT(sinks.out, ::testing::Not(HasSubstr("No activation is massive:")));
}

TEST(CaptureVerb, AnUnfinishedRecordingSaysWhetherAnyLayerIsWhole) {
  const std::string path = test::scratch_folder() + "/run.h5";
  EXPECT_EQ(kept_layers(path), "");
  const auto model = open_model(kPlanted);
  CaptureRequest request;
  request.runs.resize(1);
  request.runs[0].token_ids = {1, 2, 3};
  request.runs[0].token_text.resize(3);
  const CaptureLayout layout = plan_capture(*model, request);
  CaptureWriter::create(path, layout, CaptureWriter::Existing::refuse).reset();  // killed here
  EXPECT_EQ(kept_layers(path), "no layer in " + path + ".part is whole yet");
}

TEST(CaptureVerb, ADeviceThatIsNotThereIsExit6AndLeavesNoFile) {
  const std::string folder = test::scratch_folder();
  const CliRun run =
      cli({"capture", kPlanted, "--text", "a", "--device", "cuda:999", "-o", folder + "/x.h5"});
  EXPECT_EQ(run.code, kExitDevice);
  EXPECT_EQ(test::n_lines(run.err), 1) << run.err;
  EXPECT_TRUE(fs::is_empty(folder));
  // What would be refused later is refused by the dry run.
  const CliRun dry = cli({"capture", kPlanted, "--text", "a", "--device", "cuda:999", "--dry-run"});
  EXPECT_EQ(dry.code, kExitDevice);
  EXPECT_EQ(dry.out, "");
  const CliRun edited =
      cli({"whatif", kPlanted, "--text", "a", "--edit", R"({"edit":"residual.clip","limit":9})",
           "--device", "cuda:999", "--dry-run"});
  EXPECT_EQ(edited.code, kExitDevice) << edited.err;
}

TEST(CaptureVerb, InterruptedItKeepsWholeLayersAndExits130) {
  const std::string folder = test::scratch_folder();
  // Long enough to be still at work when the signal comes.
  test::write_file(folder, "text.txt", std::string(60000, 'a'));
  const CliRun run = test::shell("sinkscope capture '" + kPlanted +
                                     "' --text-file text.txt --record stats --threads 1 -o run.h5 "
                                     "& pid=$!; sleep 2; kill -INT $pid; wait $pid",
                                 folder);
  EXPECT_EQ(run.code, kExitCanceled) << run.err;
  EXPECT_FALSE(fs::exists(folder + "/run.h5"));
  EXPECT_TRUE(fs::exists(folder + "/run.h5.part"));
}

#else

TEST(CaptureVerb, WithoutLibTorchItIsExit4InOneSentence) {
  const std::string folder = test::scratch_folder();
  const CliRun run = cli({"capture", kPlanted, "--text", "a", "-o", folder + "/x.h5"});
  EXPECT_EQ(run.code, kExitUnsupported);
  EXPECT_EQ(test::n_lines(run.err), 1) << run.err;
  EXPECT_TRUE(fs::is_empty(folder));
}

#endif

}  // namespace
}  // namespace sinkscope
