// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/safetensors_header.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/checkpoint/gguf_test_files.h"
#include "tests/support/safetensors_bytes.h"

namespace sinkscope {
namespace {

using namespace test;  // NOLINT: the helpers of the tests
using ::testing::HasSubstr;

std::vector<SafetensorsEntry> parse(const std::string& bytes) {
  return read_safetensors_header(
      FileReader(write_bytes(scratch_folder() + "/x.safetensors", bytes)));
}

// The message of the refusal, which is always Error{corrupt}.
std::string refusal(const std::string& bytes) {
  const auto [kind, message] = failure_of([&] { parse(bytes); });
  EXPECT_EQ(kind, ErrorKind::corrupt) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  std::uint64_t begin, std::uint64_t end) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", name, dtype,
                     shape, begin, end);
}

std::string file(const std::string& entries, std::size_t n_data) {
  return SafetensorsBytes::join("{" + entries + "}", std::string(n_data, '\0'));
}

std::string length(std::uint64_t n) { return bytes_of(std::vector<std::uint64_t>{n}); }

TEST(SafetensorsHeader, EntriesComeByNameWithTheirPlaceInTheFile) {
  const std::string header =
      "{" + entry("b", "F32", "3,2", 0, 24) + "," + entry("a", "BF16", "5", 24, 34) + "}";
  const auto entries = parse(SafetensorsBytes::join(header, std::string(34, '\0')));
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].info.name, "a");
  EXPECT_EQ(entries[0].info.dtype, "BF16");
  EXPECT_EQ(entries[0].begin, 8 + header.size() + 24);
  EXPECT_EQ(entries[0].info.n_bytes, 10u);
  EXPECT_EQ(entries[1].info.shape, (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(entries[1].begin, 8 + header.size());
}

TEST(SafetensorsHeader, WholeFilesOfTheOfficialSuiteLoad) {
  EXPECT_EQ(parse(SafetensorsBytes::join("{}    ", "")).size(), 0u);
  EXPECT_EQ(parse(SafetensorsBytes::join(" \t\r\n{} \t\r\n", "")).size(), 0u);
  EXPECT_EQ(parse(file(entry("t", "I32", "2,0", 0, 0), 0)).front().info.n_elements(), 0);
  EXPECT_EQ(parse(file(entry("t", "I32", "", 0, 4), 4)).front().info.n_elements(), 1);
  EXPECT_EQ(
      parse(file(R"("__metadata__":{"format":"pt"},)" + entry("t", "U8", "1", 0, 1), 1)).size(),
      1u);
}

TEST(SafetensorsHeader, UnknownFieldsAreSkippedWhateverTheyHold) {
  const std::string header =
      R"({"t":{"dtype":"U8","note":{"a":[1,-2,{"b":null}]},"shape":[1],"x":-1.5,"y":[[true]],)"
      R"("data_offsets":[0,1]}})";
  EXPECT_EQ(parse(SafetensorsBytes::join(header, "z")).front().info.n_bytes, 1u);
  const std::string deep =
      R"({"t":{"x":[[[[[[1]]]]]],"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  EXPECT_THAT(refusal(SafetensorsBytes::join(deep, "z")), HasSubstr("nested too deeply"));
}

// The ten checks of the reference parser, in its order.
TEST(SafetensorsHeader, Check1FileTooShort) {
  EXPECT_THAT(refusal(""), HasSubstr("0 bytes are too few"));
  EXPECT_THAT(refusal("1234567"), HasSubstr("7 bytes are too few"));
}

TEST(SafetensorsHeader, Check2And3LengthTooLarge) {
  EXPECT_THAT(refusal(length(~std::uint64_t{0} << 56)), HasSubstr("above the 100000000"));
  EXPECT_THAT(refusal(length(100'000'001) + "{}"), HasSubstr("header length 100000001"));
  EXPECT_THAT(refusal(length(3) + "{}"), HasSubstr("should take 3 bytes, only 2 follow"));
  EXPECT_THAT(refusal(length(2)), HasSubstr("only 0 follow"));
}

TEST(SafetensorsHeader, Check4HeaderIsNotUtf8) {
  EXPECT_THAT(refusal(length(1) + "\xff"), HasSubstr("not UTF-8"));
  for (const char* bad : {"\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC3"})
    EXPECT_THAT(refusal(SafetensorsBytes::join(std::string("{}") + bad, "")),
                HasSubstr("not UTF-8"));
}

TEST(SafetensorsHeader, Check5HeaderIsNotOfTheForm) {
  EXPECT_THAT(refusal(length(1) + "{"), HasSubstr("not JSON"));
  EXPECT_THAT(refusal(SafetensorsBytes::join("", "")), HasSubstr("does not begin with {"));
  EXPECT_THAT(refusal(SafetensorsBytes::join("[]", "")), HasSubstr("does not begin with {"));
  EXPECT_THAT(refusal(SafetensorsBytes::join(std::string("{}\0{", 4), "")), HasSubstr("zero byte"));
  EXPECT_THAT(refusal(file(entry("t", "F33", "1", 0, 4), 4)), HasSubstr("unknown dtype \"F33\""));
  EXPECT_THAT(refusal(file(entry("t", "F32", "-1", 0, 4), 4)), HasSubstr("shape holds -1"));
  EXPECT_THAT(refusal(file(entry("t", "F32", "1.0", 0, 4), 4)), HasSubstr("shape holds 1.0"));
  EXPECT_THAT(refusal(file(entry("t", "F32", "[1]", 0, 4), 4)), HasSubstr("shape holds a list"));
  EXPECT_THAT(refusal(file(R"("t":[])", 0)), HasSubstr("tensor t is a list, expected an object"));
  EXPECT_THAT(refusal(file(R"("t":{"dtype":"F32","shape":[1]})", 4)), HasSubstr("is missing"));
  EXPECT_THAT(refusal(file(R"("t":{"dtype":"F32","shape":[1],"data_offsets":[0]})", 4)),
              HasSubstr("holds 1 numbers, expected 2"));
  EXPECT_THAT(refusal(file(R"("__metadata__":{"step":3})", 0)), HasSubstr("expected text only"));
  EXPECT_THAT(
      refusal(file(R"("t":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]})", 1)),
      HasSubstr("\"dtype\" twice"));
}

TEST(SafetensorsHeader, Check6TensorsTileTheData) {
  std::string ten;
  for (int i = 0; i < 10; ++i)
    ten += (i == 0 ? "" : ",") + entry("t" + std::to_string(i), "F32", "2,2", 0, 16);
  EXPECT_THAT(refusal(file(ten, 16)), HasSubstr("hole or overlap, expected to begin at 16"));
  EXPECT_THAT(refusal(file(entry("t", "U8", "2", 1, 3), 3)), HasSubstr("begin at 0"));
  EXPECT_THAT(
      refusal(file(entry("a", "U8", "2", 0, 2) + "," + entry("b", "U8", "2", 3, 5), 5)),
      HasSubstr("tensor b: offsets [3, 5] leave a hole or overlap, expected to begin at 2"));
  EXPECT_THAT(refusal(file(entry("t", "U8", "0", 0, 0) + "," + entry("u", "U8", "1", 1, 0), 0)),
              HasSubstr("tensor u"));
}

TEST(SafetensorsHeader, Check7SizesThatOverflow) {
  EXPECT_THAT(refusal(file(entry("t", "I32", "2,18446744073709551614", 0, 16), 16)),
              HasSubstr("too large to count"));
  EXPECT_THAT(refusal(file(entry("t", "I32", "2,9223372036854775807", 0, 16), 16)),
              HasSubstr("too large to count"));
  EXPECT_THAT(refusal(file(entry("t", "U8", "4611686018427387904,0", 0, 0), 0)),
              HasSubstr("too large to count"));
}

TEST(SafetensorsHeader, Check8BitsThatAreNoWholeBytes) {
  EXPECT_THAT(refusal(file(entry("t", "F4", "3", 0, 2), 2)), HasSubstr("12 bits of F4"));
}

TEST(SafetensorsHeader, Check9ShapeAgainstOffsets) {
  EXPECT_THAT(refusal(file(entry("t", "I32", "2,2", 0, 4), 4)),
              HasSubstr("shape [2, 2] of I32 takes 16 bytes, its offsets span 4"));
}

TEST(SafetensorsHeader, Check10TheFileEndsWhereTheDataEnd) {
  EXPECT_THAT(refusal(file(entry("t", "U8", "4", 0, 4), 7)),
              HasSubstr("extra bytes after the data"));
  const std::string cut = file(entry("t", "U8", "4", 0, 4), 2);
  EXPECT_THAT(refusal(cut), HasSubstr(fmt::format("a file of {} bytes, found {}: cut off",
                                                  cut.size() + 2, cut.size())));
}

TEST(SafetensorsHeader, NamesThatOccurTwiceAreRefused) {
  EXPECT_THAT(refusal(file(entry("t", "U8", "1", 0, 1) + "," + entry("t", "U8", "1", 1, 2), 2)),
              HasSubstr("tensor t is listed twice"));
}

TEST(SafetensorsHeader, NamesInMessagesStayOnOneShortLine) {
  const std::string message =
      refusal(file(entry("evil\\n\\u001b[2J" + std::string(500, 'x'), "F33", "1", 0, 4), 4));
  EXPECT_THAT(message, HasSubstr("evil\\x0A\\x1B[2J"));
  EXPECT_LT(message.size(), 400u);
}

TEST(SafetensorsHeader, TypesWithoutAnF32FormAreListedNotReadable) {
  const auto entries =
      parse(file(entry("c", "C64", "1", 0, 8) + "," + entry("f", "F6_E2M3", "4", 8, 11), 11));
  EXPECT_FALSE(entries[0].info.readable);
  EXPECT_FALSE(entries[1].info.readable);
}

TEST(SafetensorsHeader, EveryTruncationAndEveryFlippedByteIsRefusedOrLoads) {
  const std::string good =
      file(entry("a", "F32", "2,3", 0, 24) + "," + entry("b", "BF16", "4", 24, 32), 32);
  for (std::size_t n = 0; n < good.size(); ++n) refusal(good.substr(0, n));
  int loaded = 0;
  for (std::size_t i = 0; i + 32 < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bent = good;
      bent[i] = static_cast<char>(bent[i] ^ (1 << bit));
      const auto [kind, message] = failure_of([&] { loaded += parse(bent).size() == 2; });
      if (message != "no error") {
        EXPECT_EQ(kind, ErrorKind::corrupt) << message;
      }
    }
  }
  EXPECT_GT(loaded, 0);  // another name is still a name
}

TEST(FieldCases, FC07_TruncatedFileOrLfsPointer) {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, 'a') +
      "\nsize 269060552\n";
  EXPECT_THAT(refusal(pointer), HasSubstr("Git-LFS pointer"));
  const std::string good = file(entry("t", "U8", "4", 0, 4), 4);
  EXPECT_THAT(refusal(good.substr(0, good.size() - 1)),
              HasSubstr(fmt::format("{} bytes, found {}", good.size(), good.size() - 1)));
  EXPECT_THAT(refusal("1234567"), HasSubstr("too few"));
  EXPECT_THAT(refusal(length(std::uint64_t{1} << 63) + "{}"),
              HasSubstr("header length 9223372036854775808"));
}

}  // namespace
}  // namespace sinkscope
