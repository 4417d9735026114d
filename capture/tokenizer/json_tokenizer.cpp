// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "capture/checkpoint/printable.h"
#include "capture/checkpoint/text_file.h"
#include "capture/tokenizer/json_components.h"
#include "capture/tokenizer/vocab_tokenizer.h"
#include "core/error.h"

namespace sinkscope {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

// Largest believable id: a stranger's number must not make a table of gigabytes.
constexpr int kMaxId = 1 << 24;

// How much less likely an unknown character is than the rarest piece (SentencePiece's number).
constexpr double kUnknownPenalty = 10;

void check_id(int id, const std::string& piece) {
  if (id < 0 || id >= kMaxId)
    throw Error(ErrorKind::corrupt,
                fmt::format("tokenizer.json: '{}' has the id {}", printable(piece), id));
}

std::vector<std::string> read_vocabulary(const Json& vocabulary) {
  std::vector<std::string> pieces;
  for (const auto& [piece, value] : vocabulary.items()) {
    const int id = json_int(value, "an id of the vocabulary");
    check_id(id, piece);
    const auto i = static_cast<std::size_t>(id);
    if (i >= pieces.size()) pieces.resize(i + 1);
    if (!pieces[i].empty())
      throw Error(ErrorKind::corrupt, fmt::format("tokenizer.json: '{}' and '{}' share the id {}",
                                                  printable(pieces[i]), printable(piece), id));
    pieces[i] = piece;
  }
  return pieces;
}

// "a b" or ["a", "b"].
std::vector<BpeModel::Merge> read_merges(const Json& list) {
  std::vector<BpeModel::Merge> merges;
  merges.reserve(list.size());
  for (const Json& item : list) {
    if (item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_string()) {
      merges.emplace_back(item[0].get<std::string>(), item[1].get<std::string>());
      continue;
    }
    const std::string line = item.is_string() ? item.get<std::string>() : "";
    const std::size_t space = line.find(' ');
    if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos)
      throw Error(
          ErrorKind::corrupt,
          fmt::format("tokenizer.json: model.merges: merge {}: expected two pieces, found {}",
                      merges.size(), printable(item.dump().substr(0, 80))));
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

void require_no_affixes(const Json& model) {
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (model.contains(affix) && model[affix].is_string() &&
        !model[affix].get<std::string>().empty())
      throw Error(
          ErrorKind::unsupported,
          fmt::format("tokenizer.json: BPE with {} is not supported; feed token ids", affix));
}

// What the file says, or what its shape says where it is silent.
std::string model_type(const Json& model) {
  if (model.contains("type") && !model["type"].is_null()) return model["type"].get<std::string>();
  if (model.contains("merges")) return "BPE";
  if (model.contains("vocab") && model["vocab"].is_array()) return "Unigram";
  if (model.contains("continuing_subword_prefix")) return "WordPiece";
  return "without a type";
}

class JsonReader {
 public:
  JsonReader(const Json& json, const Json& config) : json_(json), config_(config) {}

  std::unique_ptr<Tokenizer> read() {
    if (!json_.is_object())
      throw Error(ErrorKind::corrupt,
                  fmt::format("tokenizer.json: expected an object, found {}", json_.type_name()));
    if (!json_.contains("model") || !json_["model"].is_object())
      throw Error(ErrorKind::corrupt,
                  fmt::format("tokenizer.json: model: expected an object, found {}",
                              json_.contains("model") ? json_["model"].type_name() : "none"));
    const Json& model = json_["model"];
    const std::string type = model_type(model);
    parts_.normalizer = read_normalizer(component("normalizer"));
    PreTokenizerRead cut = read_pre_tokenizer(component("pre_tokenizer"));
    parts_.pre_tokenizer = std::move(cut.pre_tokenizer);
    spelling();
    if (type == "BPE")
      bpe(model, cut.family);
    else if (type == "Unigram")
      unigram(model);
    else if (type == "WordPiece")
      word_piece(model);
    else if (type == "WordLevel")
      word_level(model);
    else
      throw Error(ErrorKind::unsupported,
                  fmt::format("tokenizer.json: model {} is not supported, expected BPE, Unigram, "
                              "WordPiece or WordLevel; feed token ids",
                              printable(type)));
    added();
    surroundings();
    return make_pipeline_tokenizer(std::move(parts_), std::move(facts_));
  }

 private:
  const Json& component(const char* name) const {
    static const Json nothing;
    return json_.contains(name) ? json_[name] : nothing;
  }

  // The pieces stay as they are from here on: the ids by piece point into them.
  void set_pieces(std::vector<std::string> pieces) {
    parts_.pieces = std::move(pieces);
    ids_.reserve(parts_.pieces.size());
    for (std::size_t id = 0; id < parts_.pieces.size(); ++id)
      if (!parts_.pieces[id].empty())
        ids_.insert_or_assign(parts_.pieces[id], static_cast<int>(id));
  }

  // Id of a piece of the model's vocabulary, the last of equal ones; -1 when it is none.
  int model_id(std::string_view piece) const {
    const auto it = ids_.find(piece);
    return it == ids_.end() ? -1 : it->second;
  }

  int token_id(const std::string& content) const {
    for (const AddedToken& token : parts_.added)
      if (token.content == content) return token.id;
    return model_id(content);
  }

  void added() {
    if (!json_.contains("added_tokens")) return;
    parts_.added = read_added_tokens(json_["added_tokens"]);
    for (AddedToken& token : parts_.added) {
      check_id(token.id, token.content);
      const int id = model_id(token.content);
      if (id < 0 || id == token.id) continue;
      facts_.warnings.push_back(fmt::format(
          "tokenizer.json: added token '{}' has id {}, the vocabulary says {}, which is used",
          printable(token.content), token.id, id));
      token.id = id;
    }
  }

  // How pieces spell spaces: the alphabet of bytes, or the mark that a space becomes.
  void spelling() {
    constexpr std::string_view kProbe = "a b";
    const std::string probed = normalize(kProbe, parts_.normalizer);
    if (parts_.pre_tokenizer.is_byte_level()) {
      parts_.spelling = PieceSpelling::byte_level;
    } else if (const std::string mark = parts_.pre_tokenizer.space_mark(); !mark.empty()) {
      parts_.spelling = PieceSpelling::space_mark;
      parts_.space_mark = mark;
    } else if (probed.find(kSpaceMark) != std::string::npos) {
      parts_.spelling = PieceSpelling::space_mark;
    }
  }

  void bpe(const Json& model, const std::string& family) {
    require_no_affixes(model);
    set_pieces(read_vocabulary(model.at("vocab")));
    BpeRules rules{.merges = read_merges(model.at("merges")), .options = {}};
    rules.options.ignore_merges = json_flag(model, "ignore_merges");
    rules.options.byte_fallback = json_flag(model, "byte_fallback");
    rules.options.fuse_unk = json_flag(model, "fuse_unk");
    rules.options.unk_id = unk_id(model);
    parts_.has_byte_tokens = rules.options.byte_fallback;
    parts_.model = std::move(rules);
    const bool is_sentencepiece = parts_.spelling == PieceSpelling::space_mark;
    facts_.name = fmt::format("tokenizer.json:bpe/{}", is_sentencepiece ? "sentencepiece" : family);
  }

  void unigram(const Json& model) {
    UnigramPieces rules;
    std::vector<std::string> pieces;
    double lowest = 0;
    for (const Json& entry : model.at("vocab")) {
      pieces.push_back(entry.at(0).get<std::string>());
      rules.scores.push_back(entry.at(1).get<double>());
      lowest = rules.scores.size() == 1 ? rules.scores[0] : std::min(lowest, rules.scores.back());
    }
    check_id(static_cast<int>(pieces.size()) - 1, "the last token");
    set_pieces(std::move(pieces));
    rules.unknown_score = lowest - kUnknownPenalty;
    rules.byte_fallback = json_flag(model, "byte_fallback");
    if (model.contains("unk_id") && !model["unk_id"].is_null()) {
      rules.unk_id = json_int(model["unk_id"], "unk_id");
      if (rules.unk_id < 0 || rules.unk_id >= static_cast<int>(parts_.pieces.size()))
        throw Error(ErrorKind::corrupt, fmt::format("tokenizer.json: unk_id is {}, of {} tokens",
                                                    rules.unk_id, parts_.pieces.size()));
    }
    parts_.has_byte_tokens = rules.byte_fallback;
    parts_.model = std::move(rules);
    facts_.name = "tokenizer.json:unigram";
  }

  void word_piece(const Json& model) {
    set_pieces(read_vocabulary(model.at("vocab")));
    WordPieceOptions rules;
    rules.inner_prefix = model.value("continuing_subword_prefix", rules.inner_prefix);
    if (model.contains("max_input_chars_per_word"))
      rules.max_characters =
          json_int(model["max_input_chars_per_word"], "max_input_chars_per_word");
    rules.unk_id = unk_id(model);
    parts_.model = std::move(rules);
    parts_.spelling = PieceSpelling::word_piece;
    facts_.name = "tokenizer.json:wordpiece";
  }

  void word_level(const Json& model) {
    set_pieces(read_vocabulary(model.at("vocab")));
    parts_.model = WordLevelRules{unk_id(model)};
    facts_.name = "tokenizer.json:wordlevel";
  }

  // -1 also where the vocabulary has none of that name: the package loads such files.
  int unk_id(const Json& model) const { return model_id(json_token(model, "unk_token")); }

  // BOS and EOS: a template decides; without one, tokenizer_config.json's flags.
  void surroundings() {
    const PostProcessorRead post = read_post_processor(component("post_processor"));
    const std::string bos = json_token(config_, "bos_token");
    const std::string eos = json_token(config_, "eos_token");
    const int eos_id = eos.empty() ? -1 : token_id(eos);
    facts_.bos_id = bos.empty() ? -1 : token_id(bos);
    facts_.prefix = post.prefix;
    facts_.suffix = post.suffix;
    for (const auto* ids : {&post.prefix, &post.suffix})
      for (const int id : *ids) check_id(id, "a token of the template");
    facts_.special_ids = {eos_id};
    if (facts_.bos_id < 0 && !post.prefix.empty()) facts_.bos_id = post.prefix.front();
    const bool asks = json_flag(config_, "add_bos_token");
    if (!post.has_template) {
      if (asks && facts_.bos_id >= 0) facts_.prefix = {facts_.bos_id};
      if (json_flag(config_, "add_eos_token") && eos_id >= 0) facts_.suffix = {eos_id};
    } else if (config_.contains("add_bos_token") && facts_.bos_id >= 0) {
      const bool adds =
          std::find(post.prefix.begin(), post.prefix.end(), facts_.bos_id) != post.prefix.end();
      if (adds != asks)
        facts_.warnings.push_back(fmt::format(
            "BOS: tokenizer_config.json says add_bos_token {}, the template of tokenizer.json {} "
            "it and is followed (--bos always|never to choose)",
            asks, adds ? "adds" : "does not add"));
    }
  }

  const Json& json_;
  const Json& config_;
  PipelineParts parts_;
  std::unordered_map<std::string_view, int> ids_;  // of parts_.pieces
  TokenizerFacts facts_;
};

}  // namespace

bool json_flag(const Json& object, const char* name) {
  return object.contains(name) && object[name].is_boolean() && object[name].get<bool>();
}

std::string json_token(const Json& config, const char* name) {
  if (!config.contains(name)) return {};
  const Json& value = config[name];
  if (value.is_string()) return value.get<std::string>();
  return value.is_object() ? value.value("content", "") : "";
}

std::unique_ptr<Tokenizer> read_json_tokenizer(const Json& json, const Json& config,
                                               const std::string& where) {
  try {
    return JsonReader(json, config).read();
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::corrupt, fmt::format("'{}' is no tokenizer.json as expected: {}", where,
                                                json_reason(e.what())));
  }
}

Json read_tokenizer_config(const fs::path& folder) {
  const fs::path path = folder / "tokenizer_config.json";
  if (!is_there(path.string())) return Json::object();
  Json config = parse_json_file(path.string());
  if (!config.is_object())
    throw Error(ErrorKind::corrupt, fmt::format("{}: expected an object", path.string()));
  return config;
}

std::unique_ptr<Tokenizer> open_json_tokenizer(const std::string& json_path) {
  const Json config = read_tokenizer_config(fs::path(json_path).parent_path());
  return read_json_tokenizer(parse_json_file(json_path), config, json_path);
}

}  // namespace sinkscope
