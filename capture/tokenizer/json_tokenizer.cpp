// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "capture/checkpoint/printable.h"
#include "capture/tokenizer/json_components.h"
#include "capture/tokenizer/vocab_tokenizer.h"
#include "core/error.h"

namespace sinkscope {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

// Largest believable id: a stranger's number must not make a table of gigabytes.
constexpr int kMaxId = 1 << 24;

Json parse_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorKind::not_found, fmt::format("cannot open '{}'", path.string()));
  try {
    return Json::parse(file);
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::corrupt,
                fmt::format("'{}' is not JSON: {}", path.string(), printable(e.what())));
  }
}

void check_id(int id, const std::string& piece) {
  if (id < 0 || id >= kMaxId)
    throw Error(ErrorKind::corrupt,
                fmt::format("tokenizer.json: '{}' has the id {}", printable(piece), id));
}

std::vector<std::string> read_vocabulary(const Json& vocabulary) {
  std::vector<std::string> pieces;
  for (const auto& [piece, value] : vocabulary.items()) {
    const int id = value.get<int>();
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
    if (item.is_array() && item.size() == 2) {
      merges.emplace_back(item[0].get<std::string>(), item[1].get<std::string>());
      continue;
    }
    const auto line = item.get<std::string>();
    const std::size_t space = line.find(' ');
    if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos)
      throw Error(ErrorKind::corrupt,
                  fmt::format("tokenizer.json: merge {} is '{}', expected two pieces",
                              merges.size(), printable(line)));
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

void require_plain_bpe(const Json& model) {
  const auto type = model.value("type", model.contains("merges") ? "BPE" : "without a type");
  if (type != "BPE")
    throw Error(ErrorKind::unsupported,
                fmt::format("tokenizer.json: model {} is not supported, expected BPE; feed token "
                            "ids",
                            printable(type)));
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (model.contains(affix) && model[affix].is_string() &&
        !model[affix].get<std::string>().empty())
      throw Error(
          ErrorKind::unsupported,
          fmt::format("tokenizer.json: BPE with {} is not supported; feed token ids", affix));
}

bool flag(const Json& object, const char* name) {
  return object.contains(name) && object[name].is_boolean() && object[name].get<bool>();
}

// A special token of tokenizer_config.json: a string or {"content": …}; "" where there is none.
std::string config_token(const Json& config, const char* name) {
  if (!config.contains(name)) return {};
  const Json& value = config[name];
  if (value.is_string()) return value.get<std::string>();
  return value.is_object() ? value.value("content", "") : "";
}

class JsonReader {
 public:
  JsonReader(const Json& json, const Json& config) : json_(json), config_(config) {}

  std::unique_ptr<Tokenizer> read() {
    const Json& model = json_.at("model");
    require_plain_bpe(model);
    parts_.normalizer = read_normalizer(component("normalizer"));
    PreTokenizerRead cut = read_pre_tokenizer(component("pre_tokenizer"));
    parts_.pre_tokenizer = std::move(cut.pre_tokenizer);
    parts_.pieces = read_vocabulary(model.at("vocab"));
    parts_.merges = read_merges(model.at("merges"));
    facts_.name = fmt::format("tokenizer.json:bpe/{}", cut.family);
    added();
    options(model);
    surroundings();
    return make_bpe_tokenizer(std::move(parts_), std::move(facts_));
  }

 private:
  const Json& component(const char* name) const {
    static const Json nothing;
    return json_.contains(name) ? json_[name] : nothing;
  }

  // Id of a piece of the model's vocabulary, -1 when it is none.
  int model_id(const std::string& piece) const {
    const auto it = std::find(parts_.pieces.begin(), parts_.pieces.end(), piece);
    return it == parts_.pieces.end() || piece.empty()
               ? -1
               : static_cast<int>(it - parts_.pieces.begin());
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
      // Nearly always the id agrees, and looking is cheap; otherwise the model's id counts.
      const auto slot = static_cast<std::size_t>(token.id);
      if (slot < parts_.pieces.size() && parts_.pieces[slot] == token.content) continue;
      const int id = model_id(token.content);
      if (id < 0) continue;
      facts_.warnings.push_back(fmt::format(
          "tokenizer.json: added token '{}' has id {}, the vocabulary says {}, which is used",
          printable(token.content), token.id, id));
      token.id = id;
    }
  }

  void options(const Json& model) {
    parts_.options.ignore_merges = flag(model, "ignore_merges");
    parts_.options.byte_fallback = flag(model, "byte_fallback");
    parts_.options.fuse_unk = flag(model, "fuse_unk");
    const std::string unknown = config_token(model, "unk_token");
    if (unknown.empty()) return;
    parts_.options.unk_id = model_id(unknown);
    if (parts_.options.unk_id < 0)
      throw Error(ErrorKind::corrupt,
                  fmt::format("tokenizer.json: unk_token '{}' is not in the vocabulary",
                              printable(unknown)));
  }

  // BOS and EOS: a template decides; without one, tokenizer_config.json's flags.
  void surroundings() {
    const PostProcessorRead post = read_post_processor(component("post_processor"));
    const std::string bos = config_token(config_, "bos_token");
    const std::string eos = config_token(config_, "eos_token");
    const int eos_id = eos.empty() ? -1 : token_id(eos);
    facts_.bos_id = bos.empty() ? -1 : token_id(bos);
    facts_.prefix = post.prefix;
    facts_.suffix = post.suffix;
    for (const auto* ids : {&post.prefix, &post.suffix})
      for (const int id : *ids) check_id(id, "a token of the template");
    facts_.special_ids = {eos_id};
    if (facts_.bos_id < 0 && !post.prefix.empty()) facts_.bos_id = post.prefix.front();
    const bool asks = flag(config_, "add_bos_token");
    if (!post.has_template) {
      if (asks && facts_.bos_id >= 0) facts_.prefix = {facts_.bos_id};
      if (flag(config_, "add_eos_token") && eos_id >= 0) facts_.suffix = {eos_id};
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
  BpeParts parts_;
  TokenizerFacts facts_;
};

}  // namespace

std::unique_ptr<Tokenizer> open_json_tokenizer(const std::string& json_path) {
  const Json json = parse_file(json_path);
  const fs::path config_path = fs::path(json_path).parent_path() / "tokenizer_config.json";
  const Json config = fs::exists(config_path) ? parse_file(config_path) : Json::object();
  try {
    return JsonReader(json, config).read();
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::corrupt, fmt::format("'{}' is no tokenizer.json as expected: {}",
                                                json_path, printable(e.what())));
  }
}

}  // namespace sinkscope
