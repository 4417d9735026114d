// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/unicode.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <cstdlib>
#include <memory>

#include "core/error.h"

namespace sinkscope {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

// Start of the last character of a valid text.
std::int64_t last_char(std::string_view text) {
  auto at = static_cast<std::int64_t>(text.size()) - 1;
  while (at > 0 && (static_cast<unsigned char>(text[static_cast<std::size_t>(at)]) & 0xC0) == 0x80)
    --at;
  return at;
}

// Alphabetic beyond the letters and marks: letter numbers and the circled and squared letters.
bool is_other_alphabetic(char32_t code) {
  return (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
         (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189);
}

}  // namespace

Utf8Char utf8_at(std::string_view text, std::int64_t at) {
  const auto byte = [&](std::int64_t i) {
    return static_cast<unsigned char>(text[static_cast<std::size_t>(i)]);
  };
  const unsigned lead = byte(at);
  if (lead < 0x80) return {1, lead, true};
  // Unicode 15, table 3-7: allowed range of the second byte by lead byte.
  int need = 0;
  unsigned low = 0x80, high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    need = 1;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    need = 2;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    need = 3;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {1, kReplacement, false};
  }
  char32_t code = lead & (0x3Fu >> need);
  for (int i = 1; i <= need; ++i) {
    if (at + i >= static_cast<std::int64_t>(text.size())) return {i, kReplacement, false};
    const unsigned next = byte(at + i);
    if (next < low || next > high) return {i, kReplacement, false};
    low = 0x80;
    high = 0xBF;
    code = (code << 6) | (next & 0x3F);
  }
  return {need + 1, code, true};
}

void require_utf8(std::string_view text) {
  for (std::int64_t at = 0; at < static_cast<std::int64_t>(text.size());) {
    const Utf8Char c = utf8_at(text, at);
    if (!c.is_valid)
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("text is not UTF-8: byte {} is 0x{:02X}", at,
                              static_cast<unsigned char>(text[static_cast<std::size_t>(at)])));
    at += c.size;
  }
}

std::string to_utf8(char32_t code) {
  utf8proc_uint8_t buffer[4];
  const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), buffer);
  return {buffer, buffer + size};
}

std::string normalize(std::string_view text, NormalForm form) {
  if (text.empty()) return {};
  int options = UTF8PROC_STABLE;
  options |=
      form == NormalForm::nfc || form == NormalForm::nfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::nfkc || form == NormalForm::nfkd) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* made = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &made,
                                 static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(made, &std::free);
  if (size < 0)
    throw Error(
        size == UTF8PROC_ERROR_NOMEM ? ErrorKind::out_of_memory : ErrorKind::invalid_argument,
        fmt::format("cannot normalize text: {}", utf8proc_errmsg(size)));
  return {made, made + size};
}

bool is_invisible(char32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return true;
    default:
      return false;
  }
}

bool is_white_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

bool is_mark(char32_t code) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
         category == UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code)) == UTF8PROC_CATEGORY_MN;
}

bool is_control(char32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO:
      return true;
    default:
      return false;
  }
}

char32_t to_lower(char32_t code) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
}

std::int64_t trailing_space(std::string_view text) {
  const std::size_t size = text.size();
  while (!text.empty()) {
    const std::int64_t at = last_char(text);
    if (!is_white_space(utf8_at(text, at).code)) break;
    text.remove_suffix(text.size() - static_cast<std::size_t>(at));
  }
  return static_cast<std::int64_t>(size - text.size());
}

std::int64_t leading_space(std::string_view text) {
  std::int64_t at = 0;
  while (at < static_cast<std::int64_t>(text.size())) {
    const Utf8Char c = utf8_at(text, at);
    if (!is_white_space(c.code)) break;
    at += c.size;
  }
  return at;
}

bool is_word_char(char32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return code == 0x200C || code == 0x200D || is_other_alphabetic(code);
  }
}

bool ends_with_word(std::string_view text) {
  return !text.empty() && is_word_char(utf8_at(text, last_char(text)).code);
}

bool starts_with_word(std::string_view text) {
  return !text.empty() && is_word_char(utf8_at(text, 0).code);
}

}  // namespace sinkscope
