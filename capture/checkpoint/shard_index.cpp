// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/shard_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "capture/checkpoint/printable.h"
#include "capture/checkpoint/text_file.h"
#include "core/error.h"

namespace sinkscope {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;
using Names = std::vector<std::string>;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

// File names by family ("model", 3) and number.
using Families = std::map<std::pair<std::string, int>, std::map<int, std::string>>;

// A broken symbolic link (a blob of the hub cache that was not downloaded) does not exist.
bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

Names files_in(const std::string& folder) {
  Names names;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed))
    names.push_back(it->path().filename().string());
  if (failed) {
    throw Error(ErrorKind::io, fmt::format("{}: cannot list it: {}", folder, failed.message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Families families_of(const Names& names) {
  Families families;
  for (const std::string& name : names) {
    ShardName shard;
    if (parse_shard_name(name, shard)) families[{shard.stem, shard.total}][shard.number] = name;
  }
  return families;
}

// Numbers of the family that are not in `have`, as file names.
Names absent_from(const std::pair<std::string, int>& family,
                  const std::map<int, std::string>& have) {
  Names absent;
  for (int number = 1; number <= family.second; ++number) {
    if (have.count(number) == 0)
      absent.push_back(
          fmt::format("{}-{:05}-of-{:05}.safetensors", family.first, number, family.second));
  }
  return absent;
}

// What the folder holds, for a message about a stale index: "the folder holds the complete set …".
std::string found_on_disk(const Families& families) {
  std::string text;
  for (const auto& [family, have] : families) {
    const bool whole = absent_from(family, have).empty();
    text += fmt::format("; the folder holds {} of the {} files {}-*-of-{:05}.safetensors{}",
                        have.size(), family.second, family.first, family.second,
                        whole ? " (a complete set: --ignore-index reads it)" : "");
  }
  return text;
}

bool is_pickle_name(const std::string& name) {
  const std::string suffix = fs::path(name).extension().string();
  return suffix == ".bin" || suffix == ".pt" || suffix == ".pth" || suffix == ".ckpt";
}

// What a folder of a training framework's own format says about itself; "" for any other folder.
std::string training_checkpoint_advice(const std::string& folder, const Names& names) {
  const auto any = [&](auto&& is_such) { return std::any_of(names.begin(), names.end(), is_such); };
  const auto has = [&](const char* name) {
    return std::binary_search(names.begin(), names.end(), std::string(name));
  };
  const bool is_megatron = has("latest_checkpointed_iteration.txt") ||
                           (has("common.pt") && has("metadata.json")) ||
                           any([](const std::string& name) {
                             return name.starts_with("mp_rank_") ||
                                    (name.starts_with("iter_") &&
                                     name.find_first_not_of("0123456789", 5) == std::string::npos);
                           });
  if (is_megatron)
    return fmt::format(
        "{}: a Megatron checkpoint; convert it once to a Hugging Face folder (Megatron Bridge: "
        "AutoBridge.export_ckpt) and open that",
        folder);
  if (has(".metadata") || any([](const std::string& name) { return name.ends_with(".distcp"); }))
    return fmt::format(
        "{}: a torch distributed checkpoint (DCP); convert it once: python -m "
        "torch.distributed.checkpoint.format_utils dcp_to_torch {} model.pt, then write its model "
        "tensors with safetensors.torch.save_file beside a config.json",
        folder, folder);
  return "";
}

std::map<std::string, std::string> read_weight_map(const std::string& path) {
  const Json index = parse_json_file(path);
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object() || map->empty())
    throw Error(ErrorKind::corrupt, path + ": no \"weight_map\" with tensors in it");
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : map->items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : std::string();
    if (name.empty() || name == "." || name == ".." ||
        name.find_first_of("/\\") != std::string::npos || name.find('\0') != std::string::npos) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("{}: tensor {} is mapped to {}, expected a plain file name", path,
                              printable(tensor), printable(file.dump())));
    }
    files[tensor] = name;
  }
  return files;
}

ShardSet by_index(const std::string& folder, const Names& names) {
  ShardSet shards;
  shards.index_path = (fs::path(folder) / kIndex).string();
  shards.weight_map = read_weight_map(shards.index_path);
  std::set<std::string> claimed;
  for (const auto& [tensor, file] : shards.weight_map) claimed.insert(file);

  const Families on_disk = families_of(names);
  Names missing;
  for (const std::string& name : claimed) {
    if (!is_there(fs::path(folder) / name)) missing.push_back(name);
    shards.files.push_back((fs::path(folder) / name).string());
  }
  if (!missing.empty()) {
    const auto wanted =
        std::find_if(shards.weight_map.begin(), shards.weight_map.end(),
                     [&](const auto& entry) { return entry.second == missing.front(); });
    throw Error(ErrorKind::not_found,
                fmt::format("{}: it names {} files, {} of them are not there: {} (incomplete "
                            "download?); tensor {} should be in {}{}",
                            shards.index_path, claimed.size(), missing.size(), listed(missing, 50),
                            printable(wanted->first), missing.front(), found_on_disk(on_disk)));
  }
  for (const auto& [family, have] : families_of(Names(claimed.begin(), claimed.end()))) {
    const Names absent = absent_from(family, have);
    if (absent.empty()) continue;
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: it covers {} of the {} files {}-*-of-{:05}.safetensors, not {}{}",
                            shards.index_path, have.size(), family.second, family.first,
                            family.second, listed(absent), found_on_disk(on_disk)));
  }
  return shards;
}

ShardSet by_names(const std::string& folder, const Names& names) {
  const Families families = families_of(names);
  Names whole;
  for (const auto& [family, have] : families) {
    if (absent_from(family, have).empty())
      whole.push_back(fmt::format("{}-*-of-{:05}", family.first, family.second));
  }
  if (families.empty()) {
    throw Error(ErrorKind::not_found,
                folder + ": no shards (NAME-00001-of-0000N.safetensors) to read without the index");
  }
  if (whole.size() > 1 || (whole.empty() && families.size() > 1)) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: several sets of shards ({}{}); keep the one that is meant", folder,
                            listed(whole), found_on_disk(families)));
  }
  ShardSet shards;
  for (const auto& [family, have] : families) {
    const Names absent = absent_from(family, have);
    if (!whole.empty() && !absent.empty()) continue;
    for (const auto& [number, name] : have)
      shards.files.push_back((fs::path(folder) / name).string());
    if (!absent.empty()) {
      shards.warnings.push_back(fmt::format("{}: the index is ignored and {} not there: {}", folder,
                                            absent.size() == 1 ? "a shard is" : "shards are",
                                            listed(absent)));
    }
  }
  shards.warnings.push_back(
      fmt::format("the index is ignored, {} shards are read as they are", shards.files.size()));
  return shards;
}

[[noreturn]] void nothing_to_read(const std::string& folder, const Names& names) {
  Names tensors;
  for (const std::string& name : names) {
    if (name.ends_with(".safetensors")) tensors.push_back(name);
  }
  if (!tensors.empty()) {
    throw Error(ErrorKind::not_found,
                fmt::format("{}: neither {} nor {}; it holds {}: open one of these files, or use "
                            "--ignore-index for a numbered set",
                            folder, kSingle, kIndex, listed(tensors)));
  }
  if (const std::string advice = training_checkpoint_advice(folder, names); !advice.empty())
    throw Error(ErrorKind::unsupported, advice);
  for (const std::string& name : names) {
    if (is_pickle_name(name))
      throw Error(ErrorKind::unsupported, pickle_advice((fs::path(folder) / name).string()));
  }
  throw Error(ErrorKind::not_found, fmt::format("{}: no model here: expected {}, {} or a GGUF file",
                                                folder, kSingle, kIndex));
}

}  // namespace

bool parse_shard_name(const std::string& file_name, ShardName& out) {
  // …-NNNNN-of-NNNNN.safetensors
  constexpr std::string_view kPattern = "-00000-of-00000.safetensors";
  if (file_name.size() <= kPattern.size()) return false;
  const std::size_t stem = file_name.size() - kPattern.size();
  const std::string_view tail = std::string_view(file_name).substr(stem);
  for (std::size_t i = 0; i < kPattern.size(); ++i) {
    const bool is_digit = tail[i] >= '0' && tail[i] <= '9';
    if (kPattern[i] == '0' ? !is_digit : tail[i] != kPattern[i]) return false;
  }
  out = {file_name.substr(0, stem), std::stoi(std::string(tail.substr(1, 5))),
         std::stoi(std::string(tail.substr(10, 5)))};
  return out.number >= 1 && out.number <= out.total;
}

std::string pickle_advice(const std::string& file) {
  return fmt::format(
      "{}: a pickle can run code when it is read, so it is not read here; convert the model once: "
      "load it with transformers (AutoModelForCausalLM.from_pretrained) and "
      "save_pretrained(FOLDER, safe_serialization=True)",
      file);
}

void refuse_dead_link(const std::string& path) {
  std::error_code failure;
  static_cast<void>(fs::status(path, failure));
  if (failure == std::errc::too_many_symbolic_link_levels)
    throw Error(ErrorKind::corrupt, path + ": symbolic links in a circle");
  throw Error(ErrorKind::not_found,
              path + ": a symbolic link to a file that is not there (incomplete download?)");
}

ShardSet find_shards(const std::string& folder, const OpenOptions& options) {
  const Names names = files_in(folder);
  const auto has = [&](const char* name) {
    return std::binary_search(names.begin(), names.end(), std::string(name));
  };
  if (has(kSingle)) {
    const fs::path path = fs::path(folder) / kSingle;
    if (!is_there(path)) refuse_dead_link(path.string());
    ShardSet single;
    single.files.push_back(path.string());
    if (has(kIndex))
      single.warnings.push_back(fmt::format("{} is read, {} beside it is not", kSingle, kIndex));
    return single;
  }
  if (options.ignore_index) return by_names(folder, names);
  if (has(kIndex)) return by_index(folder, names);
  nothing_to_read(folder, names);
}

std::vector<std::string> check_against_index(const ShardSet& shards,
                                             const SafetensorsCheckpoint& checkpoint) {
  if (shards.weight_map.empty()) return {};
  for (const auto& [tensor, file] : shards.weight_map) {
    const int index = checkpoint.find(tensor);
    const std::string promised = (fs::path(shards.index_path).parent_path() / file).string();
    if (index < 0) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("{}: the index promises tensor {} here, the file does not hold it",
                              promised, printable(tensor)));
    }
    if (checkpoint.file_of(index) != promised) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("{}: the index promises tensor {} here, it is in {}", promised,
                              printable(tensor), checkpoint.file_of(index)));
    }
  }
  Names extra;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    if (shards.weight_map.count(tensor.name) == 0) extra.push_back(tensor.name);
  }
  if (extra.empty()) return {};
  return {fmt::format("{}: {} tensors of the shards are not in the index: {}", shards.index_path,
                      extra.size(), listed(extra))};
}

}  // namespace sinkscope
