// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "capture/checkpoint/printable.h"
#include "capture/checkpoint/text_file.h"
#include "capture/tokenizer/json_components.h"
#include "capture/tokenizer/sentencepiece_bpe.h"
#include "capture/tokenizer/sentencepiece_proto.h"
#include "capture/tokenizer/vocab_tokenizer.h"
#include "core/error.h"

namespace sinkscope {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;
using Processor = sentencepiece::SentencePieceProcessor;

constexpr int kMaxId = 1 << 24;

// A normalizer_spec with add_dummy_prefix = false. A message that follows another of its kind
// overrides it field by field, so these bytes behind a model switch off the space in front.
constexpr std::string_view kNoSpacePrefix("\x1A\x02\x18\x00", 4);

// Classes whose ids are not those of the model file: they move them to make room for their own.
constexpr const char* kClassesOfOtherIds[] = {"XLMRoberta", "Camembert", "MBart",   "Nllb",
                                              "Pegasus",    "Barthez",   "XGLM",    "FNet",
                                              "DebertaV2",  "M2M100",    "BigBird", "Speech2Text"};

std::unique_ptr<Processor> load(std::string_view bytes, const std::string& where) {
  const auto refuse = [&where](const char* why) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: no SentencePiece model: {}", where, printable(why)));
  };
  auto processor = std::make_unique<Processor>();
  try {
    const auto status = processor->LoadFromSerializedProto({bytes.data(), bytes.size()});
    if (!status.ok()) refuse(status.error_message());
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {  // its tries throw
    refuse(e.what());
  }
  return processor;
}

class LibraryTokenizer : public VocabTokenizer {
 public:
  struct Models {
    std::unique_ptr<Processor> first;   // at the beginning of a text
    std::unique_ptr<Processor> middle;  // behind an added token; null: the same
  };
  LibraryTokenizer(std::vector<std::string> pieces, std::vector<AddedToken> added,
                   TokenizerFacts facts, Models models)
      : VocabTokenizer(std::move(pieces), std::move(added), {}, std::move(facts)),
        models_(std::move(models)) {}

 protected:
  std::int64_t encode_fragment(const Fragment& fragment, std::vector<int>& ids) const override {
    const bool is_middle = models_.middle != nullptr && !fragment.begins_text;
    std::vector<int> made;
    const auto status = (is_middle ? models_.middle : models_.first)->Encode(fragment.text, &made);
    if (!status.ok())
      throw Error(ErrorKind::corrupt,
                  fmt::format("SentencePiece cannot cut the text: {}", status.error_message()));
    ids.insert(ids.end(), made.begin(), made.end());
    return 0;
  }

  std::string piece_bytes(int id) const override {
    const std::string& piece = vocabulary_.piece(id);
    const int byte = models_.first->IsByte(id) ? byte_of_piece(piece) : -1;
    if (byte >= 0) return std::string(1, static_cast<char>(byte));
    std::string text;
    for (std::size_t at = 0; at < piece.size();) {
      const bool is_mark = std::string_view(piece).substr(at).starts_with(kSpaceMark);
      text += is_mark ? ' ' : piece[at];
      at += is_mark ? kSpaceMark.size() : 1;
    }
    return text;
  }

 private:
  Models models_;
};

// The model's control tokens and what tokenizer_config.json and added_tokens.json add.
class AddedReader {
 public:
  explicit AddedReader(const Processor& model) {
    for (int id = 0; id < model.GetPieceSize(); ++id)
      if (model.IsControl(id) || model.IsUnknown(id))
        put({.id = id, .content = model.IdToPiece(id), .special = true});
  }

  // "added_tokens_decoder": {"32000": {"content": …}, …}
  void read_decoder(const Json& config) {
    if (!config.contains("added_tokens_decoder")) return;
    for (const auto& [text, token] : config["added_tokens_decoder"].items()) {
      int id = -1;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
      if (error != std::errc() || end != text.data() + text.size()) id = -1;
      check(id, text);
      Json listed = token;
      listed["id"] = id;
      put(read_added_tokens(Json::array({listed})).front());
    }
  }

  // {"<token>": 32000, …}
  void read_list(const Json& list) {
    for (const auto& [content, id] : list.items()) {
      const int number = json_int(id, "the id of an added token");
      check(number, content);
      put({.id = number, .content = content, .special = true});
    }
  }

  std::vector<AddedToken> take() { return std::move(tokens_); }
  int id_of(const std::string& content) const {
    const auto it = std::find_if(tokens_.begin(), tokens_.end(),
                                 [&](const AddedToken& t) { return t.content == content; });
    return it == tokens_.end() ? -1 : it->id;
  }

 private:
  static void check(int id, const std::string& content) {
    if (id < 0 || id >= kMaxId)
      throw Error(ErrorKind::corrupt, fmt::format("added token '{}' has no id from 0 to {}",
                                                  printable(content), kMaxId));
  }
  void put(AddedToken token) {
    const auto [slot, is_new] = slot_of_.emplace(token.id, tokens_.size());
    if (is_new)
      tokens_.push_back(std::move(token));
    else
      tokens_[slot->second] = std::move(token);
  }
  std::vector<AddedToken> tokens_;
  std::unordered_map<int, std::size_t> slot_of_;  // id -> place among tokens_
};

void require_own_ids(const Json& config) {
  const std::string name = json_token(config, "tokenizer_class");
  for (const char* other : kClassesOfOtherIds)
    if (name.starts_with(other))
      throw Error(ErrorKind::unsupported,
                  fmt::format("tokenizer.model of a {}: its ids are not those of the model file; "
                              "feed token ids, or save tokenizer.json",
                              printable(name)));
}

bool flag_or(const Json& config, const char* name, bool otherwise) {
  return config.contains(name) && config[name].is_boolean() ? config[name].get<bool>() : otherwise;
}

// The id of a token that the configuration names: an added one or any piece; -1 where it is none.
int id_of(const Processor& model, const AddedReader& added, const std::string& content) {
  const int id = added.id_of(content);
  if (id >= 0) return id;
  const int piece = model.PieceToId(content);  // the unknown token's for what is no piece
  return piece >= 0 && model.IdToPiece(piece) == content ? piece : -1;
}

// BOS and EOS as the configuration says; where it is silent as its kind does: Llama's BPE begins
// with BOS, T5's Unigram ends with EOS.
TokenizerFacts read_facts(const Processor& model, SentencePieceFacts::Kind kind, const Json& config,
                          const AddedReader& added) {
  const bool is_bpe = kind == SentencePieceFacts::Kind::bpe;
  TokenizerFacts facts;
  facts.name =
      fmt::format("tokenizer.model:{}", is_bpe                                      ? "bpe"
                                        : kind == SentencePieceFacts::Kind::unigram ? "unigram"
                                                                                    : "words");
  const std::string bos = json_token(config, "bos_token"), eos = json_token(config, "eos_token");
  facts.bos_id = bos.empty() ? model.bos_id() : id_of(model, added, bos);
  const int eos_id = eos.empty() ? model.eos_id() : id_of(model, added, eos);
  facts.special_ids = {eos_id};
  if (flag_or(config, "add_bos_token", is_bpe) && facts.bos_id >= 0) facts.prefix = {facts.bos_id};
  if (flag_or(config, "add_eos_token", kind == SentencePieceFacts::Kind::unigram) && eos_id >= 0)
    facts.suffix = {eos_id};
  return facts;
}

std::unique_ptr<Tokenizer> read(const std::string& path, const Json& config) {
  require_own_ids(config);
  const std::string bytes = read_text_file(path);
  const SentencePieceFacts model = check_sentencepiece_model(bytes, path);
  LibraryTokenizer::Models models{load(bytes, path), nullptr};
  if (!flag_or(config, "legacy", true))
    models.middle = load(bytes + std::string(kNoSpacePrefix), path);
  AddedReader added(*models.first);
  added.read_decoder(config);
  const fs::path list = fs::path(path).parent_path() / "added_tokens.json";
  if (is_there(list.string())) added.read_list(parse_json_file(list.string()));
  std::vector<std::string> pieces;
  for (int id = 0; id < models.first->GetPieceSize(); ++id)
    pieces.push_back(models.first->IdToPiece(id));
  TokenizerFacts facts = read_facts(*models.first, model.kind, config, added);
  return std::make_unique<LibraryTokenizer>(std::move(pieces), added.take(), std::move(facts),
                                            std::move(models));
}

}  // namespace

std::unique_ptr<Tokenizer> open_sentencepiece_tokenizer(const std::string& model_path) {
  const Json config = read_tokenizer_config(fs::path(model_path).parent_path());
  try {
    return read(model_path, config);
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::corrupt, fmt::format("'{}': tokenizer_config.json or added_tokens.json "
                                                "beside it is not as expected: {}",
                                                model_path, json_reason(e.what())));
  }
}

}  // namespace sinkscope
