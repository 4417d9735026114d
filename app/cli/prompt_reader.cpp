// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/prompt_reader.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "app/cli/parse_text.h"
#include "capture/checkpoint/printable.h"
#include "capture/checkpoint/text_file.h"
#include "core/error.h"

namespace sinkscope {
namespace {

std::vector<int> ids_of(const nlohmann::json& list, const std::string& where) {
  std::vector<int> ids;
  for (const auto& item : list) {
    if (!item.is_number_integer() || item < 0 || item > std::numeric_limits<int>::max())
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("{}: tokens[{}]: expected a token id, found {}", where, ids.size(),
                              item.dump()));
    ids.push_back(item.get<int>());
  }
  return ids;
}

// Null where it is no JSON. Throws Error{invalid_argument} for a key that occurs twice.
nlohmann::json parsed(const std::string& line, const std::string& where) {
  if (!nlohmann::json::accept(line)) return nullptr;
  try {
    return parse_json(line, where);
  } catch (const Error& error) {
    throw Error(ErrorKind::invalid_argument, error.what());
  }
}

}  // namespace

PromptReader::PromptReader(const PromptFlags& flags, const ModelFiles& model, Console& console)
    : model_(model), console_(console), bos_(bos_rule_of(flags)), chat_(flags.chat) {
  options_.pre_tokenizer = flags.pre_tokenizer.value_or("");
}

RunInput PromptReader::from_text(const std::string& text, const std::string& name) {
  const Tokenizer& tokenizer = required_tokenizer();
  RunInput run;
  run.name = name;
  BosRule bos = bos_;
  run.text = fed_text(text, chat_, tokenizer, bos, console_);
  const Encoding encoding = tokenizer.encode(run.text, bos);
  for (const std::string& warning : encoding.warnings) console_.warn(warning);
  run.token_ids = encoding.ids;
  run.token_text = tokenizer.labels(encoding.ids);
  run.bos_positions = encoding.bos_positions;
  run.tokenizer = tokenizer.name();
  return run;
}

RunInput PromptReader::from_ids(std::vector<int> ids, const std::string& name) {
  if (bos_ != BosRule::automatic && !said_bos_) {
    console_.warn(
        "--bos and --no-special have no effect on token ids: they are fed as they are given");
    said_bos_ = true;
  }
  if (chat_) throw Error(ErrorKind::invalid_argument, "--chat: expected text, found token ids");
  const Tokenizer* tokenizer = labeling_tokenizer();
  RunInput run;
  run.name = name;
  const int bos = tokenizer != nullptr ? tokenizer->bos_id() : model_.spec().bos_id;
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (bos >= 0 && ids[i] == bos) run.bos_positions.push_back(static_cast<int>(i));
  run.token_text =
      tokenizer != nullptr ? tokenizer->labels(ids) : std::vector<std::string>(ids.size());
  run.token_ids = std::move(ids);
  return run;
}

const Tokenizer& PromptReader::required_tokenizer() {
  if (tokenizer_ != nullptr) return *tokenizer_;
  try {
    tokenizer_ = open_tokenizer(model_, options_);
  } catch (const Error& error) {
    // No tokenizer at all is not a missing input: the ids are the way to go on.
    const ErrorKind kind =
        error.kind() == ErrorKind::not_found ? ErrorKind::unsupported : error.kind();
    throw Error(kind, fmt::format("{}; token ids work without it: --tokens 1,2,3", error.what()));
  }
  return *tokenizer_;
}

const Tokenizer* PromptReader::labeling_tokenizer() {
  if (tokenizer_ == nullptr && !tried_) {
    tried_ = true;
    try {
      tokenizer_ = open_tokenizer(model_, options_);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::invalid_argument) throw;  // a flag that has no effect here
      console_.detail(fmt::format("tokens have no labels: {}", error.what()));
    }
  }
  return tokenizer_.get();
}

RunInput PromptReader::from_json_line(const std::string& line, const std::string& where) {
  const nlohmann::json entry = parsed(line, where);
  const bool has_text = entry.is_object() && entry.contains("text") && entry["text"].is_string();
  const bool has_tokens =
      entry.is_object() && entry.contains("tokens") && entry["tokens"].is_array();
  if (has_text == has_tokens)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: expected {{\"text\":\"…\"}} or {{\"tokens\":[…]}}, found {}",
                            where, line.size() > 60 ? line.substr(0, 57) + "..." : line));
  for (const auto& [key, value] : entry.items())
    if (key != "text" && key != "tokens" && key != "name")
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("{}: unknown field '{}', expected text or tokens, and name", where,
                              printable(key)));
  if (entry.contains("text") && entry.contains("tokens"))
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: expected one of text and tokens, found both", where));
  std::string name;
  if (entry.contains("name")) {
    if (!entry["name"].is_string())
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("{}: name: expected a text, found {}", where, entry["name"].dump()));
    name = entry["name"].get<std::string>();
  }
  return has_text ? from_text(entry["text"].get<std::string>(), name)
                  : from_ids(ids_of(entry["tokens"], where), name);
}

std::vector<RunInput> PromptReader::from_json_lines(const std::string& content,
                                                    const std::string& path) {
  std::vector<RunInput> runs;
  const std::vector<std::string> lines = split_at(content, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find_first_not_of(" \t\r") == std::string::npos) continue;
    runs.push_back(from_json_line(lines[i], fmt::format("{}:{}", path, i + 1)));
  }
  if (runs.empty())
    throw Error(ErrorKind::invalid_argument, fmt::format("{}: holds no prompt", path));
  return runs;
}

}  // namespace sinkscope
