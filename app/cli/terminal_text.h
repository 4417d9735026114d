// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <streambuf>
#include <string>
#include <string_view>

namespace sinkscope {

// Reports quote what strangers wrote into files: names of models and runs, labels of tokens. A
// terminal must not obey them. What passes unchanged: line feed, tab, and printable UTF-8. Of the
// rest every byte becomes \xNN, and DEL and the control characters U+0080 to U+009F \uNNNN, which
// JSON can hold (its printer escapes the others itself).
//
// A stream buffer in front of another one. Bytes that begin a character wait for its end; sync()
// writes those of a character that never ended. Not for data: `figure -o -`, `dump -o -`.
class TerminalText : public std::streambuf {
 public:
  explicit TerminalText(std::streambuf& sink) : sink_(sink) {}
  ~TerminalText() override { TerminalText::sync(); }

 protected:
  int_type overflow(int_type byte) override;
  std::streamsize xsputn(const char* bytes, std::streamsize n) override;
  int sync() override;

 private:
  bool put(char byte);
  bool write(std::string_view text);
  bool write_escaped();  // what is pending, byte by byte

  std::streambuf& sink_;
  std::string pending_;  // a character that has begun
};

// The same of one text.
std::string terminal_text(std::string_view text);

}  // namespace sinkscope
