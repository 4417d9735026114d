// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <filesystem>

#include "capture/checkpoint/gguf_file.h"
#include "capture/checkpoint/model_files.h"
#include "capture/checkpoint/text_file.h"
#include "capture/tokenizer/tokenizer_file.h"
#include "capture/tokenizer/unicode.h"
#include "core/error.h"

namespace sinkscope {
namespace fs = std::filesystem;
namespace {

// A character as a label shows it.
std::string visible(char32_t code, std::string_view spelled) {
  switch (code) {
    case U' ':
      return "·";
    case U'\n':
      return "↵";
    case U'\t':
      return "⇥";
    case 0x200D:  // joins the parts of one emoji
      return std::string(spelled);
    case 0x7F:
      return "␡";
    default:
      break;
  }
  if (code < 0x20) return to_utf8(0x2400 + code);  // Control Pictures: ␍ and the like
  if (is_invisible(code)) return fmt::format("⟨U+{:04X}⟩", static_cast<unsigned>(code));
  return std::string(spelled);
}

std::string label(std::string_view bytes) {
  std::string text, partial;  // partial: the hex of bytes that are no whole character
  const auto flush = [&] {
    if (!partial.empty()) text += fmt::format("⟨{}⟩", partial);
    partial.clear();
  };
  for (std::int64_t at = 0; at < static_cast<std::int64_t>(bytes.size());) {
    const Utf8Char c = utf8_at(bytes, at);
    const std::string_view spelled = slice(bytes, {at, at + c.size});
    at += c.size;
    if (c.is_valid) {
      flush();
      text += visible(c.code, spelled);
      continue;
    }
    for (const char byte : spelled)
      partial +=
          fmt::format("{}{:02X}", partial.empty() ? "" : " ", static_cast<unsigned char>(byte));
  }
  flush();
  return text;
}

// A special token as it is spelled, unless that could not be shown as it is.
std::string special_label(const std::string& spelled) {
  for (std::int64_t at = 0; at < static_cast<std::int64_t>(spelled.size());) {
    const Utf8Char c = utf8_at(spelled, at);
    if (!c.is_valid || (c.code != U' ' && is_invisible(c.code))) return label(spelled);
    at += c.size;
  }
  return spelled;
}

std::unique_ptr<Tokenizer> named(std::unique_ptr<Tokenizer> tokenizer, const std::string& path) {
  tokenizer->set_file(path);
  return tokenizer;
}

}  // namespace

Error in_file(const std::string& path, const Error& error) {
  const std::string what = error.what();
  return what.find(path) != std::string::npos
             ? error
             : Error(error.kind(), fmt::format("{}: {}", path, what));
}

std::vector<std::string> Tokenizer::labels(const std::vector<int>& ids) const {
  std::vector<std::string> labels;
  labels.reserve(ids.size());
  for (const int id : ids)
    labels.push_back(is_special(id) ? special_label(raw_piece(id)) : label(bytes(id)));
  return labels;
}

std::string Tokenizer::decode(const std::vector<int>& ids) const {
  std::string joined, text;
  for (const int id : ids) joined += bytes(id);
  for (std::int64_t at = 0; at < static_cast<std::int64_t>(joined.size());) {
    const Utf8Char c = utf8_at(joined, at);
    text += c.is_valid ? slice(joined, {at, at + c.size}) : std::string_view("\xEF\xBF\xBD");
    at += c.size;
  }
  return text;
}

std::unique_ptr<Tokenizer> open_tokenizer_file(const std::string& path,
                                               const TokenizerOptions& options) {
  const bool is_gguf = looks_like_gguf(path);
  const bool is_sentencepiece = path.ends_with(".model");
  if (!is_gguf && !options.pre_tokenizer.empty())
    throw Error(ErrorKind::invalid_argument,
                fmt::format("--pre-tokenizer is for GGUF files; {} {}", path,
                            is_sentencepiece ? "cuts text its own way" : "says how it cuts text"));
  try {
    if (is_gguf) return named(open_gguf_tokenizer(*GgufFile::open(path), options), path);
    return named(is_sentencepiece ? open_sentencepiece_tokenizer(path) : open_json_tokenizer(path),
                 path);
  } catch (const Error& error) {
    throw in_file(path, error);
  }
}

std::unique_ptr<Tokenizer> open_tokenizer(const ModelFiles& model,
                                          const TokenizerOptions& options) {
  fs::path folder = model.path();
  if (model.gguf() != nullptr) {
    try {
      return named(open_gguf_tokenizer(*model.gguf(), options), model.path());
    } catch (const Error& error) {
      throw in_file(model.path(), error);
    }
  }
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) folder = folder.parent_path();
  for (const char* name : {"tokenizer.json", "tokenizer.model"}) {
    const std::string file = (folder / name).string();
    if (is_there(file)) return open_tokenizer_file(file, options);
  }
  const fs::path gguf = folder / "tokenizer.gguf";  // beside a model that was a GGUF file before
  if (fs::exists(gguf)) return open_tokenizer_file(gguf.string(), options);
  for (const char* other : {"vocab.json", "vocab.txt", "tiktoken.model"})
    if (is_there((folder / other).string()))
      throw Error(ErrorKind::unsupported,
                  fmt::format("'{}' holds {} and no tokenizer.json; feed token ids, or save the "
                              "tokenizer once with save_pretrained",
                              folder.string(), other));
  throw Error(
      ErrorKind::not_found,
      fmt::format("'{}' holds no tokenizer (tokenizer.json, tokenizer.model, tokenizer.gguf)",
                  folder.string()));
}

}  // namespace sinkscope
