// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "capture/tokenizer/unicode.h"

namespace sinkscope {

// A compiled split pattern (PCRE2, UTF + UCP, JIT). Patterns are written as in tokenizer.json, that
// is in Oniguruma's Ruby syntax, and mean what they mean there:
// - \s is White_Space. PCRE2 would also take U+180E, which left White_Space in Unicode 6.3.
// - \w is Alphabetic, marks, decimal digits, connector punctuation (PCRE2: letters, numbers, _).
// - ^ and $ match at every line; a class inside a class is a union.
// What cannot be said in PCRE2 exactly is refused. Characters younger than PCRE2's Unicode tables
// (10.42: Unicode 14) count as unassigned. Const members are thread-safe.
class Regex {
 public:
  enum class Syntax { pattern, literal };

  // Throws Error{unsupported} naming the pattern and the part that is not understood.
  explicit Regex(const std::string& pattern, Syntax syntax = Syntax::pattern);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  // Appends every match in `subject` (valid UTF-8; lookarounds end at its borders), left to right,
  // without overlap; an empty match right behind another is not counted. An empty subject has none.
  void find_all(std::string_view subject, std::vector<Span>& matches) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

// The same pattern in PCRE2's syntax; throws as the constructor.
std::string to_pcre2(const std::string& pattern);

}  // namespace sinkscope
