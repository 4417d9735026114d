// SPDX-License-Identifier: GPL-3.0-or-later
// A recording killed at any moment of its flushes. Whatever a kill leaves is what lies in the
// folder between two calls that change it, or in the middle of one: this program copies the folder
// at every such moment of a recording, and then opens, checks and finishes every copy.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>

#include "core/capture_reader.h"
#include "core/capture_writer.h"
#include "core/error.h"
#include "tests/support/layer_values.h"
#include "tests/support/shared_files.h"

namespace {

// Called before every call that changes a file; null while nobody looks.
std::function<void()> g_moment;

void moment() {
  if (!g_moment) return;
  const auto copy = std::exchange(g_moment, nullptr);  // copying a folder changes files, too
  copy();
  g_moment = copy;
}

// Writes page by page: a kill can stop a write at every page boundary.
template <class Write>
ssize_t in_pages(const char* bytes, size_t n, off_t at, const Write& write) {
  moment();
  if (!g_moment) return write(bytes, n, at);
  for (size_t done = 0; done < n;) {
    if (done > 0) moment();
    const size_t in_page = 4096 - (static_cast<size_t>(at) + done) % 4096;
    const ssize_t now =
        write(bytes + done, std::min(n - done, in_page), at + static_cast<off_t>(done));
    if (now <= 0) return done > 0 ? static_cast<ssize_t>(done) : now;
    done += static_cast<size_t>(now);
  }
  return static_cast<ssize_t>(n);
}

}  // namespace

// The C library's, for everything in this program: HDF5 and the standard library included.
extern "C" {

ssize_t pwrite(int fd, const void* bytes, size_t n, off_t at) {
  return in_pages(static_cast<const char*>(bytes), n, at, [fd](const char* b, size_t k, off_t a) {
    return syscall(SYS_pwrite64, fd, b, k, a);
  });
}

ssize_t write(int fd, const void* bytes, size_t n) {
  const off_t at = g_moment ? lseek(fd, 0, SEEK_CUR) : 0;
  return in_pages(static_cast<const char*>(bytes), n, at < 0 ? 0 : at,
                  [fd](const char* b, size_t k, off_t) { return syscall(SYS_write, fd, b, k); });
}

int rename(const char* from, const char* to) noexcept {
  moment();
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int remove(const char* path) noexcept {
  moment();
  if (syscall(SYS_unlinkat, AT_FDCWD, path, 0) == 0) return 0;
  return static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR));
}

int ftruncate(int fd, off_t size) noexcept {
  moment();
  return static_cast<int>(syscall(SYS_ftruncate, fd, size));
}
}

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using test::value_at;

constexpr int kLayers = 4, kTokens = 5, kWidth = 3, kMostInOneCall = 64;

CaptureLayout layout_of(int heads) { return test::layout_of_maps(kLayers, heads, kTokens, kWidth); }

// The streams that are kept with layer `layers` are what the next one is made of.
std::vector<float> kept_after(int layers) { return {static_cast<float>(layers), 0.5F}; }

using Phase = std::function<void(bool is_flushing)>;

void write_layer(
    CaptureWriter& writer, int heads, int layer, const Phase& phase = [](bool) {}) {
  phase(false);
  std::vector<float> maps(static_cast<std::size_t>(heads * kTokens * kTokens));
  for (std::size_t i = 0; i < maps.size(); ++i) maps[i] = value_at(layer, static_cast<int>(i));
  for (int head = 0; head < heads; head += kMostInOneCall)
    writer.write_pattern(0, layer, head, std::min(kMostInOneCall, heads - head), 0, kTokens, 0,
                         kTokens, maps.data() + head * kTokens * kTokens);
  writer.write(0, "residual/stream", {2 * layer + 1, 0, 0}, {2, kTokens, kWidth}, maps.data());
  writer.write(0, "attention/entropy", {layer, 0, 0}, {1, heads, kTokens}, maps.data());
  phase(true);
  const std::vector<float> kept = kept_after(layer + 1);
  writer.keep_streams(layer + 1, 0, {std::as_bytes(std::span(kept))});
  writer.layer_done(layer + 1, 0);
}

void expect_layer(const CaptureReader& reader, int heads, int layer) {
  const auto maps =
      reader.read_f32("run0", "attention/pattern", {layer, 0, 0, 0}, {1, heads, kTokens, kTokens});
  for (std::size_t i = 0; i < maps.size(); ++i)
    ASSERT_EQ(maps[i], value_at(layer, static_cast<int>(i))) << "layer " << layer << ", " << i;
  const auto stream =
      reader.read_f32("run0", "residual/stream", {2 * layer + 1, 0, 0}, {2, kTokens, kWidth});
  for (std::size_t i = 0; i < stream.size(); ++i)
    ASSERT_EQ(stream[i], value_at(layer, static_cast<int>(i))) << "layer " << layer << ", " << i;
  const auto entropy =
      reader.read_f32("run0", "attention/entropy", {layer, 0, 0}, {1, heads, kTokens});
  ASSERT_EQ(entropy.back(), value_at(layer, heads * kTokens - 1)) << "layer " << layer;
}

// What a kill left in `folder`: its whole layers are right, and going on makes it whole.
void expect_that_it_goes_on(const std::string& folder, int heads) {
  const std::string path = folder + "/run.h5";
  if (!fs::exists(path)) {
    auto reader = CaptureReader::open(path + ".part");
    for (int layer = 0; layer < reader->layers_done(); ++layer) expect_layer(*reader, heads, layer);
    if (testing::Test::HasFatalFailure()) return;
    const int whole = reader->layers_done();
    reader.reset();
    const auto writer =
        CaptureWriter::create(path, layout_of(heads), CaptureWriter::Existing::resume);
    const RecordingState* at = writer->resume_point();
    ASSERT_NE(at, nullptr);
    ASSERT_EQ(at->layers_done, whole);
    if (whole > 0) {
      const std::vector<float> kept = kept_after(whole);
      ASSERT_EQ(at->streams.at(0).size(), sizeof(float) * kept.size());
      ASSERT_EQ(std::memcmp(at->streams[0].data(), kept.data(), sizeof(float) * kept.size()), 0);
    }
    for (int layer = whole; layer < kLayers; ++layer) write_layer(*writer, heads, layer);
    writer->finish();
    const auto left = std::distance(fs::directory_iterator(folder), fs::directory_iterator());
    ASSERT_EQ(left, 1) << "beside run.h5";
  }
  const auto reader = CaptureReader::open(path);
  ASSERT_TRUE(reader->complete());
  for (int layer = 0; layer < kLayers; ++layer) expect_layer(*reader, heads, layer);
}

// Records with `heads` maps a layer. Looked at are every `stride`-th moment of the flushes of
// layers 1 … end, every heads/2-th between them, and the end.
void torture(int heads, int stride, int least_looks) {
  const std::string folder = test::scratch_folder(), live = folder + "/live";
  fs::create_directory(live);
  int moments = 0, looked_at = 0;
  std::vector<std::pair<int, std::string>> left;  // the moments since the last look
  const auto writer =
      CaptureWriter::create(live + "/run.h5", layout_of(heads), CaptureWriter::Existing::refuse);
  const auto copy = [&](int every) {
    if (moments++ % every != 0) return;
    left.emplace_back(moments - 1, folder + "/left" + std::to_string(left.size()));
    fs::copy(live, left.back().second);
  };
  const auto look = [&] {
    g_moment = nullptr;
    for (const auto& [number, where] : std::exchange(left, {})) {
      ++looked_at;
      try {
        expect_that_it_goes_on(where, heads);
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
      ASSERT_FALSE(testing::Test::HasFailure()) << "killed at moment " << number;
      fs::remove_all(where);
    }
  };
  for (int layer = 0; layer < kLayers; ++layer) {
    write_layer(*writer, heads, layer, [&](bool is_flushing) {
      g_moment = [&copy, every = is_flushing ? stride : heads / 2] { copy(every); };
    });
    look();
    if (testing::Test::HasFailure()) return;
  }
  g_moment = [&copy] { copy(1); };
  writer->finish();
  look();
  EXPECT_GE(looked_at, least_looks);
  std::cout << moments << " moments, " << looked_at << " looked at\n";
}

// Two levels of branches in the index of the maps.
TEST(FieldCases, FC63_AKillAtAnyMomentLeavesWhatCanBeFinished) { torture(90, 1, 120); }

// Three of them.
TEST(FieldCases, FC63_AKillAmidThousandsOfChunksLeavesWhatCanBeFinished) { torture(2'200, 83, 15); }

}  // namespace
}  // namespace sinkscope
