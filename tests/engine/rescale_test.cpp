// SPDX-License-Identifier: GPL-3.0-or-later
// Evidence about outliers, from recordings of models whose numbers are known.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "core/capture_reader.h"
#include "core/rescale/report.h"
#include "core/snapshot/rescaling_snapshot.h"
#include "tests/engine/captured.h"
#include "tests/engine/reference_model.h"
#include "tests/support/h5_reference.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace {

using ::testing::HasSubstr;

void add_twin(CaptureRequest& request, const std::string& what_if) {
  RunInput twin = request.runs.front();
  twin.edit_of = 0;
  twin.what_if = what_if;
  request.runs.push_back(twin);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

// What reads a norm of width D, and W_o, whole.
WeightRows weights_of(const ModelFiles& model) {
  return [&model](const std::string& which, int layer,
                  const std::function<void(const MatrixF&)>& visit) {
    const std::vector<Role> roles =
        which == "ln1"   ? std::vector{Role::q, Role::k, Role::v, Role::q_a, Role::kv_a}
        : which == "ln2" ? std::vector{Role::gate, Role::up}
        : which == "o"   ? std::vector{Role::o}
                         : std::vector{Role::unembed};
    for (Role role : roles) {
      if (!model.has(role, layer)) continue;
      if (which != "o" && model.cols(role, layer) != model.spec().d_model) continue;
      MatrixF rows(model.rows(role, layer), model.cols(role, layer));
      model.read_rows(role, layer, 0, rows.rows(), rows.data());
      visit(rows);
    }
  };
}

std::unique_ptr<CaptureReader> record_all(const ModelFiles& model, const std::vector<int>& ids,
                                          const std::string& what_if = "") {
  CaptureRequest request = request_for(ids);
  request.record.all = request.record.maps = true;
  if (!what_if.empty()) add_twin(request, what_if);
  return CaptureReader::open(capture(model, request));
}

// Rows of a recorded array of one block.
std::vector<double> tap(const CaptureReader& reader, const std::string& run,
                        const std::string& hook, int layer) {
  const std::string group = "taps/" + hook;
  const std::vector<int> layers = reader.read_i32(run, group + "/layers");
  const auto row = std::find(layers.begin(), layers.end(), layer) - layers.begin();
  std::vector<std::int64_t> count = reader.dims(run, group + "/values"), start(count.size(), 0);
  start[0] = row;
  count[0] = 1;
  return reader.read_f64(run, group + "/values", start, count);
}

// [T, D] that the norm put out.
std::vector<double> output_of(const CaptureReader& reader, const std::string& run,
                              const NormEvidence& e) {
  return e.layer < 0 ? reader.read_f64(run, "residual/final_norm")
                     : tap(reader, run, e.role + ".hook_out", e.layer);
}

double square_at(const std::vector<double>& rows, std::size_t t, std::size_t width) {
  double sum = 0;
  for (std::size_t d = 0; d < width; ++d) sum += rows[t * width + d] * rows[t * width + d];
  return sum;
}

// Every share after a norm is that of the recorded output; how many of them the input's gains and
// the norm's formula would have had wrong by more than a thousandth.
int expect_recorded_shares(const CaptureReader& reader, const std::string& run,
                           const RescaleReport& report, std::size_t D) {
  int n_other = 0;
  for (const NormEvidence& e : report.norms) {
    const std::vector<double> y = output_of(reader, run, e);
    for (std::size_t t = 0; t < e.r2.size(); ++t) {
      const double peak = y[t * D + static_cast<std::size_t>(e.dim[t])];
      const double share = peak * peak / square_at(y, t, D);
      EXPECT_NEAR(e.share_after[t], share, 1e-6) << e.role << e.layer << " " << t;
      const double gain = e.gain_dim[t];
      const double formula = gain * gain * e.r2[t] / (square_at(y, t, D) / static_cast<double>(D));
      n_other += std::abs(formula - share) > 1e-3 ? 1 : 0;
    }
  }
  return n_other;
}

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

// α at the final norm for the residual-sink dimension, ordinary and trigger tokens apart.
TEST(Rescale, TrainedModelScalesOrdinaryTokensAndLeavesTriggers) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/lab_baseline_0");
  const H5Reference want(folder + "/expected.h5");
  const auto model = open_model(folder);
  const std::vector<std::int64_t> ids = want.integers("/sequences");  // [256, 33]
  CaptureRequest request = request_for({0});
  request.runs.clear();
  for (std::size_t s = 0; s < 256; ++s) {
    RunInput run;
    for (std::size_t t = 0; t < 32; ++t) run.token_ids.push_back(static_cast<int>(ids[s * 33 + t]));
    run.token_text.resize(32);
    request.runs.push_back(run);
  }
  const auto reader = CaptureReader::open(capture(*model, request));
  RescaleOptions options;
  options.dims = {static_cast<int>(want.number("/", "residual_sink_dim"))};
  std::vector<double> ordinary, trigger;
  for (std::size_t s = 0; s < 256; ++s) {
    const RescaleReport report = rescale_report(*reader, reader->runs()[s], options);
    ASSERT_EQ(report.norms.size(), 7u);
    const NormEvidence& last = report.norms.back();
    ASSERT_EQ(last.role, "ln_final");
    for (const NormEvidence& e : report.norms) EXPECT_EQ(e.n_above, 0) << e.role << e.layer;
    for (std::size_t t = 0; t < 32; ++t) {
      const auto id = ids[s * 33 + t];
      if (id >= 5)
        ordinary.push_back(last.alpha[t]);
      else if (id >= 1)
        trigger.push_back(last.alpha[t]);
    }
  }
  EXPECT_NEAR(median(ordinary), want.number("/", "alpha_ordinary_median"), 1e-3);
  EXPECT_NEAR(median(trigger), want.number("/", "alpha_trigger_median"), 1e-3);
}

// Shares after the norm and into the next linear layer against plain sums in double.
TEST(Rescale, SharesAreThoseOfTheTensors) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/llama");
  const auto model = open_model(folder);
  CaptureRequest request = request_for({3, 1, 4, 1, 5, 9, 2});
  request.record.all = request.record.maps = true;
  const auto reader = CaptureReader::open(capture(*model, request));
  const WeightRows weights = weights_of(*model);
  const RescaleReport report = rescale_report(*reader, "run0", {}, weights);
  EXPECT_TRUE(report.not_computed.empty());
  const int T = 7, D = model->spec().d_model;
  for (const NormEvidence& e : report.norms) {
    if (e.role != "ln2") continue;
    const auto y = reader->read_f64("run0", "taps/ln2.hook_out/values", {e.layer, 0, 0}, {1, T, D});
    for (int t = 0; t < T; ++t) {
      const auto at = [&](int d) { return y[static_cast<std::size_t>(t * D + d)]; };
      const int dim = e.dim[static_cast<std::size_t>(t)];
      double all = 0, whole = 0, column = 0;
      for (int d = 0; d < D; ++d) all += at(d) * at(d);
      EXPECT_NEAR(e.share_after[static_cast<std::size_t>(t)], at(dim) * at(dim) / all, 1e-5);
      for (Role role : {Role::gate, Role::up}) {
        MatrixF w(model->rows(role, e.layer), D);
        model->read_rows(role, e.layer, 0, w.rows(), w.data());
        for (Eigen::Index r = 0; r < w.rows(); ++r) {
          double sum = 0;
          for (int d = 0; d < D; ++d) sum += static_cast<double>(w(r, d)) * at(d);
          whole += sum * sum;
          column += static_cast<double>(w(r, dim)) * w(r, dim);
        }
      }
      EXPECT_NEAR(e.next_linear[static_cast<std::size_t>(t)],
                  std::abs(at(dim)) * std::sqrt(column / whole), 1e-4);
    }
  }
  // One head by hand: p ‖v_0‖ / Σ p ‖v‖ and ‖p W v_0‖ / ‖W z‖.
  const int H = model->spec().n_heads, G = model->spec().n_kv_heads, d = model->spec().head_dim;
  const HeadEvidence& e = report.heads[static_cast<std::size_t>(H + 1)];  // layer 1, head 1
  ASSERT_EQ(e.layer, 1);
  ASSERT_EQ(e.head, 1);
  const auto p = reader->read_f64("run0", "attention/pattern", {1, 1, 0, 0}, {1, 1, T, T});
  const auto v =
      reader->read_f64("run0", "taps/attn.hook_v/values", {1, 1 / (H / G), 0, 0}, {1, 1, T, d});
  MatrixF o(model->rows(Role::o, 1), model->cols(Role::o, 1));
  model->read_rows(Role::o, 1, 0, o.rows(), o.data());
  const auto norm = [&](int t) {
    double sum = 0;
    for (int c = 0; c < d; ++c)
      sum += v[static_cast<std::size_t>(t * d + c)] * v[static_cast<std::size_t>(t * d + c)];
    return std::sqrt(sum);
  };
  for (std::size_t i = 0; i < e.query.size(); ++i) {
    const int q = e.query[i];
    const double* row = &p[static_cast<std::size_t>(q * T)];
    double mass = 0, alone = 0, whole = 0;
    for (int j = 0; j <= q; ++j) mass += row[j] * norm(j);
    EXPECT_NEAR(e.share_after[i], row[0] * norm(0) / mass, 1e-5);
    for (Eigen::Index r = 0; r < o.rows(); ++r) {
      double z = 0, sink = 0;
      for (int c = 0; c < d; ++c) {
        const double w = o(r, d + c);
        sink += w * row[0] * v[static_cast<std::size_t>(c)];
        for (int j = 0; j <= q; ++j) z += w * row[j] * v[static_cast<std::size_t>(j * d + c)];
      }
      alone += sink * sink;
      whole += z * z;
    }
    EXPECT_NEAR(e.through_o[i], std::sqrt(alone / whole), 1e-4 * std::max(1.0, e.through_o[i]));
  }
}

const std::vector<int> kIds = {3, 1, 4, 1, 5, 9, 2};

// A gate stands between a norm and what it puts out: the share is the recorded output's, the part
// of the next linear layer too, and without a record there is none.
TEST(Rescale, SharesBehindAGatedNormAreThoseOfItsOutput) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/axk2");
  const auto model = open_model(folder);
  const auto D = static_cast<std::size_t>(model->spec().d_model);
  const WeightRows weights = weights_of(*model);
  const auto reader = record_all(*model, kIds);
  const RescaleReport all = rescale_report(*reader, "run0", {}, weights);
  EXPECT_GT(expect_recorded_shares(*reader, "run0", all, D), 20);
  const auto gated = std::find_if(all.norms.begin(), all.norms.end(),
                                  [](const auto& e) { return e.role == "ln1" && e.layer == 1; });
  ASSERT_NE(gated, all.norms.end());
  const std::vector<double> y = output_of(*reader, "run0", *gated);
  for (std::size_t t = 0; t < kIds.size(); ++t) {
    double whole = 0, column = 0;
    const auto dim = static_cast<std::size_t>(gated->dim[t]);
    weights("ln1", 1, [&](const MatrixF& w) {
      for (Eigen::Index r = 0; r < w.rows(); ++r) {
        double sum = 0;
        for (std::size_t d = 0; d < D; ++d)
          sum += static_cast<double>(w(r, static_cast<Eigen::Index>(d))) * y[t * D + d];
        whole += sum * sum;
        column += std::pow(static_cast<double>(w(r, static_cast<Eigen::Index>(dim))), 2);
      }
    });
    EXPECT_NEAR(gated->next_linear[t], std::abs(y[t * D + dim]) * std::sqrt(column / whole), 1e-4);
  }

  for (const bool with_stream : {true, false}) {
    CaptureRequest request = request_for(kIds);
    request.record.stream = with_stream;
    const auto less = CaptureReader::open(capture(*model, request));
    const RescaleReport report = rescale_report(*less, "run0", {}, weights);
    ASSERT_EQ(report.norms.size(), all.norms.size());
    for (std::size_t n = 0; n < report.norms.size(); ++n) {
      const NormEvidence& e = report.norms[n];
      const bool has_gate =
          model->spec().has_norm_gate(e.layer, e.role == "ln1"   ? Role::ln1
                                               : e.role == "ln2" ? Role::ln2
                                                                 : Role::ln_final);
      EXPECT_EQ(e.alpha, all.norms[n].alpha);
      EXPECT_EQ(e.next_linear.empty(), has_gate || !with_stream) << e.role << e.layer;
      for (std::size_t t = 0; t < e.r2.size(); ++t)
        if (has_gate)
          EXPECT_TRUE(std::isnan(e.share_after[t])) << e.role << e.layer;
        else
          EXPECT_NEAR(e.share_after[t], all.norms[n].share_after[t], 1e-5) << e.role << e.layer;
    }
    EXPECT_THAT(report.not_computed.at("share after ln1"), HasSubstr("gated norms"));
    EXPECT_FALSE(report.not_computed.contains("share after ln_final"));
    // Nothing is drawn or said of a share that is not known.
    const RescalingSnapshot seen = rescaling_snapshot(*less, {"run0", {}, 0}, weights);
    for (const NormCloud& cloud : seen.norms) {
      EXPECT_EQ(cloud.bound_rest.size() + cloud.bound_first.size(),
                cloud.layers.size() * kIds.size());
      for (const RescalingPoint& point : cloud.shares) EXPECT_TRUE(std::isfinite(point.y));
    }
    EXPECT_TRUE(seen.norms[0].shares.empty());
    EXPECT_FALSE(seen.norms.back().shares.empty());
    EXPECT_THAT(seen.suggestion, HasSubstr("Attention norms: the first token's largest"));
    EXPECT_THAT(seen.suggestion, HasSubstr("before, an unknown share after."));
    EXPECT_THAT(seen.suggestion, ::testing::Not(HasSubstr("nan")));
  }
}

// Under an edit of a norm neither its formula nor its factors hold; what was recorded does.
TEST(Rescale, SharesOfEditedNormsAreThoseOfTheirOutput) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/llama");
  const auto model = open_model(folder);
  const auto D = static_cast<std::size_t>(model->spec().d_model);
  for (const char* edit :
       {R"({"edit":"norm.replace","with":"none","norms":["ln2"]})",
        R"({"edit":"norm.probe","mode":"zero","dims":"0-30","norms":["ln2"]})"}) {
    SCOPED_TRACE(edit);
    const auto reader = record_all(*model, kIds, edit);
    const RescaleReport report = rescale_report(*reader, "run0_edit0", {}, weights_of(*model));
    EXPECT_GT(expect_recorded_shares(*reader, "run0_edit0", report, D), 3);
    for (const NormEvidence& e : report.norms)
      for (std::size_t t = 0; t < e.r2.size(); ++t) {
        EXPECT_EQ(std::isnan(e.alpha[t]), e.role == "ln2");
        EXPECT_EQ(std::isnan(e.elasticity[t]), e.role == "ln2");
      }
    EXPECT_TRUE(report.not_computed.contains("rescale factors at ln2"));
    EXPECT_FALSE(report.not_computed.contains("rescale factors at ln1"));

    CaptureRequest request = request_for(kIds);
    request.record.stream = true;
    add_twin(request, edit);
    const auto less = CaptureReader::open(capture(*model, request));
    const RescaleReport short_of = rescale_report(*less, "run0_edit0", {}, weights_of(*model));
    for (const NormEvidence& e : short_of.norms) {
      EXPECT_EQ(std::isnan(e.share_after[2]), e.role == "ln2") << e.role;
      EXPECT_EQ(e.next_linear.empty(), e.role == "ln2") << e.role;
    }
    EXPECT_THAT(short_of.not_computed.at("share after ln2"), HasSubstr("edited norms"));
    const RescaleReport own = rescale_report(*less, "run0", {}, weights_of(*model));
    for (const NormEvidence& e : own.norms) EXPECT_FALSE(std::isnan(e.share_after[2]));
  }
}

// Without its norms a model's states lie above what an RMSNorm could put out, and the report
// counts them: bounds from the stream and the gains, in plain loops.
TEST(Rescale, CountsPointsAboveTheirBound) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/llama");
  const auto model = open_model(folder);
  const int D = model->spec().d_model, L = model->spec().n_layers,
            T = static_cast<int>(kIds.size());
  const auto reader = record_all(*model, kIds, R"({"edit":"norm.replace","with":"none"})");
  const RescaleReport report = rescale_report(*reader, "run0_edit0", {});
  int all_above = 0;
  for (const NormEvidence& e : report.norms) {
    const int site = e.role == "ln1" ? 2 * e.layer : e.role == "ln2" ? 2 * e.layer + 1 : 2 * L;
    const auto h = reader->read_f64("run0_edit0", "residual/stream", {site, 0, 0}, {1, T, D});
    const std::vector<int> rows = reader->read_i32("run0", "norm/" + e.role + "/layers");
    const auto row = std::find(rows.begin(), rows.end(), e.layer) - rows.begin();
    const auto gain = reader->read_f64("run0", "norm/" + e.role + "/gain", {row, 0}, {1, D});
    int above = 0;
    for (int t = 0; t < T; ++t) {
      const double* x = &h[static_cast<std::size_t>(t * D)];
      int dim = 0;
      double square = 0, most = 0, others = 0;
      for (int d = 0; d < D; ++d) {
        square += x[d] * x[d];
        if (std::abs(x[d]) > std::abs(x[dim])) dim = d;
      }
      for (int d = 0; d < D; ++d) {
        const double size = std::abs(gain[static_cast<std::size_t>(d)]);
        most = std::max(most, size);
        if (d != dim) others = std::max(others, size);
      }
      const double r2 = x[dim] * x[dim] / square,
                   own = std::abs(gain[static_cast<std::size_t>(dim)]);
      const double bound = std::min(std::sqrt(most * most * (1 - r2) + own * own * r2),
                                    std::sqrt(others * others * (1 - r2) + own * own * r2));
      above += std::sqrt(square / D) > bound ? 1 : 0;  // y = h
    }
    EXPECT_EQ(e.n_above, above) << e.role << e.layer;
    all_above += above;
  }
  ASSERT_GT(all_above, 0);
  ASSERT_LT(all_above, T * (2 * L + 1));
  EXPECT_THAT(rescale_text(report),
              HasSubstr(std::to_string(all_above) + " of " + std::to_string(T * (2 * L + 1)) +
                        " norm outputs lie ABOVE a bound"));
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

// The factor that clipping gives all other dimensions, predicted from the recorded numbers and
// measured in a twin that clips the stream in front of the final norm.
TEST(Rescale, PredictedGrowthUnderAClipIsTheMeasuredOne) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/llama");
  const auto model = open_model(folder);
  const int D = model->spec().d_model, L = model->spec().n_layers,
            T = static_cast<int>(kIds.size());
  const auto plain = CaptureReader::open(capture(*model, [] {
    CaptureRequest request = request_for(kIds);
    request.record.stream = true;
    return request;
  }()));
  const auto h = plain->read_f64("run0", "residual/stream", {2 * L, 0, 0}, {1, T, D});
  for (const int t : {1, 5}) {
    std::vector<double> sizes;
    for (int d = 0; d < D; ++d) sizes.push_back(std::abs(h[static_cast<std::size_t>(t * D + d)]));
    const auto peak = std::max_element(sizes.begin(), sizes.end()) - sizes.begin();
    std::sort(sizes.rbegin(), sizes.rend());
    const double limit = sizes[1] + 0.2 * (sizes[0] - sizes[1]);  // of this token one value only
    CaptureRequest request = request_for(kIds);
    request.record.stream = true;
    add_twin(request, R"({"edit":"residual.clip","limit":)" + std::to_string(limit) +
                          R"(,"sites":["blocks.)" + std::to_string(L - 1) +
                          R"(.hook_resid_post"]})");
    const auto reader = CaptureReader::open(capture(*model, request));
    RescaleOptions options;
    options.clip = std::stod(std::to_string(limit));
    for (const bool by_name : {false, true}) {
      if (by_name) options.dims = {static_cast<int>(peak)};
      const RescaleReport report = rescale_report(*reader, "run0", options);
      const NormEvidence& last = report.norms.back();
      ASSERT_EQ(last.role, "ln_final");
      const double predicted = last.clip_growth[static_cast<std::size_t>(t)];
      EXPECT_GT(predicted, 1.0005);
      const auto before = reader->read_f64("run0", "residual/final_norm"),
                 after = reader->read_f64("run0_edit0", "residual/final_norm");
      for (int d = 0; d < D; ++d) {
        const auto at = static_cast<std::size_t>(t * D + d);
        if (d == peak) {
          EXPECT_LT(std::abs(after[at]), std::abs(before[at]));
        } else {
          EXPECT_NEAR(after[at], predicted * before[at], 2e-6 * std::abs(before[at]) + 1e-9) << d;
        }
      }
    }
  }
}

// What a norm behind a half reads, in double: W x of the recorded input x of the last matrix.
std::vector<double> half_output(const ModelFiles& model, const CaptureReader& reader, int layer,
                                bool is_attention) {
  const Role role = is_attention ? Role::o : Role::down;
  const std::int64_t D = model.rows(role, layer), n = model.cols(role, layer);
  std::vector<float> w(static_cast<std::size_t>(D * n));
  model.read_rows(role, layer, 0, D, w.data());
  const std::string tap = is_attention ? "taps/attn.hook_z/values" : "taps/mlp.hook_post/values";
  const auto dims = reader.dims("run0", tap);  // [L, H, T, d] or [L, T, n]
  const std::int64_t T = dims[dims.size() - 2], H = is_attention ? dims[1] : 1, d = n / H;
  std::vector<std::int64_t> start(dims.size(), 0), count = dims;
  start[0] = layer;
  count[0] = 1;
  const auto x = reader.read_f64("run0", tap, start, count);
  std::vector<double> out(static_cast<std::size_t>(T * D), 0);
  for (std::int64_t t = 0; t < T; ++t)
    for (std::int64_t o = 0; o < D; ++o)
      for (std::int64_t i = 0; i < n; ++i)
        out[static_cast<std::size_t>(t * D + o)] +=
            double{w[static_cast<std::size_t>(o * n + i)]} *
            x[static_cast<std::size_t>((i / d * T + t) * d + i % d)];
  return out;
}

class PostNorms : public ::testing::TestWithParam<const char*> {};

// Shares and factors of the norms behind the halves, against what those read by the model's
// weights.
TEST_P(PostNorms, HaveEvidenceOfWhatTheHalfPutsOut) {
  SINKSCOPE_REQUIRE_SHARED(folder, std::string("oracles/") + GetParam());
  const auto model = open_model(folder);
  CaptureRequest request = request_for({3, 17, 5, 30, 5, 9, 21});
  request.record.all = true;
  request.record.sites = {"mlp.hook_post"};
  const auto reader = CaptureReader::open(capture(*model, request));
  const int D = model->spec().d_model, L = model->spec().n_layers;
  RescaleOptions chosen;
  chosen.dims = {5, 11};
  const RescaleReport own = rescale_report(*reader, "run0", {}),
                      of_two = rescale_report(*reader, "run0", chosen);
  int n_seen = 0;
  for (const NormEvidence& e : own.norms) {
    EXPECT_EQ(e.n_above, 0) << e.role << ' ' << e.layer;
    EXPECT_EQ(e.n_not_finite, 0);
    if (!e.role.ends_with("_post")) continue;
    ++n_seen;
    const std::vector<double> x = half_output(*model, *reader, e.layer, e.role == "ln1_post");
    const auto two = std::find_if(of_two.norms.begin(), of_two.norms.end(), [&](const auto& other) {
      return other.role == e.role && other.layer == e.layer;
    });
    ASSERT_NE(two, of_two.norms.end());
    for (std::size_t t = 0; t < e.r2.size(); ++t) {
      double all = 0, most = 0;
      int at = 0;
      const auto square = [&](int d) {
        const double h = x[t * static_cast<std::size_t>(D) + static_cast<std::size_t>(d)];
        return h * h;
      };
      for (int d = 0; d < D; ++d) {
        all += square(d);
        if (square(d) > most) most = square(d), at = d;
      }
      EXPECT_EQ(e.dim[t], at);
      EXPECT_NEAR(e.r2[t], most / all, 1e-5);
      EXPECT_NEAR(e.alpha[t], std::sqrt(((all - most) / D + e.eps) / (all / D + e.eps)), 1e-5);
      EXPECT_NEAR(two->r2[t], (square(5) + square(11)) / all, 1e-5);
      EXPECT_LE(e.output_rms[t], e.bound_5[t] * (1 + 1e-5));
    }
    EXPECT_TRUE(e.next_linear.empty());
  }
  EXPECT_EQ(n_seen, 2 * L);
}

INSTANTIATE_TEST_SUITE_P(Models, PostNorms, ::testing::Values("olmo2", "olmo3", "gemma2", "gemma3"),
                         [](const auto& test) { return std::string(test.param); });

// A capture that cannot answer says so.
TEST(Rescale, NamesWhatItLeavesOut) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/olmo2");
  const auto model = open_model(folder);
  std::vector<int> ids;
  for (int t = 0; t < 70; ++t) ids.push_back(3 + t * 7 % 29);
  const auto reader = CaptureReader::open(capture(*model, request_for(ids)));
  const auto at = [&](int key) {
    RescaleOptions options;
    options.key = key;
    return rescale_report(*reader, "run0", options);
  };
  EXPECT_THAT(at(0).not_computed.at("the norm q_norm"), HasSubstr("queries before the norm"));
  EXPECT_THAT(at(0).not_computed.at("the norm k_norm"), HasSubstr("attn.hook_k is behind it"));
  EXPECT_FALSE(at(0).not_computed.contains("the norm ln1_post"));
  RescaleOptions chosen;
  chosen.dims = {3};
  EXPECT_THAT(
      rescale_report(*reader, "run0", chosen).not_computed.at("chosen dimensions at ln1_post"),
      HasSubstr("--record all"));
  EXPECT_FALSE(at(0).not_computed.contains("attention on the key"));
  const auto n_heads = static_cast<std::size_t>(model->spec().n_heads * model->spec().n_layers);
  EXPECT_EQ(at(62).heads.size(), n_heads);
  for (const int key : {63, 65}) {
    EXPECT_TRUE(at(key).heads.empty());
    EXPECT_THAT(at(key).not_computed.at("attention on the key"), HasSubstr("--record maps"));
  }
  EXPECT_THAT(at(69).not_computed.at("attention on the key"), HasSubstr("the last"));
  CaptureRequest request = request_for(ids);
  request.record.maps = true;
  const auto maps = CaptureReader::open(capture(*model, request));
  RescaleOptions options;
  options.key = 65;
  const RescaleReport report = rescale_report(*maps, "run0", options);
  ASSERT_EQ(report.heads.size(), n_heads);
  EXPECT_EQ(report.heads[0].query, (std::vector<int>{66, 67, 68, 69}));
}

}  // namespace
}  // namespace sinkscope::test
