// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/terminal_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "capture/checkpoint/printable.h"

namespace sinkscope {
namespace {

unsigned value_of(char byte) { return static_cast<unsigned char>(byte); }

bool is_plain(char byte) {
  return (value_of(byte) >= 0x20 && value_of(byte) < 0x7F) || byte == '\n' || byte == '\t';
}

// Bytes of the UTF-8 character that this one begins; 1 where it begins none.
std::size_t length_of(char lead) {
  const unsigned value = value_of(lead);
  return value < 0xC2 || value > 0xF4 ? 1 : value < 0xE0 ? 2 : value < 0xF0 ? 3 : 4;
}

// What a whole character is written as; "" where it is none.
std::string shown(const std::string& character) {
  if (character.size() == 1 && value_of(character.front()) == 0x7F) return "\\u007F";
  if (character.size() == 1 || !is_utf8(character)) return "";
  if (value_of(character[0]) == 0xC2 && value_of(character[1]) < 0xA0)
    return fmt::format("\\u{:04X}", value_of(character[1]));
  return character;
}

}  // namespace

bool TerminalText::write(std::string_view text) {
  const auto n = static_cast<std::streamsize>(text.size());
  return sink_.sputn(text.data(), n) == n;
}

bool TerminalText::write_escaped() {
  std::string text;
  for (const char byte : pending_) text += fmt::format("\\x{:02X}", value_of(byte));
  pending_.clear();
  return write(text);
}

bool TerminalText::put(char byte) {
  const bool goes_on = (value_of(byte) & 0xC0) == 0x80;
  if (!pending_.empty() && !goes_on && !write_escaped()) return false;
  if (is_plain(byte)) return write({&byte, 1});
  pending_ += byte;
  if (pending_.size() < length_of(pending_.front())) return true;
  const std::string text = shown(pending_);
  if (text.empty()) return write_escaped();
  pending_.clear();
  return write(text);
}

TerminalText::int_type TerminalText::overflow(int_type byte) {
  if (traits_type::eq_int_type(byte, traits_type::eof())) return traits_type::not_eof(byte);
  return put(traits_type::to_char_type(byte)) ? byte : traits_type::eof();
}

std::streamsize TerminalText::xsputn(const char* bytes, std::streamsize n) {
  // Runs of plain bytes, nearly everything there is, go through in one piece.
  for (std::streamsize i = 0; i < n;) {
    std::streamsize end = i;
    while (pending_.empty() && end < n && is_plain(bytes[end])) ++end;
    if (end > i ? !write({bytes + i, static_cast<std::size_t>(end - i)}) : !put(bytes[i])) return i;
    i = std::max(end, i + 1);
  }
  return n;
}

int TerminalText::sync() {
  const bool is_written = pending_.empty() || write_escaped();
  return is_written && sink_.pubsync() == 0 ? 0 : -1;
}

std::string terminal_text(std::string_view text) {
  std::stringbuf sink;
  TerminalText terminal(sink);
  terminal.sputn(text.data(), static_cast<std::streamsize>(text.size()));
  terminal.pubsync();
  return sink.str();
}

}  // namespace sinkscope
