// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

#include "tests/checkpoint/gguf_test_files.h"

namespace sinkscope {
namespace {

using namespace test;  // NOLINT: the helpers of this folder
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

TEST(GgufFile, ReadsStories260K) {
  SINKSCOPE_REQUIRE_SHARED(path, kStories);
  const auto file = GgufFile::open(path);
  ASSERT_EQ(file->tensors().size(), 48u);
  EXPECT_EQ(file->keys().size(), 19u);
  EXPECT_EQ(file->keys().front(), "tokenizer.ggml.tokens");
  for (const TensorInfo& tensor : file->tensors()) EXPECT_EQ(tensor.dtype, "F32");
  EXPECT_THAT(file->tensors()[0].shape, ElementsAre(512, 64));
  EXPECT_THAT(file->tensors()[45].shape, ElementsAre(64, 172));
  EXPECT_EQ(file->tensors()[45].name, "blk.4.ffn_down.weight");
  EXPECT_EQ(file->text("general.architecture"), "llama");
  EXPECT_EQ(file->integer("llama.context_length"), 128);
  EXPECT_EQ(file->integer("tokenizer.ggml.padding_token_id"), 0xFFFFFFFF);
  EXPECT_FLOAT_EQ(static_cast<float>(*file->number("llama.attention.layer_norm_rms_epsilon")),
                  1e-5f);
  EXPECT_EQ(file->texts("tokenizer.ggml.tokens")->size(), 512u);
  EXPECT_EQ(file->texts("tokenizer.ggml.tokens")->at(1), "<s>");
  EXPECT_EQ(file->numbers("tokenizer.ggml.scores")->size(), 512u);
  EXPECT_EQ(file->integers("tokenizer.ggml.token_type")->at(2), 3);
  EXPECT_THAT(file->warnings(), IsEmpty());
}

TEST(GgufFile, ValuesOfStories260KAreWhereTheFormatPutsThem) {
  SINKSCOPE_REQUIRE_SHARED(path, kStories);
  const auto file = GgufFile::open(path);
  EXPECT_EQ(all_values(*file, "output.weight"), all_values(*file, "token_embd.weight"));
  // The first tensor begins at byte 14176.
  const std::string bytes = read_bytes(path);
  std::vector<float> row(64), raw(64);
  file->read_rows(0, 2, 3, row.data());
  std::memcpy(raw.data(), bytes.data() + 14176 + 2 * 64 * 4, 64 * 4);
  EXPECT_EQ(row, raw);
  std::string first(10, '\0');
  file->read_raw(0, 6, 10, first.data());
  EXPECT_EQ(first, bytes.substr(14176 + 6, 10));
}

TEST(GgufFile, EveryValueTypeOfTheFormatIsRead) {
  const auto file = GgufFile::open(written(GgufBytes()
                                               .key<std::uint8_t>("u8", 200)
                                               .key<std::int8_t>("i8", -100)
                                               .key<std::uint16_t>("u16", 60000)
                                               .key<std::int16_t>("i16", -30000)
                                               .key<std::uint32_t>("u32", 4000000000u)
                                               .key<std::int32_t>("i32", -2000000000)
                                               .key<std::uint64_t>("u64", 1ull << 40)
                                               .key<std::int64_t>("i64", -(1ll << 40))
                                               .key<float>("f32", 0.5f)
                                               .key<double>("f64", 0.1)
                                               .key<bool>("bool", true)
                                               .key("text", "käse")
                                               .list<bool>("bools", {true, false, true})
                                               .list<std::int8_t>("i8s", {-1, 2})
                                               .list<float>("f32s", {1.5f, -2.5f, 0.0f})
                                               .list<std::string>("texts", {"a", "", "ccc"})
                                               .list<std::uint16_t>("none", {})));
  EXPECT_EQ(file->integer("u8"), 200);
  EXPECT_EQ(file->integer("i8"), -100);
  EXPECT_EQ(file->integer("u16"), 60000);
  EXPECT_EQ(file->integer("i16"), -30000);
  EXPECT_EQ(file->integer("u32"), 4000000000);
  EXPECT_EQ(file->integer("i32"), -2000000000);
  EXPECT_EQ(file->integer("u64"), 1ll << 40);
  EXPECT_EQ(file->integer("i64"), -(1ll << 40));
  EXPECT_EQ(file->number("f32"), 0.5);
  EXPECT_EQ(file->number("f64"), 0.1);
  EXPECT_EQ(file->number("u8"), 200.0);
  EXPECT_EQ(file->boolean("bool"), true);
  EXPECT_EQ(file->text("text"), "käse");
  EXPECT_EQ(std::get<std::vector<bool>>(*file->find_key("bools")),
            (std::vector<bool>{true, false, true}));
  EXPECT_THAT(*file->integers("i8s"), ElementsAre(-1, 2));
  EXPECT_THAT(*file->numbers("f32s"), ElementsAre(1.5, -2.5, 0.0));
  EXPECT_THAT(*file->texts("texts"), ElementsAre("a", "", "ccc"));
  EXPECT_THAT(*file->integers("none"), IsEmpty());
  EXPECT_EQ(file->integer("absent"), std::nullopt);
  EXPECT_EQ(file->texts("absent"), nullptr);
  const auto [kind, message] = failure_of([&file] { file->integer("text"); });
  EXPECT_EQ(kind, ErrorKind::corrupt);
  EXPECT_THAT(message, HasSubstr("\"text\""));
}

TEST(GgufFile, TextsLongerThanTheBufferArriveWhole) {
  std::vector<std::string> texts;
  for (int i = 0; i < 5000; ++i)
    texts.push_back(std::string(static_cast<std::size_t>(i % 211), 'x') + std::to_string(i));
  std::string long_text;
  for (int i = 0; i < 120000; ++i) long_text += std::to_string(i);
  const auto file = GgufFile::open(
      written(GgufBytes().list("texts", texts).key("long", long_text).key<int>("after", 7)));
  EXPECT_EQ(*file->texts("texts"), texts);
  EXPECT_EQ(file->text("long"), long_text);
  EXPECT_EQ(file->integer("after"), 7);
}

TEST(GgufFile, ShapesAreOutermostFirstAndRowsComeInOrder) {
  const auto file = GgufFile::open(written(GgufBytes()
                                               .floats("vector", {3}, {9, 8, 7})
                                               .floats("matrix", {2, 3}, {0, 1, 2, 10, 11, 12})
                                               .floats("cube", {2, 2, 1}, {1, 2, 3, 4})
                                               .floats("scalar", {}, {42})));
  EXPECT_THAT(file->tensors()[1].shape, ElementsAre(2, 3));
  std::vector<float> row(3);
  file->read_rows(1, 1, 2, row.data());
  EXPECT_THAT(row, ElementsAre(10, 11, 12));
  EXPECT_THAT(all_values(*file, "vector"), ElementsAre(9, 8, 7));
  EXPECT_THAT(all_values(*file, "cube"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(all_values(*file, "scalar"), ElementsAre(42));
}

// Q8_0 with d = 1: 3 rows of 160,000 elements, far more than is read at once.
TEST(GgufFile, LargeQuantizedTensorsAreReadInPieces) {
  constexpr int kRow = 160000, kRows = 3;
  std::string data;
  std::vector<float> expected;
  for (int block = 0; block < kRow / 32 * kRows; ++block) {
    data += GgufBytes::raw<std::uint16_t>(0x3C00);
    for (int j = 0; j < 32; ++j) {
      const auto q = static_cast<std::int8_t>((block * 7 + j * 3) % 255 - 127);
      data += static_cast<char>(q);
      expected.push_back(q);
    }
  }
  const auto file = GgufFile::open(written(GgufBytes().tensor("big", {kRows, kRow}, 8, data)));
  EXPECT_EQ(file->tensors()[0].n_bytes, data.size());
  EXPECT_EQ(all_values(*file, "big"), expected);
  std::vector<std::vector<float>> rows(kRows, std::vector<float>(kRow));
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kRows; ++i) {
      threads.emplace_back(
          [&, i] { file->read_rows(0, i, i + 1, rows[static_cast<std::size_t>(i)].data()); });
    }
  }
  for (int i = 0; i < kRows; ++i) {
    EXPECT_TRUE(std::equal(rows[static_cast<std::size_t>(i)].begin(),
                           rows[static_cast<std::size_t>(i)].end(), expected.begin() + i * kRow));
  }
}

TEST(GgufFile, ReadingWhatIsNotThereIsRefused) {
  const std::string path = written(GgufBytes().floats("m", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  const auto file = GgufFile::open(path);
  std::vector<float> out(8);
  for (const auto& [begin, end] : {std::pair{-1, 2}, {3, 2}, {0, 5}}) {
    const auto [kind, message] =
        failure_of([&, b = begin, e = end] { file->read_rows(0, b, e, out.data()); });
    EXPECT_EQ(kind, ErrorKind::invalid_argument);
    EXPECT_THAT(message, HasSubstr("\"m\""));
  }
  file->read_rows(0, 4, 4, nullptr);  // no rows are no error
  EXPECT_EQ(failure_of([&] { file->read_rows(1, 0, 1, out.data()); }).first,
            ErrorKind::invalid_argument);
  EXPECT_EQ(failure_of([&] { file->read_raw(0, 30, 3, out.data()); }).first,
            ErrorKind::invalid_argument);
  fs::resize_file(path, fs::file_size(path) - 8);
  EXPECT_EQ(failure_of([&] { file->read_rows(0, 0, 4, out.data()); }).first, ErrorKind::corrupt);
}

TEST(GgufFile, IsRecognizedByItsFirstBytes) {
  EXPECT_TRUE(looks_like_gguf(GgufBytes().write(scratch_folder() + "/model.safetensors")));
  EXPECT_FALSE(looks_like_gguf(GgufBytes::write_bytes(scratch_folder() + "/m.gguf", "GGU")));
  EXPECT_FALSE(looks_like_gguf(GgufBytes::write_bytes(scratch_folder() + "/m.gguf", "GGML....")));
  EXPECT_FALSE(looks_like_gguf(scratch_folder() + "/absent.gguf"));
  EXPECT_EQ(failure_to_open(scratch_folder() + "/absent.gguf").first, ErrorKind::not_found);
}

TEST(FieldCases, FC20_UnknownTypesAreListedAndTheRestIsRead) {
  const std::string path = written(GgufBytes()
                                       .floats("before", {2}, {1, 2})
                                       .tensor("blk.0.iq", {2, 256}, 16, std::string(2 * 66, 'q'))
                                       .tensor("blk.0.odd", {5, 96}, 250, std::string(77, 'u'))
                                       .floats("norm", {3}, {3, 4, 5})
                                       .tensor("blk.1.gone", {64}, 31, std::string(40, 'u')));
  const auto file = GgufFile::open(path);
  ASSERT_EQ(file->tensors().size(), 5u);
  const TensorInfo& grid = file->tensors()[1];
  EXPECT_EQ(grid.dtype, "IQ2_XXS");
  EXPECT_EQ(grid.n_bytes, 132u);
  EXPECT_FALSE(grid.readable);
  const TensorInfo& odd = file->tensors()[2];
  EXPECT_EQ(odd.dtype, "type 250");
  EXPECT_FALSE(odd.readable);
  EXPECT_THAT(odd.shape, ElementsAre(5, 96));
  EXPECT_EQ(odd.n_bytes, 96u);  // 77 and the padding after it
  EXPECT_EQ(file->tensors()[4].dtype, "type 31 (withdrawn)");
  EXPECT_THAT(all_values(*file, "norm"), ElementsAre(3, 4, 5));
  EXPECT_THAT(file->warnings(), ElementsAre(HasSubstr("blk.0.odd"), HasSubstr("blk.1.gone")));
  std::vector<float> out(512);
  for (const int index : {1, 2, 4}) {
    const auto [kind, message] = failure_of([&] { file->read_rows(index, 0, 1, out.data()); });
    EXPECT_EQ(kind, ErrorKind::unsupported);
    EXPECT_THAT(message, HasSubstr(file->tensors()[static_cast<std::size_t>(index)].dtype));
  }
  std::string raw(10, '\0');
  file->read_raw(2, 0, 10, raw.data());
  EXPECT_EQ(raw, std::string(10, 'u'));

  // What follows a tensor of unknown size must still lie inside the file.
  const std::string far = written(GgufBytes()
                                      .tensor("odd", {5}, 250, std::string(8, 'u'))
                                      .tensor("far", {2}, 0, std::string(8, 'f'), 1ull << 40));
  EXPECT_THAT(failure_to_open(far).second, HasSubstr("\"far\""));
  const std::string back = written(GgufBytes()
                                       .floats("a", {1}, {1})
                                       .tensor("odd", {5}, 250, std::string(8, 'u'))
                                       .tensor("back", {2}, 0, std::string(8, 'f'), 0));
  EXPECT_THAT(failure_to_open(back).second, HasSubstr("\"back\""));
}

}  // namespace
}  // namespace sinkscope
