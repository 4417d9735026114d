// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/json_components.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "capture/checkpoint/printable.h"
#include "capture/tokenizer/base64.h"
#include "core/error.h"

namespace sinkscope {
namespace {

using Json = nlohmann::json;

// Sequences inside sequences, as deep as anybody has a use for.
constexpr int kMaxDepth = 16;

void check_depth(int depth) {
  if (depth >= kMaxDepth)
    throw Error(ErrorKind::corrupt,
                fmt::format("tokenizer.json: Sequence inside Sequence, {} deep", depth + 1));
}

[[noreturn]] void refuse(const char* component, const std::string& type) {
  throw Error(ErrorKind::unsupported,
              fmt::format("tokenizer.json: {} {} is not supported; feed token ids", component,
                          printable(type)));
}

SplitBehavior read_behavior(const std::string& name) {
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  refuse("split behavior", name);
}

// A pattern: {"String": …} or {"Regex": …}.
Regex read_pattern(const Json& pattern) {
  const bool is_regex = pattern.contains("Regex");
  return Regex(pattern.at(is_regex ? "Regex" : "String").get<std::string>(),
               is_regex ? Regex::Syntax::pattern : Regex::Syntax::literal);
}

// A flag that is true, false or null (then `otherwise`).
bool flag_or(const Json& component, const char* name, bool otherwise) {
  return component.contains(name) && !component[name].is_null() ? component[name].get<bool>()
                                                                : otherwise;
}

BertText read_bert(const Json& component) {
  BertText step;
  step.clean_text = flag_or(component, "clean_text", true);
  step.handle_chinese_chars = flag_or(component, "handle_chinese_chars", true);
  step.lowercase = flag_or(component, "lowercase", true);
  step.strip_accents = flag_or(component, "strip_accents", step.lowercase);
  return step;
}

PrecompiledText read_precompiled(const Json& component) {
  return {std::make_shared<const Charsmap>(
      from_base64(component.at("precompiled_charsmap").get<std::string>()))};
}

NormalizerStep read_step(const std::string& type, const Json& component) {
  if (type == "NFC") return NormalForm::nfc;
  if (type == "NFD") return NormalForm::nfd;
  if (type == "NFKC") return NormalForm::nfkc;
  if (type == "NFKD") return NormalForm::nfkd;
  if (type == "Lowercase") return Lowercase{};
  if (type == "StripAccents") return StripAccents{};
  if (type == "Nmt") return NmtText{};
  if (type == "BertNormalizer") return read_bert(component);
  if (type == "Precompiled") return read_precompiled(component);
  if (type == "Prepend") return PrependText{component.at("prepend").get<std::string>()};
  if (type == "Strip")
    return StripSpace{flag_or(component, "strip_left", true),
                      flag_or(component, "strip_right", true)};
  if (type == "Replace")
    return ReplaceText{std::make_shared<const Regex>(read_pattern(component.at("pattern"))),
                       component.at("content").get<std::string>()};
  refuse("normalizer", type);
}

void read_normalizer_into(const Json& component, TextNormalizer& steps, int depth) {
  if (component.is_null()) return;
  const auto type = component.at("type").get<std::string>();
  if (type != "Sequence") {
    steps.push_back(read_step(type, component));
    return;
  }
  check_depth(depth);
  for (const Json& part : component.at("normalizers")) read_normalizer_into(part, steps, depth + 1);
}

// Stages spelled so that equal ways to cut text are equal strings.
std::string signature(const SplitRule& rule) {
  return fmt::format(
      "{}{}", rule.isolate_digits ? R"(isolate \p{N};)" : "",
      rule.pattern != nullptr ? fmt::format("isolate {};bytes;", rule.pattern) : "gpt2 bytes;");
}

MetaspaceStage read_metaspace(const Json& component) {
  MetaspaceStage stage;
  stage.mark = component.value("replacement", stage.mark);
  if (stage.mark.empty())
    throw Error(ErrorKind::corrupt, "tokenizer.json: Metaspace without a mark");
  const auto scheme = component.value(
      "prepend_scheme",
      std::string(flag_or(component, "add_prefix_space", true) ? "always" : "never"));
  if (scheme == "first")
    stage.prepend = MetaspaceStage::Prepend::first;
  else if (scheme == "never")
    stage.prepend = MetaspaceStage::Prepend::never;
  else if (scheme != "always")
    refuse("prepend_scheme", scheme);
  stage.split = flag_or(component, "split", true);
  return stage;
}

// What the package takes for words, and for what lies between them and white space.
constexpr const char* kWords = R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D}]+|)"
                               R"([^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\s\x{200C}\x{200D}]+)";

class PreTokenizerReader {
 public:
  void read(const Json& component, int depth = 0) {
    if (component.is_null()) return;
    const auto type = component.at("type").get<std::string>();
    if (type == "Sequence") {
      check_depth(depth);
      for (const Json& part : component.at("pretokenizers")) read(part, depth + 1);
    } else if (type == "ByteLevel") {
      byte_level(component);
    } else if (type == "Split") {
      split(component);
    } else if (type == "Digits") {
      digits(component);
    } else {
      other(type, component);
    }
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

  void other(const std::string& type, const Json& component) {
    signature_ += "other;";
    if (type == "Metaspace") {
      made_.add(read_metaspace(component));
    } else if (type == "Whitespace") {
      made_.add(SplitStage{Regex(kWords), SplitBehavior::removed, true});
    } else if (type == "WhitespaceSplit") {
      made_.add(SplitStage{Regex(R"(\s)"), SplitBehavior::removed, false});
    } else if (type == "Punctuation") {
      made_.add(SplitStage{Regex(punctuation_pattern()),
                           read_behavior(component.value("behavior", std::string("Isolated"))),
                           false});
    } else if (type == "BertPreTokenizer") {
      made_.add(SplitStage{Regex(R"(\s)"), SplitBehavior::removed, false});
      made_.add(SplitStage{Regex(punctuation_pattern()), SplitBehavior::isolated, false});
    } else if (type == "CharDelimiterSplit") {
      made_.add(
          SplitStage{Regex(component.at("delimiter").get<std::string>(), Regex::Syntax::literal),
                     SplitBehavior::removed, false});
    } else {
      refuse("pre-tokenizer", type);
    }
  }

  void split(const Json& component) {
    const Json& pattern = component.at("pattern");
    const bool is_regex = pattern.contains("Regex");
    const auto text = pattern.at(is_regex ? "Regex" : "String").get<std::string>();
    const auto behavior = component.at("behavior").get<std::string>();
    const bool invert = component.value("invert", false);
    signature_ +=
        is_regex && behavior == "Isolated" && !invert ? fmt::format("isolate {};", text) : "other;";
    made_.add(SplitStage{read_pattern(pattern), read_behavior(behavior), invert});
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
    for (const Json& id : specials.at(name).at("ids"))
      (after_text ? result.suffix : result.prefix).push_back(json_int(id, "an id of the template"));
  }
}

// "cls": [token, id] before and "sep": [token, id] behind the text.
void read_cls_sep(const Json& component, PostProcessorRead& result) {
  result.has_template = true;
  result.prefix.push_back(json_int(component.at("cls").at(1), "the id of cls"));
  result.suffix.push_back(json_int(component.at("sep").at(1), "the id of sep"));
}

void read_post_processor_into(const Json& component, PostProcessorRead& result, int depth) {
  if (component.is_null()) return;
  const auto type = component.at("type").get<std::string>();
  if (type == "ByteLevel") return;  // moves offsets only
  if (type == "Sequence") {
    check_depth(depth);
    for (const Json& part : component.at("processors"))
      read_post_processor_into(part, result, depth + 1);
  } else if (type == "TemplateProcessing") {
    read_template(component, result);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    read_cls_sep(component, result);
  } else {
    refuse("post-processor", type);
  }
}

}  // namespace

int json_int(const Json& value, const char* what) {
  const bool fits =
      value.is_number_unsigned()
          ? value.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<int>::max()}
          : value.is_number_integer() &&
                value.get<std::int64_t>() >= std::numeric_limits<int>::min() &&
                value.get<std::int64_t>() <= std::numeric_limits<int>::max();
  if (!fits)
    throw Error(ErrorKind::corrupt, fmt::format("tokenizer.json: {} is {}, expected a whole number",
                                                what, printable(value.dump())));
  return value.get<int>();
}

TextNormalizer read_normalizer(const Json& component) {
  TextNormalizer steps;
  read_normalizer_into(component, steps, 0);
  return steps;
}

PreTokenizerRead read_pre_tokenizer(const Json& component) {
  PreTokenizerReader reader;
  reader.read(component);
  return reader.take();
}

PostProcessorRead read_post_processor(const Json& component) {
  PostProcessorRead result;
  read_post_processor_into(component, result, 0);
  return result;
}

std::vector<AddedToken> read_added_tokens(const Json& list) {
  std::vector<AddedToken> tokens;
  for (const Json& item : list)
    tokens.push_back({.id = json_int(item.at("id"), "the id of an added token"),
                      .content = item.at("content").get<std::string>(),
                      .single_word = item.value("single_word", false),
                      .lstrip = item.value("lstrip", false),
                      .rstrip = item.value("rstrip", false),
                      .normalized = item.value("normalized", false),
                      .special = item.value("special", false)});
  return tokens;
}

}  // namespace sinkscope
