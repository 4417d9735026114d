// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/json_components.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "capture/checkpoint/printable.h"
#include "core/error.h"

namespace sinkscope {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const char* component, const std::string& type) {
  const bool is_sentencepiece =
      type == "Prepend" || type == "Replace" || type == "Metaspace" || type == "Precompiled";
  const bool is_wordpiece =
      type == "BertNormalizer" || type == "BertPreTokenizer" || type == "BertProcessing";
  throw Error(ErrorKind::unsupported,
              fmt::format("tokenizer.json: {} {} is not supported{}; feed token ids", component,
                          printable(type),
                          is_sentencepiece ? " (a SentencePiece-style vocabulary)"
                          : is_wordpiece   ? " (a WordPiece vocabulary)"
                                           : ""));
}

SplitBehavior read_behavior(const std::string& name) {
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  refuse("split behavior", name);
}

void read_normalizer_into(const Json& component, Normalizer& forms) {
  if (component.is_null()) return;
  const auto type = component.at("type").get<std::string>();
  if (type == "Sequence") {
    for (const Json& part : component.at("normalizers")) read_normalizer_into(part, forms);
  } else if (type == "NFC") {
    forms.push_back(NormalForm::nfc);
  } else if (type == "NFD") {
    forms.push_back(NormalForm::nfd);
  } else if (type == "NFKC") {
    forms.push_back(NormalForm::nfkc);
  } else if (type == "NFKD") {
    forms.push_back(NormalForm::nfkd);
  } else {
    refuse("normalizer", type);
  }
}

// Stages spelled so that equal ways to cut text are equal strings.
std::string signature(const SplitRule& rule) {
  return fmt::format(
      "{}{}", rule.isolate_digits ? R"(isolate \p{N};)" : "",
      rule.pattern != nullptr ? fmt::format("isolate {};bytes;", rule.pattern) : "gpt2 bytes;");
}

class PreTokenizerReader {
 public:
  void read(const Json& component) {
    if (component.is_null()) return;
    const auto type = component.at("type").get<std::string>();
    if (type == "Sequence")
      for (const Json& part : component.at("pretokenizers")) read(part);
    else if (type == "ByteLevel")
      byte_level(component);
    else if (type == "Split")
      split(component);
    else if (type == "Digits")
      digits(component);
    else
      refuse("pre-tokenizer", type);
  }

  PreTokenizerRead take() {
    std::string family = "custom";
    for (const SplitRule& rule : split_rules())
      if (signature(rule) == signature_) family = rule.name;
    return {std::move(made_), family};
  }

 private:
  void byte_level(const Json& component) {
    const ByteLevelStage stage{.add_prefix_space = component.value("add_prefix_space", true),
                               .use_regex = component.value("use_regex", true)};
    signature_ += fmt::format("{}{}bytes;", stage.add_prefix_space ? "prefix " : "",
                              stage.use_regex ? "gpt2 " : "");
    made_.add(stage);
  }

  void split(const Json& component) {
    const Json& pattern = component.at("pattern");
    const bool is_regex = pattern.contains("Regex");
    const auto text = pattern.at(is_regex ? "Regex" : "String").get<std::string>();
    const auto behavior = component.at("behavior").get<std::string>();
    const bool invert = component.value("invert", false);
    signature_ +=
        is_regex && behavior == "Isolated" && !invert ? fmt::format("isolate {};", text) : "other;";
    made_.add(SplitStage{Regex(text, is_regex ? Regex::Syntax::pattern : Regex::Syntax::literal),
                         read_behavior(behavior), invert});
  }

  void digits(const Json& component) {
    const bool individual = component.value("individual_digits", false);
    signature_ += individual ? R"(isolate \p{N};)" : "other;";
    made_.add(SplitStage{Regex(R"(\p{N})"),
                         individual ? SplitBehavior::isolated : SplitBehavior::contiguous, false});
  }

  PreTokenizer made_;
  std::string signature_;
};

void read_template(const Json& component, PostProcessorRead& result) {
  const Json& specials = component.at("special_tokens");
  bool after_text = false;
  result.has_template = true;
  for (const Json& item : component.at("single")) {
    if (item.contains("Sequence")) {
      after_text = true;
      continue;
    }
    const auto name = item.at("SpecialToken").at("id").get<std::string>();
    for (const int id : specials.at(name).at("ids").get<std::vector<int>>())
      (after_text ? result.suffix : result.prefix).push_back(id);
  }
}

void read_post_processor_into(const Json& component, PostProcessorRead& result) {
  if (component.is_null()) return;
  const auto type = component.at("type").get<std::string>();
  if (type == "ByteLevel") return;  // moves offsets only
  if (type == "Sequence")
    for (const Json& part : component.at("processors")) read_post_processor_into(part, result);
  else if (type == "TemplateProcessing")
    read_template(component, result);
  else
    refuse("post-processor", type);
}

}  // namespace

Normalizer read_normalizer(const Json& component) {
  Normalizer forms;
  read_normalizer_into(component, forms);
  return forms;
}

PreTokenizerRead read_pre_tokenizer(const Json& component) {
  PreTokenizerReader reader;
  reader.read(component);
  return reader.take();
}

PostProcessorRead read_post_processor(const Json& component) {
  PostProcessorRead result;
  read_post_processor_into(component, result);
  return result;
}

std::vector<AddedToken> read_added_tokens(const Json& list) {
  std::vector<AddedToken> tokens;
  for (const Json& item : list)
    tokens.push_back({.id = item.at("id").get<int>(),
                      .content = item.at("content").get<std::string>(),
                      .single_word = item.value("single_word", false),
                      .lstrip = item.value("lstrip", false),
                      .rstrip = item.value("rstrip", false),
                      .normalized = item.value("normalized", false),
                      .special = item.value("special", false)});
  return tokens;
}

}  // namespace sinkscope
