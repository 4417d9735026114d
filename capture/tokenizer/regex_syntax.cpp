// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <string_view>

#include "capture/checkpoint/printable.h"
#include "capture/tokenizer/regex.h"
#include "core/error.h"

namespace sinkscope {
namespace {

// Walks a pattern once, copying what both syntaxes share and rewriting the rest.
class Translator {
 public:
  explicit Translator(const std::string& pattern) : pattern_(pattern) {}

  std::string run() {
    while (at_ < pattern_.size()) {
      if (pattern_[at_] == '\\')
        escape();
      else if (class_depth_ > 0)
        class_char();
      else
        plain_char();
    }
    return out_;
  }

 private:
  char peek(std::size_t ahead = 1) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }

  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(ErrorKind::unsupported,
                fmt::format("split pattern '{}': {} is not supported", printable(pattern_), what));
  }

  void copy(std::size_t n) {
    out_ += pattern_.substr(at_, n);
    at_ += n;
  }

  void replace(std::size_t n, std::string_view by) {
    out_ += by;
    at_ += n;
  }

  // Escapes that mean the same in both, and those that do not.
  void escape() {
    const char c = peek();
    const bool is_alnum =
        (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (!is_alnum) return copy(2);
    switch (c) {
      case 's':
        return replace(2, "\\p{White_Space}");
      case 'S':
        return replace(2, "\\P{White_Space}");
      case 'w':
        return replace(2, class_depth_ > 0 ? kWord : fmt::format("[{}]", kWord));
      case 'W':
        if (class_depth_ > 0) refuse("\\W in a class");
        return replace(2, fmt::format("[^{}]", kWord));
      case 'v':
        return replace(2, "\\x0B");
      case 'h':
        return replace(2, class_depth_ > 0 ? kHex : fmt::format("[{}]", kHex));
      case 'u':
        if (at_ + 6 > pattern_.size()) refuse("a cut-off \\u");
        return replace(6, fmt::format("\\x{{{}}}", pattern_.substr(at_ + 2, 4)));
      case 'p':
      case 'P':
      case 'x':
        return braced_escape();
      case 'd':
      case 'D':
      case 'r':
      case 'n':
      case 't':
      case 'f':
      case 'e':
      case 'a':
      case 'A':
      case 'z':
        return copy(2);
      default:
        refuse(fmt::format("\\{}", c));
    }
  }

  void braced_escape() {
    copy(2);
    if (at_ >= pattern_.size() || pattern_[at_] != '{') return;
    const std::size_t close = pattern_.find('}', at_);
    copy(close == std::string::npos ? pattern_.size() - at_ : close + 1 - at_);
  }

  void class_char() {
    const char c = pattern_[at_];
    if (c == '[' && peek() == ':') {
      const std::size_t close = pattern_.find(":]", at_);
      if (close == std::string::npos) refuse("a cut-off [: :]");
      return copy(close + 2 - at_);
    }
    if (c == '[') {
      if (peek() == '^') refuse("a negated class in a class");
      ++class_depth_;  // a union: its brackets go
      return replace(1, "");
    }
    if (c == ']' && --class_depth_ > 0) return replace(1, "");
    if (c == '&' && peek() == '&') refuse("an intersection of classes");
    copy(1);
  }

  void plain_char() {
    const char c = pattern_[at_];
    if (c == '[') {
      ++class_depth_;
      copy(peek() == '^' ? 2 : 1);
      // A bracket in first place is a character in PCRE2, the end of an empty class in Ruby.
      if (at_ < pattern_.size() && pattern_[at_] == ']') refuse("an empty class");
      return;
    }
    if (c == '(' && peek() == '?') return group();
    if (c == '{' && peek() == ',') refuse("{,n}");
    if (c == '}' && peek() == '+') refuse("{n,m}+");
    copy(1);
  }

  // Inline options: i and x agree; Ruby's m is PCRE2's s.
  void group() {
    std::size_t ahead = 2;
    while (true) {
      const char c = peek(ahead);
      if (c == 'm' || c == 'a' || c == 'd' || c == 'u')
        refuse(fmt::format("the inline option {}", c));
      if (c != 'i' && c != 'x' && c != '-') break;
      ++ahead;
    }
    copy(ahead);
  }

  // Alphabetic, marks, decimal digits, connectors, and (Oniguruma's Latin-1 table) ¹ ² ³ ¼ ½ ¾.
  static constexpr std::string_view kWord =
      "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}";
  static constexpr std::string_view kHex = "0-9A-Fa-f";

  const std::string& pattern_;
  std::string out_;
  std::size_t at_ = 0;
  int class_depth_ = 0;
};

}  // namespace

std::string to_pcre2(const std::string& pattern) { return Translator(pattern).run(); }

}  // namespace sinkscope
