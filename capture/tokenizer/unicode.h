// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sinkscope {

// Bytes [begin, end) of a text.
struct Span {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const Span&) const = default;
};

inline std::string_view slice(std::string_view text, Span span) {
  return text.substr(static_cast<std::size_t>(span.begin), static_cast<std::size_t>(span.size()));
}

// One step through UTF-8. Where the bytes are malformed (stray continuation, overlong form,
// surrogate, beyond U+10FFFF, cut off) `is_valid` is false and `size` covers the maximal subpart,
// which a decoder replaces by one U+FFFD (Unicode 15, 3.9, "U+FFFD Substitution").
struct Utf8Char {
  int size = 0;  // bytes, 1..4
  char32_t code = 0;
  bool is_valid = false;
};

// The character at byte `at`, which must be inside the text.
Utf8Char utf8_at(std::string_view text, std::int64_t at);

// Throws Error{invalid_argument} naming the first bad byte and its place.
void require_utf8(std::string_view text);

std::string to_utf8(char32_t code);

enum class NormalForm { nfc, nfd, nfkc, nfkd };

// Unicode normalization of valid UTF-8.
std::string normalize(std::string_view text, NormalForm form);

// Whether a reader sees nothing, or a space that is not U+0020: controls, format characters,
// separators (general categories Cc, Cf, Z*).
bool is_invisible(char32_t code);

// White_Space; any Mark (M*); Mn; control, format and private use (Cc, Cf, Co).
bool is_white_space(char32_t code);
bool is_mark(char32_t code);
bool is_nonspacing_mark(char32_t code);
bool is_control(char32_t code);

// The simple lowercase mapping.
char32_t to_lower(char32_t code);

// Byte length of the White_Space run that the text ends or begins with.
std::int64_t trailing_space(std::string_view text);
std::int64_t leading_space(std::string_view text);

// A word character: Alphabetic, Mark, decimal digit, connector punctuation, join control
// (Unicode TR 18, compatibility properties of \w).
bool is_word_char(char32_t code);
bool ends_with_word(std::string_view text);
bool starts_with_word(std::string_view text);

}  // namespace sinkscope
