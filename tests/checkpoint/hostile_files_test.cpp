// SPDX-License-Identifier: GPL-3.0-or-later
// What a stranger's files may be besides wrong inside: links in a circle, pipes, giants of holes,
// JSON that says two things at once. Each has a sentence, and none costs memory or time.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>

#include "capture/checkpoint/file_reader.h"
#include "capture/checkpoint/gguf_file.h"
#include "capture/checkpoint/gguf_header.h"
#include "capture/checkpoint/hf_config.h"
#include "capture/checkpoint/model_files.h"
#include "capture/checkpoint/safetensors_header.h"
#include "capture/checkpoint/text_file.h"
#include "core/error.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/shared_files.h"
#include "tests/support/tiny_folder.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using test::scratch_folder;
using test::tiny_folder;
using ::testing::AllOf;
using ::testing::HasSubstr;

template <class Action>
std::string failure(const Action& action, ErrorKind kind) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    return e.what();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

TEST(HostileFiles, LinksInACircleAreNamed) {
  for (const char* name : {"model.safetensors", "config.json", "generation_config.json"}) {
    const std::string folder = tiny_folder().write(scratch_folder());
    fs::remove(folder + "/" + name);
    fs::create_symlink("other", folder + "/" + name);
    fs::create_symlink(name, folder + "/other");
    std::string said;
    try {
      const auto model = open_model(folder);
      for (const std::string& obstacle : model->obstacles()) said += obstacle;
      for (const std::string& warning : model->warnings()) said += warning;
    } catch (const Error& e) {
      said = e.what();
    }
    EXPECT_THAT(said, HasSubstr(name));
    EXPECT_EQ(said.find("incomplete download"), std::string::npos) << said;
  }
  const std::string loop = scratch_folder() + "/loop.gguf";
  fs::create_symlink("loop.gguf", loop);
  EXPECT_THAT(failure([&] { open_model(loop); }, ErrorKind::corrupt), HasSubstr("in a circle"));
}

TEST(HostileFiles, AKeyOfAnotherTypeIsNotCalledMissing) {
  const auto obstacles = [](const test::GgufBytes& gguf) {
    const std::string path = scratch_folder() + "/a.gguf";
    gguf.write(path);
    std::string all;
    const auto model = open_model(path);
    for (const std::string& obstacle : model->obstacles()) all += obstacle + "\n";
    return all;
  };
  test::GgufBytes typed, unnumbered;
  typed.key("general.architecture", std::uint32_t{7});
  EXPECT_THAT(obstacles(typed), HasSubstr("no text"));
  EXPECT_EQ(obstacles(typed).find("is missing"), std::string::npos) << obstacles(typed);
  unnumbered.key("general.architecture", "llama")
      .key("llama.block_count", std::uint32_t{1})
      .key("llama.attention.layer_norm_rms_epsilon", std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(obstacles(unnumbered), HasSubstr("rms_epsilon\": expected a finite number"));
  EXPECT_EQ(obstacles(unnumbered).find("rms_epsilon\": is missing"), std::string::npos);
}

// It completes two ids; a model without it can be run.
TEST(HostileFiles, ABrokenGenerationConfigIsAWarning) {
  for (const char* text : {"[1]", R"({"bos_token_id": "x"})", R"({"eos_token_id": {}})", "{", ""}) {
    auto folder = tiny_folder();
    folder.config["bos_token_id"] = 5;
    const std::string path = folder.write(scratch_folder());
    std::ofstream(path + "/generation_config.json") << text;
    const auto model = open_model(path);
    EXPECT_THAT(model->obstacles(), ::testing::IsEmpty()) << text;
    EXPECT_THAT(model->warnings(), ::testing::Contains(HasSubstr("generation_config.json")))
        << text;
    EXPECT_EQ(model->spec().bos_id, 5) << text;
  }
}

TEST(HostileFiles, APipeInPlaceOfAFileDoesNotHang) {
  const std::string pipe = scratch_folder() + "/model.gguf";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(failure([&] { FileReader{pipe}; }, ErrorKind::corrupt),
              HasSubstr("expected a regular file"));
  EXPECT_THAT(failure([] { FileReader{"/dev/zero"}; }, ErrorKind::corrupt),
              HasSubstr("expected a regular file"));
}

// Files of a terabyte that take no disk space: what a header may claim is bounded by the file, so a
// header's own limits must hold.
// Nothing of a model folder waits for a writer, and nothing there is a mistake of the command line.
TEST(HostileFiles, PipesFoldersAndDevicesInAModelFolderAreCorrupt) {
  for (const char* name :
       {"config.json", "model.safetensors", "tokenizer.json", "tokenizer.model"}) {
    const std::string folder = tiny_folder().write(scratch_folder()), file = folder + "/" + name;
    fs::remove(file);
    ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
    EXPECT_FALSE(looks_like_gguf(file));
    EXPECT_THAT(failure([&] { FileReader{file}; }, ErrorKind::corrupt),
                HasSubstr(std::string(name) + ": expected a regular file"));
    fs::remove(file);
    fs::create_directory(file);
    EXPECT_THAT(failure([&] { FileReader{file}; }, ErrorKind::corrupt), HasSubstr(name));
    fs::remove(file);
    fs::create_symlink("/dev/zero", file);
    EXPECT_THAT(failure([&] { FileReader{file}; }, ErrorKind::corrupt), HasSubstr(name));
    fs::remove(file);
    fs::create_symlink(name, file);
    EXPECT_THAT(failure([&] { FileReader{file}; }, ErrorKind::corrupt), HasSubstr(name));
  }
}

// A file of 4 TiB of holes has bytes enough for any count: belief has its own bounds.
TEST(HostileFiles, CountsOfASparseGgufAreNotBelieved) {
  using B = test::GgufBytes;
  const auto sparse = [](B bytes, const std::string& tail) {
    const std::string path = scratch_folder() + "/sparse.gguf";
    B::write_bytes(path, bytes.header() + tail);
    fs::resize_file(path, std::uintmax_t{1} << 42);
    return path;
  };
  const auto claimed = [](std::uint64_t tensors, std::uint64_t keys) {
    B bytes;
    bytes.claimed_tensors = tensors;
    bytes.claimed_keys = keys;
    return bytes;
  };
  const auto said = [](const std::string& path) {
    return failure([&] { read_gguf_header(FileReader(path)); }, ErrorKind::corrupt);
  };
  EXPECT_THAT(said(sparse(claimed(std::uint64_t{1} << 36, 0), "")),
              AllOf(HasSubstr("sparse.gguf"), HasSubstr("68719476736 tensors, at most 1048576")));
  EXPECT_THAT(said(sparse(claimed(0, std::uint64_t{1} << 30), "")),
              HasSubstr("1073741824 keys, at most 65536"));
  const std::string key = B::text("tokenizer.ggml.tokens");
  EXPECT_THAT(
      said(sparse(claimed(0, 1), key + B::raw(9u) + B::raw(8u) + B::raw(std::uint64_t{1} << 28))),
      AllOf(HasSubstr("tokenizer.ggml.tokens"), HasSubstr("268435456 entries, at most")));
  EXPECT_THAT(said(sparse(claimed(0, 1), key + B::raw(8u) + B::raw(std::uint64_t{1} << 30))),
              AllOf(HasSubstr("tokenizer.ggml.tokens"), HasSubstr("text of 1073741824 bytes")));
  EXPECT_THAT(said(sparse(claimed(0, 1), key + B::raw(9u) + B::raw(8u) + B::raw(std::uint64_t{2}) +
                                             B::raw(std::uint64_t{1} << 21))),
              HasSubstr("text of 2097152 bytes, at most 1048576"));
}

TEST(HostileFiles, GiantsOfHolesAreReadByTheirHeaderOnly) {
  const std::string path = scratch_folder() + "/giant";
  const auto make = [&](const std::string& head) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << head;
    fs::resize_file(path, std::uintmax_t{1} << 40);
  };
  const auto begin = std::chrono::steady_clock::now();
  make(std::string("\xFF\xE0\xF5\x05\0\0\0\0{", 9));  // a header of 99,999,999 bytes, of zeros
  EXPECT_THAT(failure([&] { read_safetensors_header(FileReader(path)); }, ErrorKind::corrupt),
              HasSubstr("zero byte"));
  make(std::string("\x01\xE1\xF5\x05\0\0\0\0{", 9));
  EXPECT_THAT(failure([&] { read_safetensors_header(FileReader(path)); }, ErrorKind::corrupt),
              HasSubstr("100000001 is above"));
  make(std::string("GGUF\3\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0", 24));  // 2^32 tensors, 1 key
  EXPECT_THAT(failure([&] { read_gguf_header(FileReader(path)); }, ErrorKind::corrupt),
              HasSubstr("giant"));
  make("{");
  EXPECT_THAT(failure([&] { read_text_file(path); }, ErrorKind::corrupt), HasSubstr("at most"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(HostileFiles, AKeyTwiceIsRefusedWhereverItStands) {
  EXPECT_THAT(failure([] { parse_json(R"({"a":1,"b":{"c":1},"a":2})", "config.json"); },
                      ErrorKind::corrupt),
              HasSubstr("config.json: the key \"a\" occurs twice in one object"));
  EXPECT_THAT(
      failure([] { parse_json(R"([{"x":{"c":1,"\u0063":2}}])", "i.json"); }, ErrorKind::corrupt),
      HasSubstr("\"c\" occurs twice"));
  EXPECT_NO_THROW(parse_json(R"({"a":{"c":1},"b":{"c":1,"a":[{"c":2},{"c":3}]}})", "i.json"));
  EXPECT_THAT(failure(
                  [] {
                    parse_hf_config(R"({"model_type":"llama","hidden_size":8,"hidden_size":9})",
                                    "config.json");
                  },
                  ErrorKind::corrupt),
              HasSubstr("hidden_size"));
}

// Found by fuzzing: the JSON library reports such a number by another exception.
TEST(HostileFiles, NumbersBeyondEveryRangeAreRefused) {
  EXPECT_THAT(failure([] { parse_hf_config(R"({"rope_theta":1e4444})", "config.json"); },
                      ErrorKind::corrupt),
              HasSubstr("number overflow"));
}

TEST(HostileFiles, NestingHasAnEnd) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_THAT(failure([&] { parse_json(deep, "config.json"); }, ErrorKind::corrupt),
              HasSubstr("nested more than 64 deep"));
  EXPECT_THAT(failure([&] { parse_hf_config(deep, "config.json"); }, ErrorKind::corrupt),
              HasSubstr("nested"));
}

TEST(HostileFiles, BytesInMemoryReadAsAFile) {
  const FileReader file("name", "0123456789");
  char three[3];
  file.read(4, 3, three);
  EXPECT_EQ(std::string(three, 3), "456");
  EXPECT_THAT(failure([&] { file.read(9, 2, three); }, ErrorKind::corrupt), HasSubstr("name"));
  EXPECT_THAT(failure([&] { file.read(~0ull, 2, three); }, ErrorKind::corrupt), HasSubstr("name"));
}

}  // namespace
}  // namespace sinkscope
