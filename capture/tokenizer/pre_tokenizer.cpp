// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/pre_tokenizer.h"

#include <algorithm>

#include "capture/tokenizer/byte_alphabet.h"

namespace sinkscope {
namespace {

struct Stretch {
  Span span;
  bool is_delimiter;
};

// The whole of a piece as delimiters and the gaps between them.
std::vector<Stretch> stretches(Span piece, const std::vector<Span>& matches, bool invert) {
  std::vector<Stretch> all;
  std::int64_t at = piece.begin;
  for (const Span& match : matches) {
    const Span found{piece.begin + match.begin, piece.begin + match.end};
    if (found.begin > at) all.push_back({{at, found.begin}, invert});
    all.push_back({found, !invert});
    at = found.end;
  }
  if (at < piece.end) all.push_back({{at, piece.end}, invert});
  return all;
}

// Joins a stretch to the one before it where `joins(previous, this)` says so.
template <class Joins>
void join(std::vector<Stretch>& all, const Joins& joins) {
  std::vector<Stretch> joined;
  bool previous = false;
  for (const Stretch& stretch : all) {
    if (!joined.empty() && joins(previous, stretch.is_delimiter)) {
      Span& last = joined.back().span;
      last = {std::min(last.begin, stretch.span.begin), std::max(last.end, stretch.span.end)};
    } else {
      joined.push_back(stretch);
    }
    previous = stretch.is_delimiter;
  }
  all = std::move(joined);
}

void apply(SplitBehavior behavior, std::vector<Stretch>& all) {
  const auto to_neighbor = [](bool previous, bool current) { return current && !previous; };
  switch (behavior) {
    case SplitBehavior::isolated:
      break;
    case SplitBehavior::removed:
      std::erase_if(all, [](const Stretch& s) { return s.is_delimiter; });
      break;
    case SplitBehavior::contiguous:
      join(all, [](bool previous, bool current) { return previous == current; });
      break;
    case SplitBehavior::merged_with_previous:
      join(all, to_neighbor);
      break;
    case SplitBehavior::merged_with_next:
      std::reverse(all.begin(), all.end());
      join(all, to_neighbor);
      std::reverse(all.begin(), all.end());
      break;
  }
}

// Rebuilds the text from its pieces: `spell(out, piece)` appends one of them.
template <class Spell>
void rebuild(Pieces& pieces, const Spell& spell) {
  Pieces made;
  made.text.reserve(pieces.text.size());
  for (const Span& piece : pieces.spans) {
    const auto begin = static_cast<std::int64_t>(made.text.size());
    spell(made.text, slice(pieces.text, piece));
    made.spans.push_back({begin, static_cast<std::int64_t>(made.text.size())});
  }
  pieces = std::move(made);
}

// The piece cut before every mark.
void cut_before(std::string_view mark, std::string_view text, Span piece, std::vector<Span>& cut) {
  for (std::int64_t begin = piece.begin; begin < piece.end;) {
    const std::size_t next = slice(text, {begin, piece.end}).find(mark, 1);
    const std::int64_t end =
        next == std::string_view::npos ? piece.end : begin + static_cast<std::int64_t>(next);
    cut.push_back({begin, end});
    begin = end;
  }
}

}  // namespace

Pieces PreTokenizer::run(std::string_view text, Place place) const {
  Pieces pieces{std::string(text), {}};
  if (!text.empty()) pieces.spans.push_back({0, static_cast<std::int64_t>(text.size())});
  for (const Stage& stage : stages_) {
    if (const auto* s = std::get_if<SplitStage>(&stage))
      split(pieces, s->delimiter, s->behavior, s->invert);
    else if (const auto* b = std::get_if<ByteLevelStage>(&stage))
      byte_level(pieces, *b);
    else
      metaspace(pieces, std::get<MetaspaceStage>(stage), place);
  }
  return pieces;
}

bool PreTokenizer::is_byte_level() const {
  return std::any_of(stages_.begin(), stages_.end(), [](const Stage& stage) {
    return std::holds_alternative<ByteLevelStage>(stage);
  });
}

std::string PreTokenizer::space_mark() const {
  for (const Stage& stage : stages_)
    if (const auto* m = std::get_if<MetaspaceStage>(&stage)) return m->mark;
  return {};
}

void PreTokenizer::split(Pieces& pieces, const Regex& delimiter, SplitBehavior behavior,
                         bool invert) const {
  std::vector<Span> cut, matches;
  for (const Span& piece : pieces.spans) {
    matches.clear();
    delimiter.find_all(slice(pieces.text, piece), matches);
    std::vector<Stretch> all = stretches(piece, matches, invert);
    apply(behavior, all);
    for (const Stretch& stretch : all)
      if (stretch.span.size() > 0) cut.push_back(stretch.span);
  }
  pieces.spans = std::move(cut);
}

void PreTokenizer::byte_level(Pieces& pieces, const ByteLevelStage& stage) const {
  if (stage.add_prefix_space)
    rebuild(pieces, [](std::string& out, std::string_view piece) {
      if (!piece.starts_with(' ')) out += ' ';
      out += piece;
    });
  if (stage.use_regex) split(pieces, gpt2_, SplitBehavior::isolated, false);
  rebuild(pieces, [](std::string& out, std::string_view piece) { append_byte_level(out, piece); });
}

void PreTokenizer::metaspace(Pieces& pieces, const MetaspaceStage& stage, Place place) {
  bool is_first = place == Place::begin;
  rebuild(pieces, [&](std::string& out, std::string_view piece) {
    const std::size_t begin = out.size();
    for (const char c : piece) {
      if (c == ' ')
        out += stage.mark;
      else
        out += c;
    }
    const bool wants_mark = stage.prepend == MetaspaceStage::Prepend::always ||
                            (stage.prepend == MetaspaceStage::Prepend::first && is_first);
    if (wants_mark && !std::string_view(out).substr(begin).starts_with(stage.mark))
      out.insert(begin, stage.mark);
    is_first = false;
  });
  if (!stage.split) return;
  std::vector<Span> cut;
  for (const Span& piece : pieces.spans) cut_before(stage.mark, pieces.text, piece, cut);
  pieces.spans = std::move(cut);
}

}  // namespace sinkscope
