// SPDX-License-Identifier: GPL-3.0-or-later
// What is left of a recording that ends badly: killed, or out of disk space.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "core/capture_reader.h"
#include "core/capture_writer.h"
#include "core/error.h"
#include "tests/support/layer_values.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using test::value_at;
using testing::HasSubstr;

constexpr int kLayers = 32, kHeads = 3, kTokens = 600, kWidth = 40;

CaptureLayout long_layout() { return test::layout_of_maps(kLayers, kHeads, kTokens, kWidth); }

void write_layer(CaptureWriter& writer, int layer) {
  std::vector<float> maps(static_cast<std::size_t>(kHeads * kTokens * kTokens));
  for (std::size_t i = 0; i < maps.size(); ++i) maps[i] = value_at(layer, static_cast<int>(i));
  const int side = pattern_chunk_side(kTokens, kHeads);
  for (int row = 0; row < kTokens; row += side) {
    writer.write_pattern(0, layer, 0, kHeads, row, side, 0, row + side, maps.data());
  }
  writer.write(0, "attention/entropy", {layer, 0, 0}, {1, kHeads, kTokens}, maps.data());
  writer.write(0, "residual/stream", {2 * layer + 1, 0, 0}, {2, kTokens, kWidth}, maps.data());
  const std::vector<double> mean(kWidth, layer + 0.5);
  writer.write(0, "stats/hook_resid_post/dim_rest/mean", {layer, 0}, {1, kWidth}, mean.data());
}

void expect_layer(const CaptureReader& reader, int layer) {
  const int side = pattern_chunk_side(kTokens, kHeads);
  const auto maps =
      reader.read_f32("run0", "attention/pattern", {layer, 1, side, 0}, {1, 1, 2, kTokens});
  // Tiles [heads, rows, T] all start at value 0, so the second one begins like the first.
  for (int r = 0; r < 2; ++r) {
    for (int k : {0, side, 2 * side - 1}) {
      const int i = (1 * side + r) * kTokens + k;
      ASSERT_EQ(maps[static_cast<std::size_t>(r * kTokens + k)], value_at(layer, i)) << layer;
    }
    ASSERT_EQ(maps[static_cast<std::size_t>(r * kTokens + 2 * side)], 0) << layer;
  }
  const auto entropy =
      reader.read_f32("run0", "attention/entropy", {layer, 0, 0}, {1, kHeads, kTokens});
  const auto stream =
      reader.read_f32("run0", "residual/stream", {2 * layer + 1, 0, 0}, {2, kTokens, kWidth});
  for (int i : {0, 1, kHeads * kTokens - 1}) {
    ASSERT_EQ(entropy[static_cast<std::size_t>(i)], value_at(layer, i)) << layer;
  }
  for (int i : {0, kTokens * kWidth + 5, 2 * kTokens * kWidth - 1}) {
    ASSERT_EQ(stream[static_cast<std::size_t>(i)], value_at(layer, i)) << layer;
  }
  const auto mean =
      reader.read_f64("run0", "stats/hook_resid_post/dim_rest/mean", {layer, 0}, {1, kWidth});
  ASSERT_EQ(mean.back(), layer + 0.5);
}

// Runs `body` in a child that has not used HDF5 yet.
pid_t in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    int status = 99;
    try {
      status = body();
    } catch (...) {
    }
    _exit(status);
  }
  return child;
}

int exit_status(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(FieldCases, FC63_AKilledRecordingKeepsItsWholeLayers) {
  const std::string folder = test::scratch_folder();
  int least = kLayers;
  for (int attempt = 0; attempt < 9; ++attempt) {
    const std::string path = folder + "/run" + std::to_string(attempt) + ".h5";
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    const pid_t child = in_child([&] {
      const auto writer =
          CaptureWriter::create(path, long_layout(), CaptureWriter::Existing::refuse);
      for (int layer = 0; layer < kLayers; ++layer) {
        write_layer(*writer, layer);
        writer->layer_done(layer + 1, 0);
        const char byte = 1;
        if (write(pipe_ends[1], &byte, 1) != 1) return 1;
      }
      pause();
      return 0;
    });
    // Killed a little after its third, sixth, … layer: within data, flush or attribute.
    char byte = 0;
    for (int i = 0; i < 3 + attempt * 3; ++i) ASSERT_EQ(read(pipe_ends[0], &byte, 1), 1);
    usleep(static_cast<useconds_t>(attempt * 397));
    kill(child, SIGKILL);
    EXPECT_EQ(exit_status(child), -SIGKILL);
    close(pipe_ends[0]);
    close(pipe_ends[1]);

    const auto reader = CaptureReader::open(path + ".part");
    EXPECT_FALSE(reader->complete());
    ASSERT_GE(reader->layers_done(), 3 + attempt * 3);
    least = std::min(least, reader->layers_done());
    for (int layer = 0; layer < reader->layers_done(); ++layer) expect_layer(*reader, layer);
    if (HasFatalFailure()) return;
    fs::remove(path + ".part");
  }
  EXPECT_LT(least, kLayers);  // the kills did come in between
}

// Writes layers until the file may not grow any more; the exit status says what happened.
int write_until_full(const std::string& path, rlim_t limit) {
  std::signal(SIGXFSZ, SIG_IGN);
  const auto writer = CaptureWriter::create(path, long_layout(), CaptureWriter::Existing::refuse);
  const rlimit at_most{limit, limit};
  setrlimit(RLIMIT_FSIZE, &at_most);
  int layer = 0;
  try {
    for (; layer < kLayers; ++layer) {
      write_layer(*writer, layer);
      writer->layer_done(layer + 1, 0);
    }
  } catch (const Error& error) {
    const bool says_why = std::string(error.what()).find("File too large") != std::string::npos;
    if (error.kind() != ErrorKind::io || !says_why) return 50;
    try {
      writer->finish();
      return 51;
    } catch (const Error& again) {
      return again.kind() == ErrorKind::io ? layer : 52;
    }
  }
  return 53;
}

TEST(CaptureWriter, AFullDiskKeepsTheWholeLayersAndSaysSo) {
  const std::string folder = test::scratch_folder();
  for (int attempt = 0; attempt < 6; ++attempt) {
    const std::string path = folder + "/run" + std::to_string(attempt) + ".h5";
    // Odd sizes, so that it breaks off in maps, in chunk indices and in flushes.
    const rlim_t limit = 30'000'000 + static_cast<rlim_t>(attempt) * 1'111'111;
    const int layer = exit_status(in_child([&] { return write_until_full(path, limit); }));
    ASSERT_GT(layer, 0);
    ASSERT_LT(layer, kLayers);
    const auto reader = CaptureReader::open(path + ".part");
    EXPECT_FALSE(reader->complete());
    EXPECT_EQ(reader->layers_done(), layer);
    for (int done = 0; done < layer; ++done) expect_layer(*reader, done);
    if (HasFatalFailure()) return;
  }
}

TEST(CaptureWriter, ADiskThatIsFullFromTheStartIsLeftClean) {
  const std::string path = test::scratch_folder() + "/run.h5";
  const int status = exit_status(in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit at_most{50'000, 50'000};
    setrlimit(RLIMIT_FSIZE, &at_most);
    try {
      CaptureWriter::create(path, long_layout(), CaptureWriter::Existing::refuse);
    } catch (const Error& error) {
      return error.kind() == ErrorKind::io ? 7 : 8;
    }
    return 9;
  }));
  EXPECT_EQ(status, 7);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_FALSE(fs::exists(path + ".part"));
  EXPECT_FALSE(fs::exists(path + ".part.tmp"));
}

}  // namespace
}  // namespace sinkscope
