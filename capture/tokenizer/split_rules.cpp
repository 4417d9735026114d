// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "capture/tokenizer/pre_tokenizer.h"

namespace sinkscope {
namespace {

constexpr const char* kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
                               R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

}  // namespace

const char* punctuation_pattern() { return R"([!-/:-@\[-`{-~\p{P}])"; }

PreTokenizer make_bert_pre_tokenizer() {
  PreTokenizer made;
  made.add(SplitStage{Regex(R"(\s)"), SplitBehavior::removed, false});
  made.add(SplitStage{Regex(punctuation_pattern()), SplitBehavior::isolated, false});
  return made;
}

const char* PreTokenizer::gpt2_pattern() { return kGpt2; }

const std::vector<SplitRule>& split_rules() {
  // Spellings, ignore_merges and BOS defaults as llama.cpp reads tokenizer.ggml.pre; NFC is what
  // Qwen's own tokenizer.json does.
  static const std::vector<SplitRule> rules = {
      {.name = "gpt-2", .aka = {"phi-2"}, .pattern = nullptr},
      {.name = "llama3",
       .aka = {"llama-bpe", "llama-v3"},
       .pattern = kLlama3,
       .ignore_merges = true,
       .add_bos = true},
      {.name = "qwen2", .aka = {"deepseek-r1-qwen"}, .pattern = kQwen2, .nfc = true},
      {.name = "smollm",
       .aka = {"starcoder", "refact", "command-r"},
       .pattern = nullptr,
       .isolate_digits = true},
      {.name = "gpt-4o", .aka = {"llama4"}, .pattern = kO200k},
  };
  return rules;
}

const SplitRule* find_split_rule(std::string_view name) {
  for (const SplitRule& rule : split_rules())
    if (rule.name == name || std::find(rule.aka.begin(), rule.aka.end(), name) != rule.aka.end())
      return &rule;
  return nullptr;
}

std::string split_rule_names() {
  std::vector<std::string> names;
  for (const SplitRule& rule : split_rules())
    names.push_back(fmt::format("{} ({})", rule.name, fmt::join(rule.aka, ", ")));
  return fmt::format("{}", fmt::join(names, ", "));
}

PreTokenizer make_pre_tokenizer(const SplitRule& rule) {
  PreTokenizer made;
  if (rule.isolate_digits) made.add(SplitStage{Regex(R"(\p{N})"), SplitBehavior::isolated, false});
  if (rule.pattern != nullptr)
    made.add(SplitStage{Regex(rule.pattern), SplitBehavior::isolated, false});
  made.add(ByteLevelStage{.add_prefix_space = false, .use_regex = rule.pattern == nullptr});
  return made;
}

}  // namespace sinkscope
