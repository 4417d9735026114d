// SPDX-License-Identifier: GPL-3.0-or-later
// What a key adds through W_o, against plain sums.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "core/capture_reader.h"
#include "core/rescale/report.h"
#include "tests/engine/captured.h"
#include "tests/engine/rescale_support.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace {

using ::testing::HasSubstr;

// ‖p W (g ⊙ v_0)‖ / ‖W z‖ of one head, by the sums themselves. G value heads in this block.
void expect_through_o(const CaptureReader& reader, const ModelFiles& model, const HeadEvidence& e,
                      int G, bool is_gated) {
  const auto T = static_cast<std::size_t>(reader.dims("run0", "input/token_ids")[0]);
  const auto H = static_cast<std::size_t>(model.spec().n_heads);
  const auto h = static_cast<std::size_t>(e.head);
  const auto stored =  // rows are as long as the widest block's heads
      static_cast<std::size_t>(reader.dims("run0", "taps/attn.hook_z/values").back());
  const std::size_t d = static_cast<std::size_t>(model.cols(Role::o, e.layer)) / H;
  const std::vector<double> z = tap(reader, "run0", "attn.hook_z", e.layer),
                            v = tap(reader, "run0", "attn.hook_v", e.layer),
                            gate = is_gated ? tap(reader, "run0", "attn.hook_gate", e.layer)
                                            : std::vector<double>();
  const std::size_t value = h * static_cast<std::size_t>(G) / H * T * stored;
  MatrixF o(model.rows(Role::o, e.layer), model.cols(Role::o, e.layer));
  model.read_rows(Role::o, e.layer, 0, o.rows(), o.data());
  ASSERT_EQ(e.through_o.size(), T - 1);
  for (std::size_t i = 0; i < e.query.size(); ++i) {
    const auto q = static_cast<std::size_t>(e.query[i]);
    double alone = 0, whole = 0;
    for (Eigen::Index r = 0; r < o.rows(); ++r) {
      double key = 0, all = 0;
      for (std::size_t c = 0; c < d; ++c) {
        const double w = o(r, static_cast<Eigen::Index>(h * d + c));
        const std::size_t at = (h * T + q) * stored + c;
        key += w * e.p[i] * v[value + c] * (is_gated ? gate[at] : 1);
        all += w * z[at];
      }
      alone += key * key;
      whole += all * all;
    }
    const double want = std::sqrt(alone / whole);
    EXPECT_NEAR(e.through_o[i], want, 1e-4 * std::max(1.0, want)) << e.layer << "." << e.head;
  }
}

// Values of another width than head_dim, and blocks of unlike numbers of value heads.
TEST(Rescale, ThroughWoOfLatentsAndOfUnlikeBlocks) {
  for (const char* name : {"deepseek_v3", "mimo_v2_flash"}) {
    SINKSCOPE_REQUIRE_SHARED(folder, std::string("oracles/") + name);
    const auto model = open_model(folder);
    const auto reader = record_all(*model, kIds);
    const std::int64_t width = reader->dims("run0", "taps/attn.hook_z/values").back();
    EXPECT_NE(width, model->spec().head_dim) << name;
    const RescaleReport report = rescale_report(*reader, "run0", {}, weights_of(*model));
    ASSERT_EQ(report.heads.size(),
              static_cast<std::size_t>(model->spec().n_heads * model->spec().n_layers));
    for (const HeadEvidence& e : report.heads) {
      const int G = model->spec().latent.kv_rank > 0 ? model->spec().n_heads
                                                     : model->spec().kv_heads(e.layer);
      expect_through_o(*reader, *model, e, G, false);
      // Of one head alone the value norms share a sum.
      const auto sum =
          reader->read_f64("run0", "attention/out_norm_sum", {e.layer, e.head, 6}, {1, 1, 1});
      const auto v = tap(*reader, "run0", "attn.hook_v", e.layer);
      const auto first = static_cast<std::size_t>(e.head * G / model->spec().n_heads * 7 * width);
      double square = 0;
      for (std::int64_t c = 0; c < width; ++c)
        square += std::pow(v[first + static_cast<std::size_t>(c)], 2);
      EXPECT_NEAR(e.share_after.back(), e.p.back() * std::sqrt(square) / sum[0], 1e-5) << name;
    }
  }
}

// Heads of another width from block to block (Gemma 4): the record has as much room as the widest.
TEST(Rescale, ThroughWoOfBlocksWithNarrowerHeads) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/gemma4");
  const auto model = open_model(folder);
  const auto reader = record_all(*model, kIds);
  const RescaleReport report = rescale_report(*reader, "run0", {}, weights_of(*model));
  std::set<std::int64_t> widths;
  for (const HeadEvidence& e : report.heads) {
    widths.insert(model->cols(Role::o, e.layer) / model->spec().n_heads);
    expect_through_o(*reader, *model, e, model->spec().kv_heads(e.layer), false);
  }
  EXPECT_EQ(widths, (std::set<std::int64_t>{10, 16}));
}

// z is tapped behind its gate, so that the sink's part goes through the gate too.
TEST(Rescale, ThroughWoGoesThroughTheGate) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/qwen3_next");
  const auto model = open_model(folder);
  const auto reader = record_all(*model, kIds);
  const RescaleReport report = rescale_report(*reader, "run0", {}, weights_of(*model));
  ASSERT_FALSE(report.heads.empty());
  for (const HeadEvidence& e : report.heads)
    expect_through_o(*reader, *model, e, model->spec().kv_heads(e.layer), true);
  // Recorded without the gate there is no such share, and the report says what it needs.
  CaptureRequest request = request_for(kIds);
  request.record.maps = true;
  request.record.sites = {"attn.hook_z", "attn.hook_v"};
  const auto less = CaptureReader::open(capture(*model, request));
  const RescaleReport short_of = rescale_report(*less, "run0", {}, weights_of(*model));
  for (const HeadEvidence& e : short_of.heads) EXPECT_TRUE(e.through_o.empty());
  const int block = short_of.heads.front().layer;
  EXPECT_THAT(short_of.not_computed.at("share through W_o in block " + std::to_string(block)),
              HasSubstr("gate"));
}

TEST(Rescale, ThroughWoLeavesOutWhatAWhatIfScalesOrGates) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/llama");
  const auto model = open_model(folder);
  for (const char* edit : {R"({"edit":"attention.gate","value":0.5,"layers":"1","heads":"2"})",
                           R"({"edit":"attention.value","scale":0.5,"layers":"1","heads":"2"})"}) {
    SCOPED_TRACE(edit);
    const auto reader = record_all(*model, kIds, edit);
    const RescaleReport report = rescale_report(*reader, "run0_edit0", {}, weights_of(*model));
    for (const HeadEvidence& e : report.heads)
      EXPECT_EQ(e.through_o.empty(), e.layer == 1 && e.head == 2) << e.layer << "." << e.head;
    EXPECT_THAT(report.not_computed.at("share through W_o in block 1"), HasSubstr("this what-if"));
  }
}

}  // namespace
}  // namespace sinkscope::test
