// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/engine.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <optional>
#include <thread>

#include "capture/record/write_queue.h"
#include "core/capture_reader.h"
#include "core/error.h"
#include "tests/engine/captured.h"
#include "tests/support/h5_reference.h"
#include "tests/support/shared_files.h"
#include "tests/support/tiny_folder.h"

namespace sinkscope::test {
namespace {

using ::testing::HasSubstr;

std::vector<int> some_ids(int n, int vocabulary) {
  std::vector<int> ids;
  for (int i = 0; i < n; ++i) ids.push_back((i * 37 + 11) % vocabulary);
  return ids;
}

TEST(Engine, SameRequestGivesTheSameBits) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/qwen3");
  const auto model = open_model(folder);
  CaptureRequest request = request_for(some_ids(150, 157));
  request.threads = std::getenv("SINKSCOPE_TEST_THREADS") != nullptr ? test_threads() : 2;
  request.record.maps = request.record.all = request.record.logits = true;
  EXPECT_EQ(first_difference(capture(*model, request), capture(*model, request)), "");
}

// Prompts in several groups, weights kept or read again: the same numbers as alone.
TEST(Engine, GroupsDoNotChangeAnything) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/llama");
  const auto model = open_model(folder);
  CaptureRequest together = request_for(some_ids(23, 157));
  for (int n : {40, 9}) together.runs.push_back(request_for(some_ids(n, 150)).runs.front());
  CaptureRequest apart = together;
  apart.activation_budget = 1;
  apart.weight_budget = 0;
  const H5Reference a(capture(*model, together)), b(capture(*model, apart));
  for (int run : {0, 1, 2}) {
    const std::string group = "/run" + std::to_string(run);
    for (const char* dataset : {"/residual/stream", "/attention/key_mass", "/logits/loss"})
      EXPECT_EQ(a.floats(group + dataset), b.floats(group + dataset)) << group << dataset;
  }
  const H5Reference alone(capture(*model, request_for(some_ids(40, 150))));
  EXPECT_EQ(a.floats("/run1/residual/stream"), alone.floats("/run0/residual/stream"));
}

// Changing token t leaves everything before t as it was, to the bit.
TEST(Engine, IsCausal) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/mistral");
  const auto model = open_model(folder);
  std::vector<int> ids = some_ids(30, 157);
  const H5Reference a(capture(*model, request_for(ids)));
  ids[21] = (ids[21] + 1) % 157;
  const H5Reference b(capture(*model, request_for(ids)));
  const std::vector<std::int64_t> dims = a.dims("/run0/residual/stream");  // [S, T, D]
  const std::vector<float> x = a.floats("/run0/residual/stream"),
                           y = b.floats("/run0/residual/stream");
  for (std::int64_t s = 0; s < dims[0]; ++s) {
    for (std::int64_t t = 0; t < 21 * dims[2]; ++t) {
      const auto at = static_cast<std::size_t>(s * dims[1] * dims[2] + t);
      ASSERT_EQ(x[at], y[at]) << s << ' ' << t / dims[2];
    }
  }
  EXPECT_NE(x, y);
}

// FC-42: the last residual state is before the final norm, whose output has a dataset of its own.
TEST(FieldCases, FC42_LastStateIsBeforeTheFinalNorm) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/llama");
  const auto model = open_model(folder);
  const H5Reference file(capture(*model, request_for(some_ids(6, 157))));
  const std::vector<std::int64_t> dims = file.dims("/run0/residual/stream");
  ASSERT_EQ(dims[0], 2 * model->spec().n_layers + 1);
  const std::vector<float> stream = file.floats("/run0/residual/stream"),
                           normed = file.floats("/run0/residual/final_norm");
  const std::vector<float> gain = model->norm_gain(Role::ln_final, kNoLayer).effective;
  const std::size_t D = static_cast<std::size_t>(dims[2]);
  const std::size_t last = stream.size() - static_cast<std::size_t>(dims[1]) * D;
  for (std::size_t t = 0; t < 6; ++t) {
    double mean_square = 0;
    for (std::size_t d = 0; d < D; ++d) {
      const double x = stream[last + t * D + d];
      mean_square += x * x / static_cast<double>(D);
    }
    for (std::size_t d = 0; d < D; ++d)
      ASSERT_NEAR(
          normed[t * D + d],
          gain[d] * stream[last + t * D + d] / std::sqrt(mean_square + model->spec().norm_eps),
          1e-5);
  }
  // L+1 states in the averages.
  EXPECT_EQ(file.dims("/run0/residual/abs_mean")[0], model->spec().n_layers + 1);
}

TEST(Engine, RecordsChosenHeadsRowsAndLayers) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/llama");
  const auto model = open_model(folder);
  CaptureRequest request = request_for(some_ids(300, 157));
  request.record.maps = true;
  const H5Reference whole(capture(*model, request));
  request.record.layers = {1};
  request.record.heads = {2, 3};
  request.record.rows = {0, 17, 256, 299};
  const H5Reference part(capture(*model, request));
  ASSERT_EQ(part.dims("/run0/attention/pattern"), (std::vector<std::int64_t>{1, 2, 4, 300}));
  const std::vector<float> all = whole.floats("/run0/attention/pattern"),
                           few = part.floats("/run0/attention/pattern");
  const auto H = static_cast<std::size_t>(model->spec().n_heads);
  for (std::size_t h = 0; h < 2; ++h)
    for (std::size_t r = 0; r < 4; ++r)
      for (std::size_t j = 0; j < 300; ++j)
        ASSERT_EQ(
            few[(h * 4 + r) * 300 + j],
            all[((H + 2 + h) * 300 + static_cast<std::size_t>(request.record.rows[r])) * 300 + j]);
  // Statistics cover every layer and head all the same.
  EXPECT_EQ(part.floats("/run0/attention/key_mass"), whole.floats("/run0/attention/key_mass"));

  request.record.rows.clear();
  request.record.reduce = Reduce::mean;
  const H5Reference mean(capture(*model, request));
  ASSERT_EQ(mean.dims("/run0/attention/pattern"), (std::vector<std::int64_t>{1, 1, 300, 300}));
  const std::vector<float> reduced = mean.floats("/run0/attention/pattern");
  for (std::size_t i = 0; i < 300 * 300; ++i)
    ASSERT_NEAR(reduced[i], (all[(H + 2) * 90000 + i] + all[(H + 3) * 90000 + i]) / 2, 1e-7);
}

// Layers of unequal windows among them: a map over layers has every key that one of them sees.
TEST(Engine, MapsAreReducedOverLayersHeadByHead) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/llama");
  const auto model = open_model(folder);
  CaptureRequest request = request_for(some_ids(300, 157));
  request.record.maps = true;
  const std::vector<float> all =
      H5Reference(capture(*model, request)).floats("/run0/attention/pattern");
  const auto H = static_cast<std::size_t>(model->spec().n_heads);
  const auto L = static_cast<std::size_t>(model->spec().n_layers);
  request.record.heads = {1, 3};
  request.record.rows = {0, 5, 299};
  request.record.reduce_over = ReduceOver::layers;
  for (Reduce reduce : {Reduce::mean, Reduce::max}) {
    request.record.reduce = reduce;
    const H5Reference part(capture(*model, request));
    ASSERT_EQ(part.dims("/run0/attention/pattern"), (std::vector<std::int64_t>{1, 2, 3, 300}));
    EXPECT_EQ(part.ints("/run0/attention/pattern_layers"), (std::vector<int>{-1}));
    const std::vector<float> reduced = part.floats("/run0/attention/pattern");
    for (std::size_t h = 0; h < 2; ++h)
      for (std::size_t r = 0; r < 3; ++r)
        for (std::size_t j = 0; j < 300; ++j) {
          const auto row = static_cast<std::size_t>(request.record.rows[r]);
          double mean = 0, max = 0;
          for (std::size_t layer = 0; layer < L; ++layer) {
            const double p = all[((layer * H + 1 + 2 * h) * 300 + row) * 300 + j];
            mean += p / static_cast<double>(L);
            max = std::max(max, p);
          }
          ASSERT_NEAR(reduced[(h * 3 + r) * 300 + j], reduce == Reduce::mean ? mean : max, 1e-7);
        }
  }
  request.activation_budget = 1000;
  EXPECT_THROW(plan_capture(*model, request), Error);
}

// FC-47: the tap is picked by name: the down projection's input is a site of its own.
TEST(FieldCases, FC47_TheInputOfTheDownProjectionIsASiteByName) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/qwen2");
  const auto model = open_model(folder);
  CaptureRequest request = request_for(some_ids(7, 157));
  request.record.sites = {"mlp.hook_post", "attn.hook_rot_k"};
  const H5Reference file(capture(*model, request));
  const ArchSpec& spec = model->spec();
  EXPECT_EQ(file.dims("/run0/taps/mlp.hook_post/values"),
            (std::vector<std::int64_t>{spec.n_layers, 7, spec.d_mlp}));
  EXPECT_EQ(file.dims("/run0/taps/attn.hook_rot_k/values"),
            (std::vector<std::int64_t>{spec.n_layers, spec.n_kv_heads, 7, spec.head_dim}));
  request.record.sites = {"hook_nonsense"};
  try {
    plan_capture(*model, request);
    FAIL() << "an unknown site was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
    EXPECT_THAT(e.what(), HasSubstr("hook_nonsense"));
  }
}

// FC-40: GGUF in, one map for each (layer, query head) out. FC-30: the path is said in the engine's
// words and the maps are explicit whichever body is asked for.
TEST(FieldCases, FC30_FC40_GgufGivesAMapForEveryQueryHeadAndThePathIsSaid) {
  SINKSCOPE_REQUIRE_SHARED(path, "data/models/stories260Ktok512.gguf");
  const auto model = open_model(path);
  CaptureRequest request = request_for(some_ids(19, 512));
  request.record.maps = true;
  for (const char* kernel : {"auto", "fused", "reference"}) {
    request.kernel = kernel;
    EXPECT_THAT(engine().kernel(request),
                ::testing::StartsWith(std::string(kernel) == "reference" ? "reference" : "fused"));
    const H5Reference file(capture(*model, request));
    ASSERT_EQ(file.dims("/run0/attention/pattern"), (std::vector<std::int64_t>{5, 8, 19, 19}));
    const std::vector<float> p = file.floats("/run0/attention/pattern");
    for (std::size_t row = 0; row < 5 * 8 * 19; ++row) {
      double mass = 0;
      for (std::size_t j = 0; j < 19; ++j) mass += p[row * 19 + j];
      ASSERT_NEAR(mass, 1, 1e-6) << kernel << ' ' << row;
    }
  }
}

// FC-38: maps of windowed layers stay T×T; what the window hides is exactly zero.
TEST(FieldCases, FC38_WindowMapsStayWholeWithTheHiddenPartZero) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/mistral");
  const auto model = open_model(folder);
  const int window = model->spec().window.front();
  ASSERT_EQ(window, 7);
  CaptureRequest request = request_for(some_ids(300, 157));
  request.record.maps = true;
  const H5Reference file(capture(*model, request));
  const std::vector<float> p = file.floats("/run0/attention/pattern");  // [L, H, 300, 300]
  const std::size_t maps = p.size() / 90000;
  for (std::size_t m = 0; m < maps; ++m) {
    for (int i = 0; i < 300; ++i) {
      double mass = 0;
      for (int j = 0; j < 300; ++j) {
        const float x = p[m * 90000 + static_cast<std::size_t>(i * 300 + j)];
        if (j > i || j <= i - window) {
          ASSERT_EQ(x, 0) << i << ' ' << j;
        }
        mass += x;
      }
      ASSERT_NEAR(mass, 1, 1e-6);
    }
  }
  const std::vector<std::int64_t> visible = file.integers("/run0/attention/visible");
  EXPECT_EQ(visible[0], 7);
  EXPECT_EQ(visible[299], 1);
}

// FC-44: values that float16 cannot hold (60,000 + 10,000; 264,192) arrive as they are.
// FC-43: the raw checkpoint, nothing folded or centered: the first state is the embedding row.
TEST(FieldCases, FC43_FC44_RawValuesBeyondFloat16ArriveUnchanged) {
  TinyFolder folder = tiny_folder("llama");
  TinyTensor& rows = folder.tensors.at("model.embed_tokens.weight");  // [32, 8]
  rows.values[3 * 8 + 5] = 264192;
  rows.values[3 * 8 + 6] = 60000 + 10000;
  const auto model = open_model(folder.write(scratch_folder()));
  const H5Reference file(capture(*model, request_for({3, 1, 3, 7})));
  const std::vector<float> stream = file.floats("/run0/residual/stream");  // [5, 4, 8]
  for (std::size_t d = 0; d < 8; ++d) EXPECT_EQ(stream[d], rows.values[3 * 8 + d]) << d;
  const std::vector<double> max_abs =
      file.doubles("/run0/stats/hook_resid_pre/dim_rest/max_abs");  // [2, 8]
  EXPECT_EQ(max_abs[5], 264192);
  EXPECT_EQ(max_abs[6], 70000);
  for (std::int64_t n : file.integers("/run0/stats/hook_resid_post/token/n_inf")) EXPECT_EQ(n, 0);
}

// FC-25: one sequence at a time: a run is the same alone and beside longer ones.
TEST(FieldCases, FC25_ShortAndLongRunsDoNotTouchEachOther) {
  for (const char* name : {"qwen2", "gpt2"}) {  // rotary and learned positions
    SINKSCOPE_REQUIRE_SHARED(folder, std::string("oracles/") + name);
    const auto model = open_model(folder);
    EXPECT_EQ(model->spec().rope.rotary_dim == 0, std::string(name) == "gpt2");
    const auto ids_of = [&](int n) { return some_ids(n, model->spec().vocab_size); };
    CaptureRequest both = request_for(ids_of(3));
    both.runs.push_back(request_for(ids_of(7)).runs.front());
    const H5Reference together(capture(*model, both));
    const H5Reference short_one(capture(*model, request_for(ids_of(3))));
    const H5Reference long_one(capture(*model, request_for(ids_of(7))));
    for (const char* path : {"residual/stream", "logits/loss", "attention/key_mass"}) {
      const std::string in = std::string("/") + path;
      EXPECT_EQ(together.floats("/run0" + in), short_one.floats("/run0" + in)) << name << in;
      EXPECT_EQ(together.floats("/run1" + in), long_one.floats("/run0" + in)) << name << in;
    }
  }
}

TEST(Engine, WhatDoesNotExistIsNamed) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/llama");
  const auto model = open_model(folder);
  const auto message = [&](auto change) -> std::string {
    CaptureRequest request = request_for(some_ids(5, 157));
    request.record.maps = true;
    change(request);
    try {
      plan_capture(*model, request);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(message([](auto& r) { r.record.layers = {99}; }), HasSubstr("no layer 99"));
  EXPECT_THAT(message([](auto& r) { r.record.heads = {4}; }), HasSubstr("no head 4"));
  EXPECT_THAT(message([](auto& r) { r.runs[0].token_ids[3] = 157; }),
              HasSubstr("token id 157 at position 3"));
  EXPECT_THAT(message([](auto& r) { r.runs.clear(); }), HasSubstr("no prompt"));
}

// Cancels as soon as `progress` says that a layer is done, or before anything has started.
std::optional<CaptureSummary> canceled_capture(const ModelFiles& model, const std::string& path,
                                               bool before) {
  const CaptureRequest request = request_for(some_ids(700, 157));
  const auto writer =
      CaptureWriter::create(path, plan_capture(model, request), CaptureWriter::Existing::refuse);
  std::stop_source stop;
  Progress progress;
  if (before) stop.request_stop();
  std::jthread canceler([&] {
    while (!before && progress.done == 0) std::this_thread::yield();
    stop.request_stop();
  });
  return engine().capture(model, request, *writer, {stop.get_token(), progress});
}

TEST(Engine, CancelBeforeAndDuringLeavesWholeLayers) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/llama");
  const auto model = open_model(folder);
  for (bool before : {true, false}) {
    const std::string path = scratch_folder() + "/run.h5";
    EXPECT_FALSE(canceled_capture(*model, path, before).has_value());
    const auto reader = CaptureReader::open(path + ".part");
    EXPECT_FALSE(reader->complete());
    const int whole = reader->layers_done();
    EXPECT_EQ(before, whole == 0);
    // Row 0 sees one key: its largest probability is 1 in every layer that is whole.
    const std::vector<float> max_prob = reader->read_f32("run0", "attention/max_prob");
    for (int layer = 0; layer < whole; ++layer)
      EXPECT_EQ(max_prob[static_cast<std::size_t>(layer * model->spec().n_heads * 700)], 1);
  }
}

TEST(Engine, ACudaDeviceThatIsNotThereIsOneSentence) {
  try {
    engine().resolve_device("cuda:63");
    FAIL() << "cuda:63 was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::device);
    EXPECT_THAT(e.what(), HasSubstr("cuda:63"));
  }
  EXPECT_EQ(engine().resolve_device("cpu"), "cpu");
  EXPECT_THROW(engine().resolve_device("tpu"), Error);
}

// A writer whose second job fails.
class FailingWriter : public CaptureWriter {
 public:
  const CaptureLayout& layout() const override { return layout_; }
  void write(int, const std::string&, const std::vector<std::int64_t>&,
             const std::vector<std::int64_t>&, const float*) override {}
  void write(int, const std::string&, const std::vector<std::int64_t>&,
             const std::vector<std::int64_t>&, const double*) override {}
  void write(int, const std::string&, const std::vector<std::int64_t>&,
             const std::vector<std::int64_t>&, const std::int32_t*) override {}
  void write_pattern(int, int, int, int, int, int, int, int, const float*) override {}
  void layer_done(int, int) override { throw Error(ErrorKind::io, "disk full"); }
  void finish() override {}

 private:
  CaptureLayout layout_;
};

TEST(WriteQueue, TheFirstFailureReachesTheEngineAndLaterJobsAreDropped) {
  FailingWriter writer;
  int after = 0;
  WriteQueue queue(writer, 100);
  queue.push(10, [](CaptureWriter& w) { w.layer_done(1, 0); });
  EXPECT_THROW(queue.drain(), Error);
  EXPECT_THROW(queue.push(10, [&](CaptureWriter&) { ++after; }), Error);
  EXPECT_EQ(after, 0);
}

TEST(WriteQueue, JobsRunInOrderWithinTheBound) {
  FailingWriter writer;
  std::vector<int> order;
  {
    WriteQueue queue(writer, 50);
    for (int i = 0; i < 20; ++i)
      queue.push(30, [&order, i](CaptureWriter&) { order.push_back(i); });
    queue.drain();
  }
  ASSERT_EQ(order.size(), 20u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

}  // namespace
}  // namespace sinkscope::test
