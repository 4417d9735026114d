// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/capture_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "tests/support/h5_reference.h"
#include "tests/support/h5_tools.h"
#include "tests/support/sample_capture.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kGolden = std::string(SINKSCOPE_SOURCE_DIR) + "/tests/core/golden/capture_v1.h5";

// Every streamed value of both runs, as the sample writes them.
void expect_sample(const CaptureReader& reader) {
  const CaptureLayout layout = test::sample_layout();
  for (int run = 0; run < 2; ++run) {
    for (const DatasetSpec& spec : datasets_of(layout, run)) {
      if (!test::is_streamed(spec)) continue;
      const std::string name = "run" + std::to_string(run);
      ASSERT_EQ(reader.dims(name, spec.path), spec.dims) << name << spec.path;
      ASSERT_EQ(reader.type(name, spec.path), spec.type) << name << spec.path;
      const std::vector<double> values = reader.read_f64(name, spec.path);
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(values[i], test::sample_value(run, spec, static_cast<std::int64_t>(i)))
            << name << " " << spec.path << " [" << i << "]";
      }
    }
  }
}

void expect_sample_facts(const CaptureReader& reader) {
  const CaptureLayout layout = test::sample_layout();
  EXPECT_THAT(reader.runs(), ElementsAre("run0", "run1"));
  EXPECT_EQ(reader.default_run(), "run0");
  EXPECT_TRUE(reader.complete());
  EXPECT_EQ(reader.layers_done(), 3);
  EXPECT_EQ(reader.input("run0"), layout.runs[0]);
  RunInput second = layout.runs[1];
  second.token_text.assign(5, "");
  EXPECT_EQ(reader.input("run1"), second);
  for (const std::string run : {"run0", "run1"}) {
    const ModelFacts model = reader.model(run);
    EXPECT_EQ(model.name, "sample");
    EXPECT_EQ(model.config_text, layout.model.config_text);
    EXPECT_EQ(model.n_layers, 3);
    EXPECT_EQ(model.n_heads, 4);
    EXPECT_EQ(model.n_kv_heads, 2);
    EXPECT_EQ(model.head_dim, 3);
    EXPECT_EQ(model.d_model, 6);
    EXPECT_EQ(model.vocab_size, 11);
    EXPECT_EQ(reader.read_f32(run, "norm/ln_final/bias"), layout.norms[1].bias);
    EXPECT_EQ(reader.read_f32(run, "norm/ln1/gain_raw"), layout.norms[0].gain_raw);
    EXPECT_EQ(reader.number_attribute(run, "norm/ln1", "eps"), 1e-5);
    EXPECT_EQ(reader.text_attribute(run, "norm/ln_final", "kind"), "layer_norm");
    EXPECT_EQ(reader.read_text(run, "provenance/command"), "capture --record all");
    EXPECT_THAT(reader.read_f64(run, "provenance/seed"), ElementsAre(-3e9));
    EXPECT_THAT(reader.read_i32(run, "provenance/threads"), ElementsAre(2));
  }
  EXPECT_THAT(reader.read_i32("run0", "attention/layers"), ElementsAre(0, 2));
  EXPECT_THAT(reader.read_i32("run0", "attention/pattern_layers"), ElementsAre(2));
  EXPECT_THAT(reader.read_i32("run0", "attention/pattern_heads"), ElementsAre(0, 1, 3));
  EXPECT_THAT(reader.read_i32("run1", "attention/pattern_rows"), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(reader.read_i32("run1", "taps/attn.hook_v/layers"), ElementsAre(1, 2));
  EXPECT_THAT(reader.read_i32("run1", "stats/ln_final.hook_out/layers"), ElementsAre(-1));
  EXPECT_EQ(reader.read_texts("run0", "residual/sites"), residual_sites(3, false));
}

TEST(CaptureReader, WhatIsWrittenIsRead) {
  const std::string path = test::scratch_folder() + "/run.h5";
  test::write_sample_capture(path);
  const auto reader = CaptureReader::open(path);
  expect_sample(*reader);
  expect_sample_facts(*reader);
}

TEST(CaptureReader, ReadsTheGoldenFileOfVersion1) {
  ASSERT_LE(fs::file_size(kGolden), 200'000U);
  const auto reader = CaptureReader::open(kGolden);
  expect_sample(*reader);
  expect_sample_facts(*reader);
}

// SINKSCOPE_UPDATE_GOLDEN=1 makes the file anew: only for a new format version.
TEST(CaptureReader, TheGoldenFileIsWhatTheWriterMakes) {
  SINKSCOPE_REQUIRE_H5DUMP();
  const std::string path = test::scratch_folder() + "/run.h5";
  test::write_sample_capture(path);
  if (std::getenv("SINKSCOPE_UPDATE_GOLDEN") != nullptr) {
    fs::copy_file(path, kGolden, fs::copy_options::overwrite_existing);
  }
  // Addresses of chunks may differ between HDF5 versions, nothing else.
  EXPECT_EQ(test::dump_of(path), test::dump_of(kGolden));
}

// By another path than our own: a transposed array passes its own round trip.
TEST(CaptureReader, H5dumpSeesTheSameValuesAtTheSamePlaces) {
  SINKSCOPE_REQUIRE_H5DUMP();
  const CaptureLayout layout = test::sample_layout();
  const auto value = [&](int run, const std::string& path, std::int64_t i) {
    for (const DatasetSpec& spec : datasets_of(layout, run)) {
      if (spec.path == path) return test::sample_value(run, spec, i);
    }
    return -1.0;
  };
  struct Place {
    int run;
    const char* path;
    const char* index;
    std::int64_t flat;
  };
  for (const Place& place : {
           Place{0, "attention/key_mass", "1,2,3", (1 * 4 + 2) * 7 + 3},
           Place{1, "attention/key_mass", "1,2,3", (1 * 4 + 2) * 5 + 3},
           Place{0, "attention/value_norm", "1,1,2", (1 * 2 + 1) * 7 + 2},
           Place{0, "attention/pattern", "0,2,5,4", (2 * 7 + 5) * 7 + 4},
           Place{1, "attention/window", "0,3,4,1", (3 * 5 + 4) * 5 + 1},
           Place{0, "residual/stream", "5,6,1", (5 * 7 + 6) * 6 + 1},
           Place{0, "residual/abs_mean", "3,2", 3 * 6 + 2},
           Place{1, "stats/hook_resid_post/dim_rest/m3", "2,4", 2 * 6 + 4},
           Place{0, "stats/hook_resid_post/token/max_dim", "1,6", 7 + 6},
           Place{0, "taps/attn.hook_v/values", "1,0,6,2", (1 * 2 * 7 + 6) * 3 + 2},
           Place{1, "logits/full", "3,10", 3 * 11 + 10},
           Place{0, "logits/top_ids", "6,2", 6 * 3 + 2},
       }) {
    const std::string dataset = "/run" + std::to_string(place.run) + "/" + place.path;
    EXPECT_EQ(test::dumped_number(kGolden, dataset, place.index),
              value(place.run, place.path, place.flat))
        << dataset;
  }
}

TEST(CaptureReader, BoxesAreCutOut) {
  const auto reader = CaptureReader::open(kGolden);
  const auto all = reader->read_f32("run0", "residual/stream");  // [7,7,6]
  const auto box = reader->read_f32("run0", "residual/stream", {4, 2, 1}, {2, 3, 4});
  ASSERT_EQ(box.size(), 24U);
  EXPECT_EQ(box[0], all[(4 * 7 + 2) * 6 + 1]);
  EXPECT_EQ(box[23], all[(5 * 7 + 4) * 6 + 4]);
  EXPECT_EQ(reader->read_f64("run0", "residual/stream", {4, 2, 1}, {2, 3, 4})[23], box[23]);
  EXPECT_TRUE(reader->read_f32("run0", "residual/stream", {0, 0, 0}, {0, 7, 6}).empty());
}

TEST(CaptureReader, ListsWhatIsThere) {
  const auto reader = CaptureReader::open(kGolden);
  EXPECT_THAT(reader->children("run0", "stats"),
              ElementsAre("hook_resid_post", "ln_final.hook_out"));
  EXPECT_THAT(reader->children("run1", "norm"), ElementsAre("ln1", "ln_final"));
  EXPECT_THAT(reader->children("run1", ""),
              ElementsAre("attention", "input", "logits", "model", "norm", "provenance", "residual",
                          "stats", "taps"));
  EXPECT_TRUE(reader->has("run0", "taps/attn.hook_v"));
  EXPECT_FALSE(reader->has("run0", "taps/attn.hook_k"));
  EXPECT_FALSE(reader->has("run9", "taps/attn.hook_v"));
  EXPECT_FALSE(reader->has("run0", "../run1/input"));
  EXPECT_FALSE(reader->has("run0/input", "token_ids"));
  EXPECT_TRUE(reader->is_dataset("run0", "input/text"));
  EXPECT_FALSE(reader->is_dataset("run0", "input"));
  EXPECT_TRUE(reader->has_attribute("run0", "", "name"));
  EXPECT_FALSE(reader->has_attribute("run0", "", "names"));
}

template <class Action>
Error error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "expected an Error";
  return {ErrorKind::io, "none"};
}

TEST(CaptureReader, WhatIsNotThereIsNamed) {
  const auto reader = CaptureReader::open(kGolden);
  const auto expect = [&](ErrorKind kind, const char* text, auto action) {
    const Error error = error_of(action);
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(text));
    EXPECT_THAT(error.what(), HasSubstr("capture_v1.h5"));
  };
  expect(ErrorKind::not_found, "no run named run7; it has run0, run1",
         [&] { reader->read_f32("run7", "attention/lse"); });
  expect(ErrorKind::not_found, "run0/attention/unheard_of is not in this capture",
         [&] { reader->read_f32("run0", "attention/unheard_of"); });
  expect(ErrorKind::not_found, "run0/model: no attribute n_planets",
         [&] { reader->number_attribute("run0", "model", "n_planets"); });
  expect(ErrorKind::corrupt, "run0/attention: expected a dataset, found a group",
         [&] { reader->read_f32("run0", "attention"); });
  expect(ErrorKind::corrupt, "run0/attention/lse: expected a group, found a dataset",
         [&] { reader->children("run0", "attention/lse"); });
  expect(ErrorKind::corrupt, "run0/input/text: expected numbers, found text",
         [&] { reader->read_f32("run0", "input/text"); });
  expect(ErrorKind::corrupt, "run0/attention/lse: expected text, found numbers",
         [&] { reader->read_texts("run0", "attention/lse"); });
  expect(ErrorKind::corrupt, "run0/attention/lse: expected 32-bit integers",
         [&] { reader->read_i32("run0", "attention/lse"); });
  expect(ErrorKind::corrupt, "run0/residual/sites: expected one text, found a list",
         [&] { reader->read_text("run0", "residual/sites"); });
  expect(ErrorKind::invalid_argument, "outside the shape [7, 7, 6]", [&] {
    reader->read_f32("run0", "residual/stream", {6, 0, 0}, {2, 1, 1});
  });
  expect(ErrorKind::corrupt, "attribute n_heads: expected text",
         [&] { reader->text_attribute("run0", "model", "n_heads"); });
}

TEST(CaptureReader, OtherFilesAreRefusedInOneSentence) {
  const std::string folder = test::scratch_folder();
  const auto kind_of = [&](const std::string& path) {
    return error_of([&] { CaptureReader::open(path); }).kind();
  };
  EXPECT_EQ(kind_of(folder + "/absent.h5"), ErrorKind::not_found);
  EXPECT_EQ(kind_of(folder), ErrorKind::corrupt);
  std::ofstream(folder + "/text.h5") << "hello";
  EXPECT_EQ(kind_of(folder + "/text.h5"), ErrorKind::corrupt);
  std::ofstream(folder + "/empty.h5") << "";
  EXPECT_EQ(kind_of(folder + "/empty.h5"), ErrorKind::corrupt);
}

TEST(CaptureReader, ATruncatedFileIsAnErrorNotACrash) {
  std::ifstream in(kGolden, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::string path = test::scratch_folder() + "/cut.h5";
  for (std::size_t n = 0; n < bytes.size(); n += bytes.size() / 37) {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(n));
    EXPECT_EQ(error_of([&] { CaptureReader::open(path); }).kind(), ErrorKind::corrupt) << n;
  }
}

TEST(FieldCases, FC62_AFileThatIsBeingWrittenIsNamed) {
  const std::string path = test::scratch_folder() + "/run.h5";
  auto writer = CaptureWriter::create(path, test::sample_layout(), CaptureWriter::Existing::refuse);
  const Error reading = error_of([&] { CaptureReader::open(path + ".part"); });
  EXPECT_EQ(reading.kind(), ErrorKind::io);
  EXPECT_THAT(reading.what(), HasSubstr("run.h5.part is being written by another program"));
  // Nor can a second recording take its place.
  const Error writing = error_of([&] {
    CaptureWriter::create(path, test::sample_layout(), CaptureWriter::Existing::overwrite);
  });
  EXPECT_EQ(writing.kind(), ErrorKind::io);
  EXPECT_THAT(writing.what(), HasSubstr("run.h5.part is open in another program"));
  writer->finish();
  const auto first = CaptureReader::open(path), second = CaptureReader::open(path);
  EXPECT_TRUE(first->complete() && second->complete());
}

}  // namespace
}  // namespace sinkscope
