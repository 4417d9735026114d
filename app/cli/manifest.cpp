// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/manifest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "app/cli/manifest_blocks.h"
#include "app/cli/parse_text.h"
#include "core/error.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kDefaultPattern = "{n}-{model}.h5";

// A field's value as the flag's text.
std::string flag_text(const Json& value, const std::string& where, const std::string& key) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return value.dump();
  if (value.is_array() && !value.empty()) {
    std::vector<std::string> words;
    for (const Json& item : value) {
      if (!item.is_string() && !item.is_number_integer())
        refuse_manifest(where,
                        fmt::format("{}: expected a list of whole numbers or words, found {}", key,
                                    shortened(item)));
      words.push_back(item.is_string() ? item.get<std::string>() : item.dump());
    }
    return fmt::format("{}", fmt::join(words, ","));
  }
  refuse_manifest(where, fmt::format("{}: expected a text, a number or a list, found {}", key,
                                     shortened(value)));
}

void set_field(CommandLine& command, const std::string& key, const Json& value,
               const std::string& where) {
  const std::string flag = "--" + key;
  switch (command.kind_of(flag)) {
    case CommandLine::Kind::value:
      command.set(flag, flag_text(value, where, key));
      return;
    case CommandLine::Kind::flag:
      if (!value.is_boolean())
        refuse_manifest(where,
                        fmt::format("{}: expected true or false, found {}", key, shortened(value)));
      if (value.get<bool>()) command.set(flag, "");
      return;
    case CommandLine::Kind::none:
      break;
  }
  std::vector<std::string> known = {"model", "models", "prompts", "options", "output"};
  for (const std::string& name : command.names()) known.push_back(name.substr(2));
  refuse_manifest(where,
                  fmt::format("{}: unknown field; expected {}", key, fmt::join(known, ", ")));
}

// A name as a part of a file's name; dots alone would be a folder that the output is not meant for.
std::string file_part(const std::string& name) {
  std::string part;
  const bool is_dots = name.find_first_not_of('.') == std::string::npos;
  for (const char c : name)
    part += is_dots || c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20 ? '-' : c;
  return part.empty() ? "-" : part;
}

std::string model_name(const std::string& path) {
  fs::path name = fs::path(path).lexically_normal();
  if (name.filename().empty()) name = name.parent_path();
  return name.extension() == ".gguf" ? name.stem().string() : name.filename().string();
}

std::string output_name(const std::string& pattern, const BatchEntry& entry) {
  const std::map<std::string, std::string> parts = {{"n", fmt::format("{:04}", entry.number)},
                                                    {"model", file_part(entry.model)},
                                                    {"prompt", file_part(entry.prompt)},
                                                    {"options", file_part(entry.options)}};
  std::string name;
  for (std::size_t at = 0; at < pattern.size();) {
    if (pattern[at] != '{') {
      name += pattern[at++];
      continue;
    }
    const std::size_t end = pattern.find('}', at);
    const auto part =
        end == std::string::npos ? parts.end() : parts.find(pattern.substr(at + 1, end - at - 1));
    if (part == parts.end())
      refuse_manifest(entry.where,
                      fmt::format("output: expected {{n}}, {{model}}, {{prompt}} or "
                                  "{{options}}, found '{}'",
                                  pattern.substr(at, end - at + (end != std::string::npos))));
    name += part->second;
    at = end + 1;
  }
  if (name.empty() || name.back() == '/')
    refuse_manifest(entry.where, fmt::format("output: expected a file's name, found '{}'", name));
  return name;
}

// What needs no model to be wrong.
void check(BatchEntry& entry) {
  for (const auto& value :
       {entry.flags.prompt.text_file, entry.flags.prompt.tokens_file, entry.flags.prompt.prompts})
    if (value == "-")
      refuse_manifest(entry.where, "standard input is one text for one recording: expected a file");
  try {
    check_prompt_flags(entry.flags.prompt);
    // The options of another capture may complete these; it is read when its turn comes.
    if (!entry.flags.like) capture_request(entry.flags.run, entry.flags.record);
  } catch (const Error& error) {
    refuse_manifest(entry.where, error.what());
  }
}

class Expander {
 public:
  Expander(std::string path, std::string folder)
      : path_(std::move(path)), folder_(std::move(folder)) {}

  void add(const ManifestBlock& block) {
    Json common = block.json;
    const ManifestAxis models = take_axis(common, "models", "model", block.where);
    const ManifestAxis prompts = take_axis(common, "prompts", "text", block.where);
    const ManifestAxis options = take_axis(common, "options", "", block.where);
    for (std::size_t m = 0; m < models.items.size(); ++m)
      for (std::size_t p = 0; p < prompts.items.size(); ++p)
        for (std::size_t o = 0; o < options.items.size(); ++o) {
          Json fields = common;
          std::string where = block.where;
          for (const auto& [axis, i] :
               {std::pair(&models, m), std::pair(&prompts, p), std::pair(&options, o)}) {
            fields.update(axis->items[i]);
            if (!axis->places[i].empty()) where += ", " + axis->places[i];
          }
          BatchEntry entry;
          entry.where = where;
          entry.model = models.names[m];
          entry.prompt = prompts.names[p];
          entry.options = options.names[o];
          add_entry(std::move(entry), std::move(fields));
        }
  }

  std::vector<BatchEntry> entries;

 private:
  void add_entry(BatchEntry entry, Json fields) {
    entry.number = static_cast<int>(entries.size());
    const auto take_text = [&](const char* key) -> std::optional<std::string> {
      if (!fields.contains(key)) return std::nullopt;
      const Json value = fields[key];
      fields.erase(key);
      if (!value.is_string() || value.get<std::string>().empty())
        refuse_manifest(entry.where,
                        fmt::format("{}: expected a text, found {}", key, shortened(value)));
      return value.get<std::string>();
    };
    const auto model = take_text("model");
    if (!model)
      refuse_manifest(entry.where, "model: expected the path or name of a model, found none");
    const std::string pattern = take_text("output").value_or(kDefaultPattern);
    entry.flags.model = *model;
    if (entry.model.empty()) entry.model = model_name(*model);
    CommandLine command("batch", "");
    add_request_flags(command, entry.flags);
    for (const auto& [key, value] : fields.items()) {
      if (key == "progress")
        refuse_manifest(entry.where, "progress: is the batch's, on the command line");
      set_field(command, key, value, entry.where);
    }
    check(entry);
    entry.flags.output = (fs::path(folder_) / output_name(pattern, entry)).string();
    claim(entry);
    entries.push_back(std::move(entry));
  }

  // No two entries write the same file, under whatever name.
  void claim(const BatchEntry& entry) {
    const std::string& output = *entry.flags.output;
    std::error_code ignored;
    const std::string file = fs::weakly_canonical(fs::absolute(output), ignored).string();
    for (const std::string& name : {file, file + ".part"}) {
      const auto [owner, is_new] = owners_.emplace(name, entry.where);
      if (!is_new)
        refuse_manifest(
            entry.where,
            fmt::format("output: {} is that of {}, too; {{n}}, {{model}}, {{prompt}} and "
                        "{{options}} in it tell entries apart",
                        output, owner->second));
    }
  }

  std::string path_, folder_;
  std::map<std::string, std::string> owners_;  // files that entries write, and whose they are
};

}  // namespace

std::vector<BatchEntry> read_manifest(const std::string& path, const std::string& folder,
                                      Console& console) {
  Expander expander(path, folder);
  for (const ManifestBlock& block : manifest_blocks(read_whole(path, console), path))
    expander.add(block);
  return std::move(expander.entries);
}

Shard parse_shard(const std::string& text) {
  const std::vector<std::string> parts = split_at(text, '/');
  if (parts.size() != 2)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("--shard: expected i/n such as 0/4, found '{}'", text));
  Shard shard;
  shard.count = static_cast<int>(parse_integer("--shard i/n", parts[1], 1, 1000000));
  shard.index = static_cast<int>(parse_integer("--shard i/n", parts[0], 0, shard.count - 1));
  return shard;
}

}  // namespace sinkscope
