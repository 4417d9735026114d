// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/capture_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "core/capture_reader.h"
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
using Existing = CaptureWriter::Existing;

std::string fresh_path() { return test::scratch_folder() + "/run.h5"; }

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

TEST(CaptureWriter, TheNameAppearsWhenTheFileIsWhole) {
  const std::string path = fresh_path();
  auto writer = CaptureWriter::create(path, test::sample_layout(), Existing::refuse);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_FALSE(fs::exists(path + ".part.tmp"));
  EXPECT_TRUE(fs::exists(path + ".part"));
  writer->finish();
  EXPECT_TRUE(fs::exists(path));
  EXPECT_FALSE(fs::exists(path + ".part"));
  const test::H5Reference file(path);
  EXPECT_EQ(file.text("/", "format"), "sinkscope");
  EXPECT_EQ(file.number("/", "format_version"), 1);
  EXPECT_EQ(file.number("/", "complete"), 1);
}

TEST(CaptureWriter, ADroppedWriterLeavesWhatIsDone) {
  const std::string path = fresh_path();
  {
    auto writer = CaptureWriter::create(path, test::sample_layout(), Existing::refuse);
    for (int run : {0, 1}) test::write_sample_block(*writer, run, 0);
    writer->layer_done(1, 0);
  }
  EXPECT_FALSE(fs::exists(path));
  const auto reader = CaptureReader::open(path + ".part");
  EXPECT_FALSE(reader->complete());
  EXPECT_EQ(reader->layers_done(), 1);
  EXPECT_EQ(reader->read_f32("run1", "attention/key_mass", {0, 1, 2}, {1, 1, 1}),
            std::vector{static_cast<float>(test::sample_value(
                1, {"attention/key_mass", ElementType::f32, {2, 4, 5}, {}}, 7))});
  // What was never written is marked: the other attention layer, and an index array.
  const auto later = reader->read_f32("run1", "attention/key_mass", {1, 0, 0}, {1, 4, 5});
  EXPECT_TRUE(std::all_of(later.begin(), later.end(), [](float x) { return x != x; }));
  const auto visible = reader->read_i32("run0", "attention/visible");
  EXPECT_EQ(visible.back(), -1);
  EXPECT_EQ(reader->read_f64("run0", "attention/visible").back(), -1);
}

TEST(CaptureWriter, EveryRunKnowsItsWholeLayers) {
  const std::string path = fresh_path();
  // Whole layers of both runs of a recording that ended early.
  const auto layers = [&](const std::function<void(CaptureWriter&)>& record) {
    record(*CaptureWriter::create(path, test::sample_layout(), Existing::overwrite));
    const auto reader = CaptureReader::open(path + ".part");
    EXPECT_EQ(reader->layers_done(), reader->whole_layers("run0"));
    return std::vector{reader->whole_layers("run0"), reader->whole_layers("run1")};
  };
  EXPECT_THAT(layers([](CaptureWriter& writer) {  // both in one group
                for (int run : {0, 1}) test::write_sample_block(writer, run, 0);
                writer.layer_done(1, 0);
              }),
              ElementsAre(1, 1));
  EXPECT_THAT(layers([](CaptureWriter& writer) {  // run0 alone, whole
                for (int block = 0; block < 3; ++block) test::write_sample_block(writer, 0, block);
                writer.layer_done(3, 0);
                writer.layer_done(3, 1);
              }),
              ElementsAre(3, 0));
  EXPECT_THAT(layers([](CaptureWriter& writer) {  // then run1
                writer.layer_done(3, 1);
                for (int block = 0; block < 2; ++block) test::write_sample_block(writer, 1, block);
                writer.layer_done(2, 1);
              }),
              ElementsAre(3, 2));
}

TEST(CaptureWriter, NothingIsOverwrittenUnasked) {
  const std::string path = fresh_path();
  const CaptureLayout layout = test::sample_layout();
  CaptureWriter::create(path, layout, Existing::refuse).reset();  // leaves .part
  const Error unfinished = error_of([&] { CaptureWriter::create(path, layout, Existing::refuse); });
  EXPECT_EQ(unfinished.kind(), ErrorKind::invalid_argument);
  EXPECT_THAT(unfinished.what(), HasSubstr("run.h5.part exists, an unfinished recording"));
  CaptureWriter::create(path, layout, Existing::overwrite)->finish();
  const Error whole = error_of([&] { CaptureWriter::create(path, layout, Existing::refuse); });
  EXPECT_EQ(whole.kind(), ErrorKind::invalid_argument);
  EXPECT_THAT(whole.what(), HasSubstr("run.h5 exists; --force overwrites it"));
  CaptureWriter::create(path, layout, Existing::overwrite)->finish();
}

TEST(CaptureWriter, AFileThatAppearedMeanwhileIsKept) {
  const std::string path = fresh_path();
  auto writer = CaptureWriter::create(path, test::sample_layout(), Existing::refuse);
  std::ofstream(path) << "precious";
  EXPECT_EQ(error_of([&] { writer->finish(); }).kind(), ErrorKind::invalid_argument);
  EXPECT_EQ(fs::file_size(path), 8U);
  EXPECT_TRUE(CaptureReader::open(path + ".part")->complete());
}

TEST(CaptureWriter, AFolderThatIsNotThereIsNamed) {
  const std::string path = test::scratch_folder() + "/nowhere/run.h5";
  const Error error =
      error_of([&] { CaptureWriter::create(path, test::sample_layout(), Existing::refuse); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_THAT(error.what(), HasSubstr("nowhere/run.h5: cannot be made: its folder"));
}

// Whole chunks go to disk as they are: in a file of other chunks they would land elsewhere.
TEST(CaptureWriter, AnUnfinishedFileOfOtherChunksIsCorrupt) {
  const std::string path = fresh_path();
  CaptureWriter::create(path, test::sample_layout(), Existing::refuse).reset();
  const hid_t file = H5Fopen((path + ".part").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  ASSERT_GE(H5Ldelete(file, "run0/attention/pattern", H5P_DEFAULT), 0);
  const hsize_t dims[] = {1, 3, 7, 7}, chunk[] = {1, 3, 7, 7};
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(4, dims, nullptr);
  H5Pset_chunk(list, 4, chunk);
  H5Dclose(H5Dcreate2(file, "run0/attention/pattern", H5T_IEEE_F32LE, space, H5P_DEFAULT, list,
                      H5P_DEFAULT));
  H5Sclose(space);
  H5Pclose(list);
  H5Fclose(file);
  const Error error =
      error_of([&] { CaptureWriter::create(path, test::sample_layout(), Existing::resume); });
  EXPECT_EQ(error.kind(), ErrorKind::corrupt);
  EXPECT_THAT(error.what(), HasSubstr("run0/attention/pattern: expected chunks [1, 1, 7, 7], found "
                                      "[1, 3, 7, 7]"));
}

TEST(CaptureWriter, WrongCallsAreNamedAndChangeNothing) {
  const std::string path = fresh_path();
  auto writer = CaptureWriter::create(path, test::sample_layout(), Existing::refuse);
  const float x[64] = {};
  const std::int32_t n[64] = {};
  const auto message = [&](auto action) {
    const Error error = error_of(action);
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    return std::string(error.what());
  };
  EXPECT_THAT(message([&] { writer->write(0, "attention/keymass", {0}, {1}, x); }),
              HasSubstr("run0 has no dataset attention/keymass"));
  EXPECT_THAT(message([&] {
                writer->write(2, "attention/lse", {0, 0, 0}, {1, 4, 7}, x);
              }),
              HasSubstr("run2"));
  EXPECT_THAT(message([&] {
                writer->write(1, "attention/lse", {0, 0, 0}, {1, 4, 7}, x);
              }),
              HasSubstr("[0, 0, 0] + [1, 4, 7] is outside the shape [2, 4, 5]"));
  EXPECT_THAT(message([&] {
                writer->write(0, "attention/lse", {0, 0}, {1, 4}, x);
              }),
              HasSubstr("outside the shape"));
  EXPECT_THAT(message([&] {
                writer->write(0, "attention/lse", {0, 0, 0}, {1, 1, 1}, n);
              }),
              HasSubstr("another class"));
  EXPECT_THAT(message([&] { writer->write_pattern(0, 0, 2, 2, 0, 1, 0, 1, x); }),
              HasSubstr("outside the shape [1, 3, 7, 7]"));
  writer->write(0, "attention/lse", {1, 3, 6}, {1, 1, 1}, x);
  writer->finish();
  EXPECT_EQ(test::H5Reference(path).floats("/run0/attention/lse").back(), 0.0F);
}

TEST(CaptureWriter, FloatsAndDoublesBecomeWhatTheDatasetHolds) {
  const std::string path = fresh_path();
  auto writer = CaptureWriter::create(path, test::sample_layout(), Existing::refuse);
  const float f[2] = {1.5F, -0.1F};
  const double d[2] = {2.5, 0.1};
  writer->write(0, "stats/hook_resid_post/dim_rest/mean", {1, 2}, {1, 2}, f);
  writer->write(0, "attention/lse", {1, 2, 3}, {1, 1, 2}, d);
  writer->write(0, "residual/stream", {3, 0, 0}, {1, 1, 2}, d);
  writer->finish();
  const test::H5Reference file(path);
  EXPECT_EQ(file.doubles("/run0/stats/hook_resid_post/dim_rest/mean")[6 + 3], double{-0.1F});
  EXPECT_EQ(file.floats("/run0/attention/lse")[28 + 14 + 4], 0.1F);
  EXPECT_EQ(file.floats("/run0/residual/stream")[3 * 42 + 1], 0.1F);
}

TEST(CaptureWriter, ManyChunkedDatasetsTakeTurns) {
  CaptureLayout layout = test::sample_layout();
  layout.taps.clear();
  for (int i = 0; i < 1200; ++i)
    layout.taps.push_back({"t" + std::to_string(i), {0, 1}, {kSeqLen}});
  layout.runs.resize(1);
  const std::string path = fresh_path();
  auto writer = CaptureWriter::create(path, layout, Existing::refuse);
  for (int row = 0; row < 2; ++row) {
    for (int i = 0; i < 1200; ++i) {
      const std::vector<float> x(7, static_cast<float>(10 * i + row));
      writer->write(0, "taps/t" + std::to_string(i) + "/values", {row, 0}, {1, 7}, x.data());
    }
    writer->layer_done(row + 1, 0);
  }
  writer->finish();
  const test::H5Reference file(path);
  for (int i : {0, 1, 600, 1199}) {
    const auto x = file.floats("/run0/taps/t" + std::to_string(i) + "/values");
    EXPECT_EQ(x[6], static_cast<float>(10 * i)) << i;
    EXPECT_EQ(x[13], static_cast<float>(10 * i + 1)) << i;
  }
}

// Maps of 300 tokens (chunks of 150) in tiles of `rows` rows, causal.
std::vector<float> recorded_map(int rows, const std::string& path) {
  constexpr int kTokens = 300;
  CaptureLayout layout = test::sample_layout();
  layout.runs.resize(1);
  layout.runs[0].token_ids.assign(kTokens, 1);
  layout.sites.clear();
  auto writer = CaptureWriter::create(path, layout, Existing::refuse);
  for (int begin = 0; begin < kTokens; begin += rows) {
    const int n = std::min(rows, kTokens - begin);
    std::vector<float> tile(static_cast<std::size_t>(2 * n * kTokens), 0.0F);
    for (int h = 0; h < 2; ++h) {
      for (int r = 0; r < n; ++r) {
        for (int k = 0; k <= begin + r; ++k) {
          tile[static_cast<std::size_t>((h * n + r) * kTokens + k)] =
              static_cast<float>((h + 1) * 100'000 + (begin + r) * 300 + k);
        }
      }
    }
    writer->write_pattern(0, 0, 1, 2, begin, n, 0, begin + n, tile.data());
  }
  writer->finish();
  return test::H5Reference(path).floats("/run0/attention/pattern");
}

TEST(CaptureWriter, MapsAreTheSameWhateverTheTiles) {
  const auto whole_chunks = recorded_map(150, fresh_path());
  ASSERT_EQ(whole_chunks.size(), 3U * 300 * 300);
  const auto at = [&](int h, int q, int k) {
    return whole_chunks[static_cast<std::size_t>((h * 300 + q) * 300 + k)];
  };
  EXPECT_EQ(at(1, 299, 0), 100'000 + 299 * 300);
  EXPECT_EQ(at(2, 151, 150), 200'000 + 151 * 300 + 150);
  EXPECT_EQ(at(2, 150, 151), 0);
  EXPECT_EQ(at(0, 299, 299), 0);  // head slot 0 was not written
  EXPECT_EQ(recorded_map(300, fresh_path()), whole_chunks);
  EXPECT_EQ(recorded_map(70, fresh_path()), whole_chunks);
  EXPECT_EQ(recorded_map(1, fresh_path()), whole_chunks);
}

TEST(CaptureWriter, ChunksOutsideTheTriangleTakeNoSpace) {
  SINKSCOPE_REQUIRE_H5DUMP();
  const std::string path = fresh_path();
  recorded_map(150, path);
  const auto printed = test::run_command("h5dump -p -H -d /run0/attention/pattern '" + path + "'");
  EXPECT_THAT(printed.text, HasSubstr("CHUNKED ( 1, 1, 150, 150 )"));
  // 2 of 3 heads, 3 of 4 chunks.
  EXPECT_THAT(printed.text, HasSubstr("SIZE " + std::to_string(2 * 3 * 150 * 150 * 4)));
}

TEST(FieldCases, FC70_OneHeadIsOneRunOfChunks) {
  SINKSCOPE_REQUIRE_H5DUMP();
  CaptureLayout layout = test::sample_layout();
  layout.runs.resize(1);
  layout.runs[0].token_ids.assign(257, 1);
  const std::string path = fresh_path();
  CaptureWriter::create(path, layout, Existing::refuse)->finish();
  const auto chunks = [&](const std::string& dataset) {
    return test::run_command("h5dump -p -H -d /run0/" + dataset + " '" + path + "'").text;
  };
  EXPECT_THAT(chunks("attention/pattern"), HasSubstr("CHUNKED ( 1, 1, 129, 129 )"));
  EXPECT_THAT(chunks("residual/stream"), HasSubstr("CHUNKED ( 1, 129, 6 )"));
  EXPECT_THAT(chunks("taps/attn.hook_v/values"), HasSubstr("CHUNKED ( 1, 1, 129, 3 )"));
  EXPECT_THAT(chunks("attention/key_mass"), HasSubstr("CONTIGUOUS"));
}

TEST(FieldCases, FC64_LongTextsAreDatasets) {
  CaptureLayout layout = test::sample_layout();
  layout.runs.resize(1);
  layout.sites.clear();
  layout.pattern = {};
  layout.logits_full = false;
  RunInput& run = layout.runs[0];
  run.token_ids.assign(40'000, 7);
  run.token_text.assign(40'000, "größe");
  run.text = std::string(70'000, 'a') + '\0' + "end";
  run.name.clear();
  for (int i = 0; i < 6000; ++i) run.name += "ß";
  layout.model.config_text = std::string(100'000, '{');
  const std::string path = fresh_path();
  CaptureWriter::create(path, layout, Existing::refuse)->finish();
  const auto reader = CaptureReader::open(path);
  EXPECT_EQ(reader->input("run0").token_text, run.token_text);
  EXPECT_EQ(reader->model("run0").config_text, layout.model.config_text);
  // U+0000 cannot be stored; attributes are cut at 8,000 bytes, between characters.
  EXPECT_EQ(reader->input("run0").text, std::string(70'000, 'a') + "\xe2\x90\x80" + "end");
  EXPECT_EQ(reader->input("run0").name, run.name.substr(0, 8000));
}

TEST(CaptureWriter, OneTokenAndNoLayersOfAKindAreFine) {
  CaptureLayout layout = test::sample_layout();
  layout.runs.resize(1);
  layout.runs[0] = {};
  layout.runs[0].token_ids = {3};
  layout.norms.clear();
  layout.sites[1].layers.clear();
  const std::string path = fresh_path();
  CaptureWriter::create(path, layout, Existing::refuse)->finish();
  const auto reader = CaptureReader::open(path);
  EXPECT_TRUE(reader->read_f32("run0", "logits/loss").empty());
  EXPECT_TRUE(reader->read_i32("run0", "input/bos_positions").empty());
  EXPECT_TRUE(reader->read_f64("run0", "stats/ln_final.hook_out/token/rms").empty());
  EXPECT_EQ(reader->dims("run0", "attention/window"), (std::vector<std::int64_t>{2, 4, 1, 1}));
}

TEST(CaptureWriter, ViewersAreToldWhatToPlot) {
  const std::string path = fresh_path();
  test::write_sample_capture(path);
  const test::H5Reference file(path);
  EXPECT_EQ(file.text("/", "NX_class"), "NXroot");
  EXPECT_EQ(file.text("/", "default"), "run0");
  EXPECT_EQ(file.text("/run0", "NX_class"), "NXentry");
  EXPECT_EQ(file.text("/run0", "default"), "attention");
  EXPECT_EQ(file.text("/run0/attention", "NX_class"), "NXdata");
  EXPECT_EQ(file.text("/run0/attention", "signal"), "pattern");
  EXPECT_THAT(file.texts("/run0/attention", "axes"),
              ElementsAre("pattern_layers", "pattern_heads", "pattern_rows", "."));
  EXPECT_EQ(file.text("/run0/stats", "default"), "hook_resid_post");
  EXPECT_EQ(file.text("/run0/stats/hook_resid_post", "default"), "dim_rest");
  EXPECT_EQ(file.text("/run0/stats/hook_resid_post/dim_rest", "signal"), "mean_abs");
  EXPECT_EQ(file.text("/run0/norm/ln1", "signal"), "gain");
  EXPECT_EQ(file.text("/run0/attention/entropy", "units"), "nats");
  EXPECT_EQ(file.text("/run0/attention/key_mass", "long_name"),
            "attention probability received by key");
}

TEST(FieldCases, FC37_ProbabilitiesAndScoresSayWhatTheyAre) {
  const std::string path = fresh_path();
  test::write_sample_capture(path);
  const test::H5Reference file(path);
  for (const char* name : {"pattern", "window", "thumbnail", "key_mass", "first4", "last8"})
    EXPECT_NE(file.text(std::string("/run0/attention/") + name, "long_name").find("probability"),
              std::string::npos)
        << name;
  for (const char* name : {"lse", "logit_max", "logit_gap"})
    EXPECT_NE(file.text(std::string("/run0/attention/") + name, "long_name").find("score"),
              std::string::npos)
        << name;
}

TEST(FieldCases, FC71_TheStyleHintIsWrittenForBothViewers) {
  const std::string path = fresh_path();
  test::write_sample_capture(path);
  EXPECT_EQ(test::H5Reference(path).text("/run0/norm/ln1", "SILX_style"),
            R"({"axes_scale_types":["linear","linear"],"axes_scale_type":["linear","linear"],)"
            R"("signal_scale_type":"log"})");
}

}  // namespace
}  // namespace sinkscope
