// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/model_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "capture/checkpoint/arch_file.h"
#include "capture/checkpoint/file_reader.h"
#include "capture/checkpoint/gguf_config.h"
#include "capture/checkpoint/gguf_file.h"
#include "capture/checkpoint/hf_config.h"
#include "capture/checkpoint/hf_roles.h"
#include "capture/checkpoint/hub_cache.h"
#include "capture/checkpoint/opened_model.h"
#include "capture/checkpoint/safetensors_file.h"
#include "capture/checkpoint/safetensors_header.h"
#include "capture/checkpoint/shard_index.h"
#include "capture/checkpoint/text_file.h"
#include "core/error.h"

namespace sinkscope {
namespace fs = std::filesystem;
namespace {

using Lines = std::vector<std::string>;

void append(Lines& lines, const Lines& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

bool exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// The hub's name for a snapshot, else the folder's own.
std::string name_of(const std::string& folder) {
  const fs::path whole = fs::absolute(folder).lexically_normal();
  const std::string hub = hub_name_of(whole.string());
  if (!hub.empty()) return hub;
  return (whole.has_filename() ? whole.filename() : whole.parent_path().filename()).string();
}

HfConfig read_config(const fs::path& folder, std::string& config_text) {
  const std::string where = (folder / "config.json").string();
  if (!is_there(where)) {
    HfConfig config;
    config.obstacles.push_back("no config.json in " + folder.string() +
                               ": the architecture is not known");
    return config;
  }
  config_text = read_text_file(where);
  HfConfig config = parse_hf_config(config_text, where);
  const std::string generation = (folder / "generation_config.json").string();
  if (!is_there(generation)) return config;
  // It only completes the ids of BOS and EOS; many folders have none.
  try {
    add_generation_config(config, read_text_file(generation), generation);
  } catch (const Error& error) {
    config.warnings.push_back(fmt::format("{}; BOS and EOS are as config.json says", error.what()));
  }
  return config;
}

// `folder` holds config.json, `shards` the tensors; `path` is what the user will be told.
std::unique_ptr<ModelFiles> open_safetensors(const std::string& folder, const ShardSet& shards,
                                             const std::string& path, const ArchFile* arch) {
  ModelParts parts;
  parts.path = path;
  if (arch != nullptr) parts.arch_file = arch->asked_for();
  HfConfig config = read_config(folder, parts.config_text);
  if (arch != nullptr) arch->describe(config);
  auto checkpoint = SafetensorsCheckpoint::open(shards.files, config.quantization);
  append(parts.warnings, shards.warnings);
  append(parts.warnings, checkpoint->warnings());
  append(parts.warnings, check_against_index(shards, *checkpoint));
  const std::string where = !shards.index_path.empty() ? shards.index_path
                            : shards.files.size() == 1 ? shards.files.front()
                                                       : folder;
  parts.roles = assign_hf_roles(config, *checkpoint, where);
  parts.spec = std::move(config.spec);
  if (arch == nullptr || parts.spec.name.empty()) parts.spec.name = name_of(folder);
  parts.obstacles = std::move(config.obstacles);
  append(parts.warnings, config.warnings);
  parts.checkpoint = std::move(checkpoint);
  return std::make_unique<OpenedModel>(std::move(parts));
}

// As a file for --arch has it, in place of the metadata.
GgufModel describe_by(const ArchFile& arch, const GgufFile& file, const std::string& path) {
  GgufModel own = describe_gguf(file, path);
  HfConfig config;
  config.spec.bos_id = own.spec.bos_id;
  config.spec.eos_id = own.spec.eos_id;
  arch.describe(config);
  GgufModel model;
  model.config_text = std::move(own.config_text);
  model.roles = assign_hf_roles(config, file, path);
  model.spec = std::move(config.spec);
  if (model.spec.name.empty()) model.spec.name = own.spec.name;
  model.obstacles = std::move(config.obstacles);
  model.warnings = std::move(config.warnings);
  return model;
}

std::unique_ptr<ModelFiles> open_gguf(const std::string& path, const ArchFile* arch) {
  ModelParts parts;
  std::unique_ptr<GgufFile> file = GgufFile::open(path);
  GgufModel described =
      arch != nullptr ? describe_by(*arch, *file, path) : describe_gguf(*file, path);
  parts.path = path;
  if (arch != nullptr) parts.arch_file = arch->asked_for();
  parts.container = Container::gguf;
  parts.gguf = file.get();
  parts.spec = std::move(described.spec);
  parts.roles = std::move(described.roles);
  parts.config_text = std::move(described.config_text);
  parts.obstacles = std::move(described.obstacles);
  parts.warnings = file->warnings();
  append(parts.warnings, described.warnings);
  parts.checkpoint = std::move(file);
  return std::make_unique<OpenedModel>(std::move(parts));
}

bool is_pickle(const FileReader& file) {
  char start[4] = {};
  file.read(0, std::min<std::uint64_t>(sizeof(start), file.size()), start);
  const bool is_zip = std::memcmp(start, "PK\x03\x04", 4) == 0;
  const bool is_protocol = start[0] == '\x80' && start[1] >= 2 && start[1] <= 5;
  const std::string suffix = fs::path(file.path()).extension().string();
  return is_zip || is_protocol || suffix == ".bin" || suffix == ".pt" || suffix == ".pth" ||
         suffix == ".ckpt";
}

// Content decides; a suffix only helps where the content says nothing.
std::unique_ptr<ModelFiles> open_file(const std::string& path, const ArchFile* arch) {
  if (looks_like_gguf(path)) return open_gguf(path, arch);
  const FileReader file(path);
  const bool is_named_so = path.ends_with(".safetensors");
  if (!looks_like_safetensors(file) && !looks_like_lfs_pointer(file)) {
    if (is_pickle(file)) throw Error(ErrorKind::unsupported, pickle_advice(path));
    if (!is_named_so) {
      throw Error(ErrorKind::unsupported,
                  path + ": neither a GGUF nor a safetensors file by its first bytes");
    }
  }
  ShardSet single;
  single.files.push_back(path);
  ShardName shard;
  if (parse_shard_name(fs::path(path).filename().string(), shard) && shard.total > 1) {
    single.warnings.push_back(
        fmt::format("this file is number {} of {}: open the folder for the "
                    "whole model",
                    shard.number, shard.total));
  }
  const fs::path folder = fs::path(path).parent_path();
  return open_safetensors(folder.empty() ? "." : folder.string(), single, path, arch);
}

// The GGUF files of a folder without safetensors, each by its first part, in the order of names.
Lines ggufs_in(const std::string& folder) {
  Lines found;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    const std::string path = it->path().string();
    if (path.ends_with(".safetensors") || path.ends_with(".safetensors.index.json")) return {};
    const bool is_later_part =
        path.find("-of-") != std::string::npos && path.find("-00001-of-") == std::string::npos;
    if (path.ends_with(".gguf") && !is_later_part) found.push_back(path);
  }
  std::sort(found.begin(), found.end());
  return found;
}

// A file of a model in the hub cache, "org/name/FILE.gguf", or "".
std::string file_in_hub_cache(const std::string& path) {
  const std::size_t slash = path.find('/');
  const std::size_t end = slash == std::string::npos ? slash : path.find('/', slash + 1);
  if (end == std::string::npos || path.find("..") != std::string::npos) return "";
  const auto snapshot = find_in_hub_cache(path.substr(0, end));
  if (!snapshot) return "";
  const fs::path file = fs::path(*snapshot) / path.substr(end + 1);
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) ? file.string() : "";
}

std::unique_ptr<ModelFiles> open_folder(const std::string& folder, const OpenOptions& options,
                                        const ArchFile* arch) {
  const Lines ggufs = ggufs_in(folder);
  if (ggufs.size() == 1) return open_file(ggufs.front(), arch);
  if (ggufs.size() > 1) {
    Lines names;
    for (const std::string& gguf : ggufs) names.push_back(fs::path(gguf).filename().string());
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: expected one GGUF file, found {}; name one: {}", folder,
                            names.size(), fmt::join(names, ", ")));
  }
  const fs::path own = fs::path(folder) / kOwnDescription;
  if (arch == nullptr && is_there(own.string())) {
    const ArchFile described(own.string(), false);
    return open_safetensors(folder, find_shards(folder, options), folder, &described);
  }
  return open_safetensors(folder, find_shards(folder, options), folder, arch);
}

std::unique_ptr<ModelFiles> open_any(const std::string& path, const OpenOptions& options,
                                     const ArchFile* arch) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    return open_folder(snapshot_of(path).value_or(path), options, arch);
  if (exists(path)) {
    // Opening a pipe would wait for a writer, and a model is read at many places.
    if (!fs::is_regular_file(path, ignored))
      throw Error(ErrorKind::corrupt,
                  path + ": expected a model, a folder or a file, found a pipe or device");
    return open_file(path, arch);
  }
  if (fs::is_symlink(fs::symlink_status(path, ignored))) refuse_dead_link(path);
  if (const auto snapshot = find_in_hub_cache(path)) return open_folder(*snapshot, options, arch);
  if (const std::string file = file_in_hub_cache(path); !file.empty()) return open_file(file, arch);
  throw Error(
      ErrorKind::not_found,
      fmt::format("{}: no such file or folder, and no model of this name in the hub cache {}", path,
                  hub_cache_folder()));
}

}  // namespace

std::unique_ptr<ModelFiles> open_model(const std::string& path, const OpenOptions& options) {
  if (options.arch_file.empty()) return open_any(path, options, nullptr);
  const ArchFile arch(options.arch_file);
  return open_any(path, options, &arch);
}

}  // namespace sinkscope
