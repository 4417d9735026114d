// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/regex.h"

#include <fmt/format.h>

#include "capture/checkpoint/printable.h"
#include "core/error.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace sinkscope {
namespace {

// Deep recursion of a stranger's pattern ends in an error, not in a crash.
constexpr std::size_t kJitStackStart = 32 * 1024, kJitStackMax = 16 * 1024 * 1024;

struct FreeMatchData {
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
};
struct FreeMatchContext {
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
};
struct FreeJitStack {
  void operator()(pcre2_jit_stack* p) const { pcre2_jit_stack_free(p); }
};
struct FreeCompileContext {
  void operator()(pcre2_compile_context* p) const { pcre2_compile_context_free(p); }
};
struct FreeCode {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
};

std::string pcre2_message(int code) {
  PCRE2_UCHAR buffer[256];
  if (pcre2_get_error_message(code, buffer, sizeof buffer) < 0) return fmt::format("code {}", code);
  return reinterpret_cast<const char*>(buffer);
}

// What one thread needs to match; made once, since pieces are many and small.
struct MatchScratch {
  std::unique_ptr<pcre2_match_data, FreeMatchData> data{pcre2_match_data_create(32, nullptr)};
  std::unique_ptr<pcre2_match_context, FreeMatchContext> context{
      pcre2_match_context_create(nullptr)};
  std::unique_ptr<pcre2_jit_stack, FreeJitStack> stack{
      pcre2_jit_stack_create(kJitStackStart, kJitStackMax, nullptr)};
  MatchScratch() {
    if (!data || !context || !stack)
      throw Error(ErrorKind::out_of_memory, "no memory for a pattern match");
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

}  // namespace

struct Regex::Compiled {
  std::unique_ptr<pcre2_code, FreeCode> code;
  std::string pattern;  // as given, for messages
};

Regex::Regex(const std::string& pattern, Syntax syntax) : compiled_(std::make_unique<Compiled>()) {
  const bool is_literal = syntax == Syntax::literal;
  const std::string translated = is_literal ? pattern : to_pcre2(pattern);
  const std::unique_ptr<pcre2_compile_context, FreeCompileContext> context(
      pcre2_compile_context_create(nullptr));
  if (!context) throw Error(ErrorKind::out_of_memory, "no memory to compile a pattern");
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  const std::uint32_t options =
      PCRE2_UTF | (is_literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE);
  int error = 0;
  PCRE2_SIZE where = 0;
  compiled_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()),
                                      translated.size(), options, &error, &where, context.get()));
  if (!compiled_->code)
    throw Error(ErrorKind::unsupported, fmt::format("split pattern '{}' is not understood: {}",
                                                    printable(pattern), pcre2_message(error)));
  // Where there is no JIT, pcre2_match interprets: slower, the same matches.
  pcre2_jit_compile(compiled_->code.get(), PCRE2_JIT_COMPLETE);
  compiled_->pattern = pattern;
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

void Regex::find_all(std::string_view subject, std::vector<Span>& matches) const {
  if (subject.empty()) return;
  thread_local const MatchScratch scratch;
  const auto size = static_cast<std::int64_t>(subject.size());
  std::int64_t from = 0, last_end = -1;
  while (from <= size) {
    const int rc = pcre2_match(compiled_->code.get(), reinterpret_cast<PCRE2_SPTR>(subject.data()),
                               subject.size(), static_cast<PCRE2_SIZE>(from), PCRE2_NO_UTF_CHECK,
                               scratch.data.get(), scratch.context.get());
    if (rc == PCRE2_ERROR_NOMATCH) return;
    if (rc < 0)
      throw Error(ErrorKind::unsupported,
                  fmt::format("split pattern '{}' gave up on the text: {}",
                              printable(compiled_->pattern), pcre2_message(rc)));
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(scratch.data.get());
    const Span match{static_cast<std::int64_t>(ends[0]), static_cast<std::int64_t>(ends[1])};
    if (match.size() <= 0 && match.begin == last_end) {
      from += from < size ? utf8_at(subject, from).size : 1;
      continue;
    }
    matches.push_back(match);
    from = last_end = match.end;
  }
}

}  // namespace sinkscope
