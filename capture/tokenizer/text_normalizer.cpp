// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/text_normalizer.h"

#include <fmt/format.h>

#include <type_traits>

#include "core/error.h"

namespace sinkscope {
namespace {

// The text with every character replaced by what `map` appends for it.
template <class Map>
std::string map_characters(std::string_view text, const Map& map) {
  std::string result;
  result.reserve(text.size());
  for (std::int64_t at = 0; at < static_cast<std::int64_t>(text.size());) {
    const Utf8Char c = utf8_at(text, at);
    map(c.code, slice(text, {at, at + c.size}), result);
    at += c.size;
  }
  return result;
}

std::string lowercase(std::string_view text) {
  return map_characters(text, [](char32_t code, std::string_view spelled, std::string& out) {
    // The only character whose lowercase is longer than one.
    if (code == 0x130)
      out += "i\u0307";
    else if (const char32_t lower = to_lower(code); lower != code)
      out += to_utf8(lower);
    else
      out += spelled;
  });
}

std::string without_marks(std::string_view text, bool nonspacing_only) {
  return map_characters(text, [=](char32_t code, std::string_view spelled, std::string& out) {
    if (!(nonspacing_only ? is_nonspacing_mark(code) : is_mark(code))) out += spelled;
  });
}

bool is_ideograph(char32_t code) {
  return (code >= 0x4E00 && code <= 0x9FFF) || (code >= 0x3400 && code <= 0x4DBF) ||
         (code >= 0x20000 && code <= 0x2A6DF) || (code >= 0x2A700 && code <= 0x2B73F) ||
         (code >= 0x2B740 && code <= 0x2B81F) || (code >= 0x2B920 && code <= 0x2CEAF) ||
         (code >= 0xF900 && code <= 0xFAFF) || (code >= 0x2F800 && code <= 0x2FA1F);
}

std::string bert(std::string text, const BertText& step) {
  if (step.clean_text)
    text = map_characters(text, [](char32_t code, std::string_view spelled, std::string& out) {
      if (code == '\t' || code == '\n' || code == '\r')
        out += ' ';
      else if (code == 0 || code == 0xFFFD || is_control(code))
        return;
      else if (is_white_space(code))
        out += ' ';
      else
        out += spelled;
    });
  if (step.handle_chinese_chars)
    text = map_characters(text, [](char32_t code, std::string_view spelled, std::string& out) {
      if (is_ideograph(code)) out += ' ';
      out += spelled;
      if (is_ideograph(code)) out += ' ';
    });
  if (step.strip_accents) text = without_marks(normalize(text, NormalForm::nfd), true);
  return step.lowercase ? lowercase(text) : text;
}

std::string nmt(std::string_view text) {
  return map_characters(text, [](char32_t code, std::string_view spelled, std::string& out) {
    if ((code >= 0x01 && code <= 0x08) || code == 0x0B || (code >= 0x0E && code <= 0x1F) ||
        code == 0x7F || code == 0x8F || code == 0x9F)
      return;
    const bool is_space = code == 0x09 || code == 0x0A || code == 0x0C || code == 0x0D ||
                          code == 0x1680 || (code >= 0x200B && code <= 0x200F) || code == 0x2028 ||
                          code == 0x2029 || code == 0x2581 || code == 0xFEFF || code == 0xFFFD;
    out += is_space ? std::string_view(" ") : spelled;
  });
}

constexpr std::size_t kMostTimes = 64, kMostMore = std::size_t{1} << 20;

// The size of what a step has made, while and after it makes it.
class Growth {
 public:
  Growth(std::size_t step, std::size_t n_steps, std::size_t text_size)
      : step_(step), n_steps_(n_steps), most_(kMostTimes * text_size + kMostMore) {}

  void check(std::size_t size) const {
    if (size > most_)
      throw Error(ErrorKind::unsupported,
                  fmt::format("normalizer: step {} of {}: expected at most {} bytes of this text, "
                              "found more",
                              step_, n_steps_, most_));
  }

 private:
  std::size_t step_, n_steps_, most_;
};

std::string replace(std::string_view text, const ReplaceText& step, const Growth& growth) {
  std::vector<Span> matches;
  step.pattern->find_all(text, matches);
  std::string result;
  std::int64_t done = 0;
  for (const Span& match : matches) {
    result += slice(text, {done, match.begin});
    result += step.replacement;
    growth.check(result.size());
    done = match.end;
  }
  return result.append(text.substr(static_cast<std::size_t>(done)));
}

std::string strip(std::string_view text, const StripSpace& step) {
  if (step.left) text.remove_prefix(static_cast<std::size_t>(leading_space(text)));
  if (step.right) text.remove_suffix(static_cast<std::size_t>(trailing_space(text)));
  return std::string(text);
}

std::string apply(std::string text, const NormalizerStep& step, const Growth& growth) {
  return std::visit(
      [&](const auto& s) -> std::string {
        using Step = std::decay_t<decltype(s)>;
        if constexpr (std::is_same_v<Step, NormalForm>) return normalize(text, s);
        if constexpr (std::is_same_v<Step, Lowercase>) return lowercase(text);
        if constexpr (std::is_same_v<Step, StripAccents>) return without_marks(text, false);
        if constexpr (std::is_same_v<Step, StripSpace>) return strip(text, s);
        if constexpr (std::is_same_v<Step, PrependText>) return text.empty() ? text : s.text + text;
        if constexpr (std::is_same_v<Step, ReplaceText>) return replace(text, s, growth);
        if constexpr (std::is_same_v<Step, BertText>) return bert(std::move(text), s);
        if constexpr (std::is_same_v<Step, NmtText>) return nmt(text);
        if constexpr (std::is_same_v<Step, PrecompiledText>)
          return normalize_graphemes(text, *s.charsmap);
        if constexpr (std::is_same_v<Step, std::shared_ptr<const SentencePieceNormalizer>>)
          return s->run(text);
      },
      step);
}

}  // namespace

std::string normalize(std::string_view text, const TextNormalizer& normalizer) {
  std::string result(text);
  for (std::size_t i = 0; i < normalizer.size(); ++i) {
    const Growth growth(i + 1, normalizer.size(), text.size());
    result = apply(std::move(result), normalizer[i], growth);
    growth.check(result.size());
  }
  return result;
}

}  // namespace sinkscope
