// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/gguf_metadata.h"

#include <fmt/format.h>

#include <bit>
#include <limits>
#include <utility>

#include "capture/checkpoint/gguf_cursor.h"
#include "capture/checkpoint/gguf_header.h"

namespace sinkscope {
namespace {

enum ValueType : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  text,
  array,
  u64,
  i64,
  f64,
};
constexpr std::uint64_t kMaxKeyBytes = 65535;
constexpr std::uint64_t kMaxToken = std::uint64_t{1} << 20;    // bytes of a text in a list
constexpr std::uint64_t kMaxEntries = std::uint64_t{1} << 24;  // of all lists together
constexpr std::uint64_t kMaxKeys = std::uint64_t{1} << 16;
constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 20;
constexpr const char* kAlignmentKey = "general.alignment";

template <class T>
std::int64_t integer(GgufCursor& cursor) {
  return cursor.number<T>();
}

template <>
std::int64_t integer<std::uint64_t>(GgufCursor& cursor) {
  const auto value = cursor.number<std::uint64_t>();
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    cursor.fail(fmt::format("{} is beyond a signed 64-bit number", value), ErrorKind::unsupported);
  }
  return static_cast<std::int64_t>(value);
}

template <class T>
double real(GgufCursor& cursor) {
  return static_cast<double>(cursor.number<T>());
}

bool truth(GgufCursor& cursor) { return cursor.number<std::uint8_t>() != 0; }

std::string words(GgufCursor& cursor) { return cursor.text(); }
std::string token(GgufCursor& cursor) { return cursor.text(kMaxToken); }

// Reads one value, or `count` of them, by `read_one`.
template <class T>
GgufValue read_as(GgufCursor& cursor, bool is_array, std::uint64_t count,
                  T (*read_one)(GgufCursor&)) {
  if (!is_array) return read_one(cursor);
  std::vector<T> values;
  values.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) values.push_back(read_one(cursor));
  return values;
}

std::uint64_t stored_bytes(GgufCursor& cursor, std::uint32_t type) {
  switch (type) {
    case u8:
    case i8:
    case boolean:
      return 1;
    case u16:
    case i16:
      return 2;
    case u32:
    case i32:
    case f32:
      return 4;
    case text:  // at least its length
    case u64:
    case i64:
    case f64:
      return 8;
    default:
      cursor.fail(fmt::format("value type {}, expected 0 to 12", type));
  }
}

// `entries`: of all lists before this value.
GgufValue read_value(GgufCursor& cursor, std::uint32_t type, std::uint64_t& entries) {
  const bool is_array = type == array;
  std::uint64_t count = 1;
  if (is_array) {
    type = cursor.number<std::uint32_t>();
    count = cursor.number<std::uint64_t>();
    if (type == array) {
      cursor.fail("an array of arrays, which no model needs", ErrorKind::unsupported);
    }
    if (count > kMaxEntries - entries)
      cursor.fail(
          fmt::format("an array of {} entries, at most {} are allowed in all arrays of a "
                      "file, {} came before",
                      count, kMaxEntries, entries));
    entries += count;
  }
  cursor.require(count, stored_bytes(cursor, type), is_array ? "array" : "value");
  switch (type) {
    case u8:
      return read_as(cursor, is_array, count, integer<std::uint8_t>);
    case i8:
      return read_as(cursor, is_array, count, integer<std::int8_t>);
    case u16:
      return read_as(cursor, is_array, count, integer<std::uint16_t>);
    case i16:
      return read_as(cursor, is_array, count, integer<std::int16_t>);
    case u32:
      return read_as(cursor, is_array, count, integer<std::uint32_t>);
    case i32:
      return read_as(cursor, is_array, count, integer<std::int32_t>);
    case u64:
      return read_as(cursor, is_array, count, integer<std::uint64_t>);
    case i64:
      return read_as(cursor, is_array, count, integer<std::int64_t>);
    case f32:
      return read_as(cursor, is_array, count, real<float>);
    case f64:
      return read_as(cursor, is_array, count, real<double>);
    case boolean:
      return read_as(cursor, is_array, count, truth);
    default:
      return read_as(cursor, is_array, count, is_array ? token : words);
  }
}

std::uint64_t checked_alignment(GgufCursor& cursor, std::uint32_t type, const GgufValue& value) {
  if (type != u32) cursor.fail(fmt::format("value type {}, expected 4 (u32)", type));
  const auto alignment = static_cast<std::uint64_t>(std::get<std::int64_t>(value));
  if (!std::has_single_bit(alignment) || alignment > kMaxAlignment) {
    cursor.fail(
        fmt::format("alignment {}, expected a power of two up to {}", alignment, kMaxAlignment));
  }
  return alignment;
}

}  // namespace

std::uint64_t read_gguf_metadata(GgufCursor& cursor, std::uint64_t n_keys, GgufHeader& header) {
  std::uint64_t alignment = 32, entries = 0;
  if (n_keys > kMaxKeys)
    cursor.fail(fmt::format("{} keys, at most {} are allowed", n_keys, kMaxKeys));
  header.keys.reserve(n_keys);
  header.values.reserve(n_keys);
  for (std::uint64_t i = 0; i < n_keys; ++i) {
    const std::string ordinal = fmt::format("#{}", i);
    cursor.set_subject("key", &ordinal);
    std::string key = cursor.text(kMaxKeyBytes);
    if (key.empty()) cursor.fail("has no name");
    cursor.set_subject("key", &key);
    if (!header.key_index.emplace(key, static_cast<int>(i)).second) cursor.fail("occurs twice");
    const auto type = cursor.number<std::uint32_t>();
    GgufValue value = read_value(cursor, type, entries);
    if (key == kAlignmentKey) alignment = checked_alignment(cursor, type, value);
    header.keys.push_back(std::move(key));
    header.values.push_back(std::move(value));
  }
  return alignment;
}

}  // namespace sinkscope
