// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/sentencepiece_proto.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "capture/tokenizer/charsmap.h"
#include "core/error.h"

namespace sinkscope {
namespace {

constexpr int kMaxPieces = 1 << 24;

// The type of a piece that the library looks for before it cuts, and how many of those a text may
// begin with: it has room for no more.
constexpr std::uint32_t kUserDefined = 4;
constexpr std::size_t kMostNested = 64;

// One field of a protobuf message. `bytes`: a string, bytes or message; else the raw value.
struct Field {
  std::uint64_t number = 0;
  bool is_bytes = false;
  std::string_view bytes;
  std::uint64_t value = 0;
};

// Walks the fields of one message.
class Message {
 public:
  Message(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  bool next(Field& field) {
    if (bytes_.empty()) return false;
    const std::uint64_t tag = varint();
    field = {.number = tag >> 3, .is_bytes = (tag & 7) == 2, .bytes = {}, .value = 0};
    switch (tag & 7) {
      case 0:
        field.value = varint();
        return true;
      case 1:
        field.value = fixed(8);
        return true;
      case 2:
        field.bytes = take(varint());
        return true;
      case 5:
        field.value = fixed(4);
        return true;
      default:
        refuse(fmt::format("field {} has the wire type {}", field.number, tag & 7));
    }
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::corrupt, fmt::format("{}: no SentencePiece model: {}", where_, what));
  }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    refuse("a number of more than ten bytes");
  }

  std::uint64_t fixed(std::size_t size) {
    std::uint64_t value = 0;
    std::memcpy(&value, take(size).data(), size);
    return value;
  }

  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size())
      refuse(fmt::format("a field of {} bytes where {} are left", size, bytes_.size()));
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

  std::string_view bytes_;
  const std::string& where_;
};

// Returns the text of a user-defined piece, "" of any other.
std::string_view check_piece(std::string_view bytes, int id, const std::string& where) {
  Message piece(bytes, where);
  Field field;
  std::string_view text;
  bool is_user_defined = false;
  while (piece.next(field)) {
    if (field.number == 1) {
      text = field.bytes;
      if (field.bytes.find('\0') != std::string_view::npos)
        piece.refuse(fmt::format("piece {} holds a zero byte", id));
    }
    if (field.number == 3)
      is_user_defined |= static_cast<std::uint32_t>(field.value) == kUserDefined;
    if (field.number != 2) continue;
    float score = 0;
    const auto bits = static_cast<std::uint32_t>(field.value);
    std::memcpy(&score, &bits, sizeof score);
    if (field.is_bytes || !std::isfinite(score))
      piece.refuse(fmt::format("the score of piece {} is not a number", id));
  }
  if (text.empty()) piece.refuse(fmt::format("piece {} has no text", id));
  return is_user_defined ? text : std::string_view();
}

// How many of the texts begin with one another at most.
std::size_t most_nested(std::vector<std::string_view> texts) {
  std::sort(texts.begin(), texts.end());
  std::size_t most = 0;
  std::vector<std::string_view> prefixes;  // of a text, itself the last
  for (const std::string_view text : texts) {
    while (!prefixes.empty() && !text.starts_with(prefixes.back())) prefixes.pop_back();
    prefixes.push_back(text);
    most = std::max(most, prefixes.size());
  }
  return most;
}

void check_normalizer(std::string_view bytes, const std::string& where) {
  Message normalizer(bytes, where);
  Field field;
  while (normalizer.next(field))
    if (field.number == 2 && field.is_bytes) try {
        const Charsmap charsmap(field.bytes);
      } catch (const Error& error) {
        normalizer.refuse(error.what());
      }
}

void read_trainer(std::string_view bytes, const std::string& where, SentencePieceFacts& facts) {
  Message trainer(bytes, where);
  Field field;
  while (trainer.next(field)) {
    if (field.number != 3 || field.is_bytes) continue;
    if (field.value < 1 || field.value > 4)
      trainer.refuse(fmt::format("the model type {}, expected 1 to 4", field.value));
    facts.kind = static_cast<SentencePieceFacts::Kind>(field.value);
  }
}

}  // namespace

SentencePieceFacts check_sentencepiece_model(std::string_view bytes, const std::string& where) {
  if (bytes.starts_with("version https://git-lfs"))
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: a Git-LFS pointer, not the file itself", where));
  SentencePieceFacts facts;
  std::vector<std::string_view> user_defined;
  Message model(bytes, where);
  Field field;
  while (model.next(field)) {
    if (!field.is_bytes) continue;
    if (field.number == 1) {
      if (facts.n_pieces == kMaxPieces)
        model.refuse(fmt::format("more than {} pieces", kMaxPieces));
      const std::string_view text = check_piece(field.bytes, facts.n_pieces++, where);
      if (!text.empty()) user_defined.push_back(text);
    } else if (field.number == 2) {
      read_trainer(field.bytes, where, facts);
    } else if (field.number == 3 || field.number == 5) {
      check_normalizer(field.bytes, where);
    }
  }
  if (facts.n_pieces == 0) model.refuse("it has no pieces");
  if (most_nested(std::move(user_defined)) > kMostNested)
    model.refuse(
        fmt::format("more than {} user-defined pieces begin with one another", kMostNested));
  return facts;
}

}  // namespace sinkscope
