// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/gguf_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>

#include "capture/checkpoint/gguf_config.h"
#include "tests/checkpoint/gguf_test_files.h"

namespace sinkscope {
namespace {

using namespace test;  // NOLINT: the helpers of this folder
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

struct Malformed {
  const char* name;
  std::string bytes;
  ErrorKind kind;
  const char* says;  // part of the message
};

std::vector<Malformed> malformed_files() {
  using B = GgufBytes;
  const auto corrupt = ErrorKind::corrupt, unsupported = ErrorKind::unsupported;
  const auto max = std::numeric_limits<std::uint64_t>::max();
  const auto with = [](const std::function<void(B&)>& change) {
    B bytes;
    change(bytes);
    return bytes.build();
  };
  const auto one_key = [&](std::uint32_t type, const std::string& value) {
    return with([&](B& b) { b.key_raw("k.y", type, value); });
  };
  const std::string four(4 * 4, 'x');
  const auto one_tensor = [&](const std::vector<std::int64_t>& shape, std::uint32_t type,
                              std::optional<std::uint64_t> offset = {}) {
    return with([&](B& b) { b.tensor("t.x", shape, type, four, offset); });
  };
  return {
      {"empty", "", corrupt, "shorter"},
      {"bad magic", "GGML" + std::string(28, '\0'), corrupt, "letters GGUF"},
      {"only magic", "GGUF", corrupt, "ends at byte 4"},
      {"version 0", with([](B& b) { b.version = 0; }), unsupported, "version 0"},
      {"version 1", with([](B& b) { b.version = 1; }), unsupported, "version 1"},
      {"version 4", with([](B& b) { b.version = 4; }), unsupported, "version 4"},
      {"big-endian", with([](B& b) { b.version = 0x03000000; }), unsupported, "big-endian"},
      {"2^64-1 tensors", with([&](B& b) { b.claimed_tensors = max; }), corrupt, "tensor list"},
      {"2^64-1 keys", with([&](B& b) { b.claimed_keys = max; }), corrupt, "key list"},
      {"key longer than file",
       with([&](B& b) { b.claimed_keys = 1; }) + B::raw(max) + std::string(20, 'k'), corrupt,
       "key \"#0\""},
      {"empty key", with([](B& b) { b.key<int>("", 1); }), corrupt, "no name"},
      {"key twice", with([](B& b) { b.key<int>("k.y", 1).key<int>("k.y", 2); }), corrupt,
       "key \"k.y\": occurs twice"},
      {"unknown value type", one_key(13, four), corrupt, "\"k.y\": value type 13"},
      {"unknown list type", one_key(9, B::raw(99u) + B::raw(std::uint64_t{1}) + four), corrupt,
       "\"k.y\": value type 99"},
      {"text longer than file", one_key(8, B::raw(std::uint64_t{1} << 29)), corrupt, "\"k.y\""},
      {"text of 2^64-1", one_key(8, B::raw(max)), corrupt, "\"k.y\""},
      {"list of 2^60", one_key(9, B::raw(4u) + B::raw(std::uint64_t{1} << 60)), corrupt, "\"k.y\""},
      {"list of 2^29", one_key(9, B::raw(0u) + B::raw(std::uint64_t{1} << 29)), corrupt, "\"k.y\""},
      {"list of lists", one_key(9, B::raw(9u) + B::raw(std::uint64_t{1}) + four), unsupported,
       "\"k.y\": an array of arrays"},
      {"u64 beyond int64", with([&](B& b) { b.key<std::uint64_t>("k.y", max); }), unsupported,
       "\"k.y\""},
      {"alignment 0", with([](B& b) { b.key<std::uint32_t>("general.alignment", 0); }), corrupt,
       "\"general.alignment\""},
      {"alignment 13", with([](B& b) { b.key<std::uint32_t>("general.alignment", 13); }), corrupt,
       "\"general.alignment\""},
      {"alignment 2^21", with([](B& b) { b.key<std::uint32_t>("general.alignment", 1u << 21); }),
       corrupt, "\"general.alignment\""},
      {"alignment typed i32", with([](B& b) { b.key<std::int32_t>("general.alignment", 32); }),
       corrupt, "\"general.alignment\""},
      {"alignment unlike the offsets", with([](B& b) {
         b.key<std::uint32_t>("general.alignment", 64);
         b.floats("a", {1}, {1}).floats("t.x", {1}, {2});
       }),
       corrupt, "tensor \"t.x\": offset 32"},
      {"name of 64 bytes", with([&](B& b) { b.tensor(std::string(64, 'n'), {4}, 0, four); }),
       corrupt, "tensor \"#0\""},
      {"name twice", with([](B& b) { b.floats("t.x", {1}, {1}).floats("t.x", {1}, {2}); }), corrupt,
       "tensor \"t.x\": the name occurs twice"},
      {"5 dimensions", one_tensor({1, 1, 1, 1, 4}, 0), corrupt, "\"t.x\": 5 dimensions"},
      {"negative dimension", one_tensor({-4, 1}, 0), corrupt, "\"t.x\": dimension 1 is negative"},
      {"product of dimensions", one_tensor({1ll << 31, 1ll << 32, 2}, 0), corrupt, "\"t.x\""},
      {"product hidden by a zero", one_tensor({0, 1ll << 40, 1ll << 40}, 0), corrupt, "\"t.x\""},
      {"bytes of I64", one_tensor({1ll << 61}, 27), corrupt, "\"t.x\""},
      {"row no multiple of the block", one_tensor({4}, 8), corrupt, "\"t.x\": rows of 4"},
      {"offset 2^40", one_tensor({4}, 0, 1ull << 40), corrupt, "\"t.x\": offset 1099511627776"},
      {"offset wraps", one_tensor({4}, 0, max - 31), corrupt, "\"t.x\": offset"},
      {"unaligned offset", one_tensor({4}, 0, 7), corrupt, "\"t.x\": offset 7"},
      {"overlap", with([&](B& b) { b.tensor("a", {4}, 0, four).tensor("t.x", {4}, 0, four, 0); }),
       corrupt, "\"t.x\": offset 0, expected 32"},
      {"hole", with([&](B& b) { b.tensor("a", {4}, 0, four).tensor("t.x", {4}, 0, four, 64); }),
       corrupt, "\"t.x\": offset 64, expected 32"},
      {"not enough data", one_tensor({40}, 0), corrupt, "\"t.x\": its 160 bytes"},
      {"sum of sizes overflows", with([&](B& b) {
         b.tensor("t.x", {0x7FFFFFFFFFFFFFC0}, 24, four);
         b.tensor("u", {0x7FFFFFFFFFFFFFC0}, 24, four, 0x7FFFFFFFFFFFFFC0);
       }),
       corrupt, "\"t.x\""},
      {"control characters in a name",
       with([](B& b) { b.floats("t\n\x1b[2J", {1}, {1}).floats("t\n\x1b[2J", {1}, {1}); }), corrupt,
       "tensor \"t\\x0A\\x1B[2J\""},
  };
}

TEST(FieldCases, FC17_MalformedGgufIsRejectedWithTheNameOfKeyOrTensor) {
  const std::string path = scratch_folder() + "/m.gguf";
  for (const Malformed& file : malformed_files()) {
    SCOPED_TRACE(file.name);
    GgufBytes::write_bytes(path, file.bytes);
    const auto [kind, message] = failure_to_open(path);
    EXPECT_EQ(kind, file.kind) << message;
    EXPECT_THAT(message, HasSubstr(file.says));
    EXPECT_THAT(message, HasSubstr("m.gguf"));
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

TEST(GgufHeader, OddButValidFilesAreRead) {
  GgufBytes empty;
  EXPECT_THAT(GgufFile::open(written(empty))->tensors(), IsEmpty());
  const std::string bare = GgufBytes::write_bytes(scratch_folder() + "/bare", empty.header());
  EXPECT_THAT(GgufFile::open(bare)->keys(), IsEmpty());

  GgufBytes old;
  old.version = 2;
  EXPECT_EQ(GgufFile::open(written(old.key<int>("k", 3)))->integer("k"), 3);

  GgufBytes tight;  // alignment 1: nothing is padded
  tight.alignment = 1;
  tight.key<std::uint32_t>("general.alignment", 1);
  tight.tensor("bytes", {3}, 24, "\x01\x02\x03").tensor("more", {2}, 24, "\x04\xFB");
  EXPECT_THAT(all_values(*GgufFile::open(written(tight)), "more"), ElementsAre(4, -5));

  GgufBytes unpadded;
  unpadded.pad_end = false;
  unpadded.floats("a", {1}, {5}).floats("b", {1}, {6});
  EXPECT_THAT(all_values(*GgufFile::open(written(unpadded)), "b"), ElementsAre(6));

  GgufBytes hollow;  // a dimension of zero
  hollow.floats("none", {3, 0}, {}).floats("one", {1}, {7});
  const auto file = GgufFile::open(written(hollow));
  EXPECT_THAT(all_values(*file, "none"), IsEmpty());
  EXPECT_THAT(all_values(*file, "one"), ElementsAre(7));
  EXPECT_THAT(file->warnings(), IsEmpty());

  GgufBytes::write_bytes(scratch_folder() + "/x", "");
  const std::string tail =
      GgufBytes::write_bytes(scratch_folder() + "/tail", hollow.build() + std::string(50, '\0'));
  EXPECT_THAT(GgufFile::open(tail)->warnings(), ElementsAre(HasSubstr("belong to none")));
}

// Opens damaged bytes and, if they open, touches what they claim: an Error or a valid load.
void open_and_touch(const std::string& path) {
  try {
    const auto file = GgufFile::open(path);
    describe_gguf(*file, path);
    for (int i = 0; i < static_cast<int>(file->tensors().size()); ++i) {
      const TensorInfo& tensor = file->tensors()[static_cast<std::size_t>(i)];
      if (!tensor.readable || tensor.n_rows() == 0) continue;
      std::vector<float> row(static_cast<std::size_t>(tensor.row_size()));
      file->read_rows(i, tensor.n_rows() - 1, tensor.n_rows(), row.data());
    }
  } catch (const Error&) {
  }
}

TEST(GgufHeader, TruncatedHeadersAreRejected) {
  SINKSCOPE_REQUIRE_SHARED(source, kStories);
  const std::string bytes = read_bytes(source);
  const std::string path = scratch_folder() + "/cut.gguf";
  for (std::size_t length = 0; length < 14176; length += 97) {
    GgufBytes::write_bytes(path, bytes.substr(0, length));
    EXPECT_EQ(failure_to_open(path).first, ErrorKind::corrupt) << length;
  }
}

TEST(GgufHeader, FlippedBitsGiveAnErrorOrAValidFile) {
  SINKSCOPE_REQUIRE_SHARED(source, kStories);
  std::string bytes = read_bytes(source);
  const std::string path = scratch_folder() + "/flipped.gguf";
  GgufBytes::write_bytes(path, bytes);
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&file](std::size_t at, char byte) {
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
    file.flush();
  };
  for (std::size_t at = 0; at < 14176; at += 131) {
    SCOPED_TRACE(at);
    put(at, static_cast<char>(bytes[at] ^ (1 << (at % 8))));
    open_and_touch(path);
    put(at, bytes[at]);
  }
  EXPECT_EQ(GgufFile::open(path)->tensors().size(), 48u);
}

}  // namespace
}  // namespace sinkscope
