// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/capture_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/capture_schema.h"
#include "core/error.h"
#include "core/sha256.h"
#include "tests/support/sample_capture.h"

namespace sinkscope {
namespace {

using testing::ElementsAre;
using Dims = std::vector<std::int64_t>;

std::map<std::string, DatasetSpec> by_path(const CaptureLayout& layout, int run) {
  std::map<std::string, DatasetSpec> out;
  for (const DatasetSpec& spec : datasets_of(layout, run)) out.emplace(spec.path, spec);
  return out;
}

TEST(FieldCases, FC42_TheStreamHasOneSiteBeforeAndTwoPerBlock) {
  EXPECT_THAT(
      residual_sites(2, false),
      ElementsAre("blocks.0.hook_resid_pre", "blocks.0.hook_resid_mid", "blocks.0.hook_resid_post",
                  "blocks.1.hook_resid_mid", "blocks.1.hook_resid_post"));
  EXPECT_THAT(residual_sites(2, true),
              ElementsAre("blocks.0.hook_resid_pre", "blocks.0.hook_resid_post",
                          "blocks.1.hook_resid_post"));
  const auto specs = by_path(test::sample_layout(), 0);
  EXPECT_EQ(specs.at("residual/stream").dims, (Dims{7, 7, 6}));
  EXPECT_EQ(specs.at("residual/abs_mean").dims, (Dims{4, 6}));
  EXPECT_EQ(specs.at("residual/final_norm").dims, (Dims{7, 6}));
}

TEST(FieldCases, FC70_ChunksDivideTheTokensEvenly) {
  EXPECT_EQ(token_chunk_side(1), 1);
  EXPECT_EQ(token_chunk_side(256), 256);
  EXPECT_EQ(token_chunk_side(257), 129);
  EXPECT_EQ(token_chunk_side(512), 256);
  EXPECT_EQ(token_chunk_side(513), 171);
  EXPECT_EQ(token_chunk_side(8192), 256);
}

TEST(CaptureLayout, MapChunksAreDoubledUntilALayerHas16000) {
  EXPECT_EQ(pattern_chunk_side(8192, 9), 256);      // 32² · 9 = 9,216
  EXPECT_EQ(pattern_chunk_side(8192, 16), 512);     // 32² · 16 = 16,384 → 16² · 16
  EXPECT_EQ(pattern_chunk_side(32768, 32), 2048);   // 128², 64², 32² · 32 are too many
  EXPECT_EQ(pattern_chunk_side(100, 20'000), 100);  // one chunk a map is the least
}

// FIPS 180-2's own example, and ids as the bytes that they are hashed as.
TEST(InputSha256, HashesIdsAsLittleEndianIntegers) {
  Sha256 abc;
  abc.add("abc", 3);
  EXPECT_EQ(abc.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 bytes;
  const unsigned char raw[] = {1, 0, 0, 0, 0, 0, 1, 0};
  bytes.add(raw, sizeof raw);
  EXPECT_EQ(input_sha256({1, 65536}), bytes.hex());
  EXPECT_NE(input_sha256({1, 2}), input_sha256({2, 1}));
}

// Twins of another capture's runs are numbered like those runs, and the first holds the model.
TEST(CaptureLayout, TwinsOfAnotherCaptureStandAlone) {
  CaptureLayout layout = test::sample_layout();
  layout.runs.resize(1);
  layout.runs[0].edit_of = 3;
  layout.runs[0].what_if = "[]";
  layout.runs[0].baseline_file = "run.h5";
  layout.runs.push_back(layout.runs[0]);
  layout.runs.push_back(layout.runs[0]);
  layout.runs[2].edit_of = 5;
  EXPECT_EQ(run_group_name(layout.runs, 0), "run3_edit0");
  EXPECT_EQ(run_group_name(layout.runs, 1), "run3_edit1");
  EXPECT_EQ(run_group_name(layout.runs, 2), "run5_edit0");
  EXPECT_TRUE(by_path(layout, 0).contains("model/config"));
  EXPECT_FALSE(by_path(layout, 1).contains("model/config"));
  EXPECT_TRUE(by_path(layout, 2).contains("compare/kl"));
  layout.runs[1].baseline_file.clear();  // in this file, which has no run3
  EXPECT_THROW(datasets_of(layout, 1), Error);
  const RunInput plain = as_it_is(layout.runs[0]);
  EXPECT_EQ(plain.edit_of, -1);
  EXPECT_EQ(plain.what_if + plain.baseline_file, "");
  EXPECT_EQ(plain.token_ids, layout.runs[0].token_ids);
}

TEST(CaptureLayout, ShapesFollowFromTheLayout) {
  const auto specs = by_path(test::sample_layout(), 0);
  EXPECT_EQ(specs.at("input/token_ids").dims, (Dims{7}));
  EXPECT_EQ(specs.at("input/text").dims, Dims{});
  EXPECT_EQ(specs.at("attention/key_mass").dims, (Dims{2, 4, 7}));
  EXPECT_EQ(specs.at("attention/value_norm").dims, (Dims{2, 2, 7}));
  EXPECT_EQ(specs.at("attention/window").dims, (Dims{2, 4, 7, 7}));
  EXPECT_EQ(specs.at("attention/visible").type, ElementType::i32);
  EXPECT_EQ(specs.at("attention/pattern").dims, (Dims{1, 3, 7, 7}));
  EXPECT_EQ(specs.at("attention/pattern").chunk, (Dims{1, 1, 7, 7}));
  EXPECT_EQ(specs.at("norm/ln_final/bias").dims, (Dims{1, 6}));
  EXPECT_FALSE(specs.contains("norm/ln1/bias"));
  EXPECT_EQ(specs.at("stats/hook_resid_post/dim_rest/m4").dims, (Dims{3, 6}));
  EXPECT_EQ(specs.at("stats/hook_resid_post/dim_rest/m4").type, ElementType::f64);
  EXPECT_EQ(specs.at("stats/hook_resid_post/median_abs").dims, (Dims{3}));
  EXPECT_FALSE(specs.contains("stats/hook_resid_post/token/input_rms"));
  EXPECT_EQ(specs.at("stats/ln_final.hook_out/token/input_max_dim").dims, (Dims{1, 7}));
  EXPECT_FALSE(specs.contains("stats/ln_final.hook_out/median_abs"));
  EXPECT_EQ(specs.at("taps/attn.hook_v/values").dims, (Dims{2, 2, 7, 3}));
  EXPECT_EQ(specs.at("taps/attn.hook_v/values").chunk, (Dims{1, 1, 7, 3}));
  EXPECT_EQ(specs.at("logits/loss").dims, (Dims{6}));
  EXPECT_EQ(specs.at("logits/top_ids").dims, (Dims{7, 3}));
  EXPECT_EQ(specs.at("logits/full").dims, (Dims{7, 11}));
}

TEST(CaptureLayout, TheModelIsListedOnce) {
  const auto first = by_path(test::sample_layout(), 0), second = by_path(test::sample_layout(), 1);
  EXPECT_TRUE(first.contains("model/config"));
  EXPECT_TRUE(first.contains("provenance/seed"));
  EXPECT_FALSE(second.contains("model/config"));
  EXPECT_FALSE(second.contains("norm/ln1/gain"));
  EXPECT_EQ(second.at("attention/key_mass").dims, (Dims{2, 4, 5}));
}

TEST(CaptureLayout, WindowsAndThumbnailsStopAt64) {
  CaptureLayout layout = test::sample_layout();
  layout.runs[0].token_ids.assign(300, 1);
  const auto specs = by_path(layout, 0);
  EXPECT_EQ(specs.at("attention/window").dims, (Dims{2, 4, 64, 64}));
  EXPECT_EQ(specs.at("attention/thumbnail").dims, (Dims{2, 4, 64, 64}));
  EXPECT_EQ(specs.at("residual/window").dims, (Dims{7, 64, 6}));
  EXPECT_EQ(specs.at("residual/stream").chunk, (Dims{1, 150, 6}));
}

TEST(CaptureLayout, PartsThatAreNotRecordedAreNotThere) {
  CaptureLayout layout = test::sample_layout();
  layout.stream = false;
  layout.pattern = {};
  layout.taps.clear();
  layout.has_head = false;
  layout.parallel_blocks = true;
  const auto specs = by_path(layout, 0);
  EXPECT_EQ(specs.at("residual/window").dims, (Dims{4, 7, 6}));
  for (const auto& [path, spec] : specs) {
    EXPECT_FALSE(path.starts_with("logits/") || path.starts_with("taps/") ||
                 path == "residual/stream" || path.starts_with("attention/pattern"))
        << path;
  }
  layout.attention_layers.clear();
  for (const auto& [path, spec] : by_path(layout, 0)) EXPECT_FALSE(path.starts_with("attention/"));
}

// A post-norm model is one whose sums before the norms of the stream have statistics.
TEST(CaptureLayout, SumsBeforeTheNormsOfTheStreamComeWithTheStream) {
  CaptureLayout layout = test::sample_layout();
  EXPECT_FALSE(by_path(layout, 0).contains("residual/prenorm"));
  layout.sites.push_back({.hook = "hook_resid_mid_sum", .layers = {0, 1, 2}, .width = 6});
  EXPECT_EQ(by_path(layout, 0).at("residual/prenorm").dims, (Dims{6, 7, 6}));
  layout.stream = false;
  EXPECT_FALSE(by_path(layout, 0).contains("residual/prenorm"));
}

// Several residual streams: side by side where a state has one axis, apart in the stream itself.
TEST(CaptureLayout, SeveralStreamsHaveAnAxisInTheStream) {
  CaptureLayout layout = test::sample_layout();
  layout.model.n_streams = 5;
  const auto specs = by_path(layout, 0);
  EXPECT_EQ(specs.at("residual/stream").dims, (Dims{7, 7, 5, 6}));
  EXPECT_EQ(specs.at("residual/stream").chunk, (Dims{1, 7, 5, 6}));
  EXPECT_EQ(specs.at("residual/window").dims, (Dims{7, 7, 30}));
  EXPECT_EQ(specs.at("residual/abs_mean").dims, (Dims{4, 30}));
  EXPECT_EQ(specs.at("residual/final_norm").dims, (Dims{7, 6}));
}

// Windows of 2 and of 9 tokens in a run of 7: three whole ones, and room for one.
TEST(CaptureLayout, CompressedKeysHaveAnArrayForEachWindow) {
  CaptureLayout layout = test::sample_layout();
  EXPECT_FALSE(by_path(layout, 0).contains("attention/compressed_mass"));
  layout.has_compressed_keys = true;
  layout.taps = {{"two", {0, 2}, {4, kSeqLen, -2}}, {"nine", {1}, {-9, 3}}};
  const auto specs = by_path(layout, 0);
  EXPECT_EQ(specs.at("attention/compressed_mass").dims, (Dims{2, 4, 7}));
  EXPECT_EQ(specs.at("taps/two/values").dims, (Dims{2, 4, 7, 3}));
  EXPECT_EQ(specs.at("taps/two/values").chunk, (Dims{1, 1, 7, 3}));
  EXPECT_EQ(specs.at("taps/nine/values").dims, (Dims{1, 1, 3}));
}

TEST(CaptureLayout, ReducedMapsAreOneALayer) {
  CaptureLayout layout = test::sample_layout();
  layout.pattern.reduce = Reduce::max;
  layout.pattern.rows = {0, 3, 6, 5};
  const auto specs = by_path(layout, 0);
  EXPECT_EQ(specs.at("attention/pattern").dims, (Dims{1, 1, 4, 7}));
  EXPECT_EQ(specs.at("attention/pattern").chunk, (Dims{1, 1, 4, 7}));
  EXPECT_EQ(specs.at("attention/pattern_heads").dims, (Dims{1}));
}

TEST(CaptureLayout, SizesAreThoseOfTheElements) {
  const auto specs = by_path(test::sample_layout(), 0);
  EXPECT_EQ(specs.at("attention/key_mass").n_bytes(), 2 * 4 * 7 * 4);
  EXPECT_EQ(specs.at("stats/hook_resid_post/dim_rest/m2").n_bytes(), 3 * 6 * 8);
  EXPECT_EQ(specs.at("input/token_text").n_bytes(), 0);
}

TEST(CaptureLayout, EveryDatasetHasARule) {
  for (int run : {0, 1}) {
    for (const DatasetSpec& spec : datasets_of(test::sample_layout(), run)) {
      const DatasetRule* rule = find_rule(spec.path);
      ASSERT_NE(rule, nullptr) << spec.path;
      EXPECT_EQ(rule->type, spec.type) << spec.path;
    }
  }
  EXPECT_EQ(find_rule("stats/a/b/token/rms"), nullptr);
  EXPECT_EQ(find_rule("attention/unheard_of"), nullptr);
}

TEST(CaptureLayout, ContradictionsAreRefusedByName) {
  const auto message = [](auto change) {
    CaptureLayout layout = test::sample_layout();
    change(layout);
    try {
      datasets_of(layout, 0);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  using testing::HasSubstr;
  EXPECT_THAT(message([](auto& l) { l.taps[0].hook = "a/b"; }), HasSubstr("\"a/b\""));
  EXPECT_THAT(message([](auto& l) { l.sites[1].hook = "."; }), HasSubstr("\".\""));
  EXPECT_THAT(message([](auto& l) { l.norms[0].gain.pop_back(); }),
              HasSubstr("norm ln1: expected 3 layers x 6 = 18 values, found 17"));
  EXPECT_THAT(message([](auto& l) { l.runs[0].token_ids.clear(); }), HasSubstr("run0"));
}

}  // namespace
}  // namespace sinkscope
