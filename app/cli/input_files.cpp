// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/input_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "app/cli/parse_text.h"
#include "capture/checkpoint/arch_file.h"
#include "capture/checkpoint/hub_cache.h"
#include "capture/checkpoint/text_file.h"
#include "core/error.h"
#include "core/output_path.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

// Names in a model's folder that are read; a capture or a figure there is none of the model's.
bool is_of_model(const std::string& name) {
  static constexpr std::array<std::string_view, 12> kNames = {"config.json",
                                                              "generation_config.json",
                                                              "tokenizer.json",
                                                              "tokenizer_config.json",
                                                              "special_tokens_map.json",
                                                              "added_tokens.json",
                                                              "vocab.json",
                                                              "vocab.txt",
                                                              "merges.txt",
                                                              "metadata.json",
                                                              kOwnDescription,
                                                              "chat_template.jinja"};
  static constexpr std::array<std::string_view, 5> kSuffixes = {".safetensors", ".index.json",
                                                                ".model", ".gguf", ".tiktoken"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         std::any_of(kSuffixes.begin(), kSuffixes.end(),
                     [&](std::string_view suffix) { return name.ends_with(suffix); });
}

void add_model_files(const fs::path& folder, std::vector<std::string>& files) {
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed))
    if (is_of_model(it->path().filename().string())) files.push_back(it->path().string());
}

// The folder that a name of the hub cache, or a folder of its own form, stands for. A cache that
// cannot be read is told when the model is opened.
std::optional<std::string> in_hub_cache(const std::string& path, bool is_folder) {
  try {
    return is_folder ? snapshot_of(path) : find_in_hub_cache(path);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<std::string> files_behind(const std::string& word) {
  const std::string path = parse_run_path(word).path;
  std::vector<std::string> files;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    add_model_files(in_hub_cache(path, true).value_or(path), files);
  } else if (is_there(path)) {
    files.push_back(path);
    const fs::path folder = fs::path(path).parent_path();
    const bool has_others = path.ends_with(".safetensors") || path.ends_with(".gguf");
    if (has_others) add_model_files(folder.empty() ? "." : folder, files);
  } else {
    files.push_back(path + ".part");
    if (const auto folder = in_hub_cache(path, false)) add_model_files(*folder, files);
  }
  return files;
}

std::vector<std::optional<std::string>> inputs_of(const PromptFlags& flags) {
  return {flags.text_file, flags.tokens_file, flags.prompts};
}

void require_apart(const std::string& output,
                   const std::vector<std::optional<std::string>>& words) {
  std::error_code ignored;
  const bool replaces = fs::exists(output, ignored) || fs::exists(output + ".part", ignored);
  if (output == "-" || !replaces) return;
  for (const auto& word : words)
    if (word && *word != "-") require_not_input(output, files_behind(*word));
}

void require_apart(const std::string& output, const PromptFlags& prompt,
                   std::vector<std::optional<std::string>> words) {
  for (auto& file : inputs_of(prompt)) words.push_back(std::move(file));
  require_apart(output, words);
}

}  // namespace sinkscope
