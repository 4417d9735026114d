// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <string>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "capture/checkpoint/safetensors_file.h"

namespace sinkscope {

// The safetensors files of a Hugging Face folder, as its rules choose them.
struct ShardSet {
  std::vector<std::string> files;                 // paths, in the order of their names
  std::map<std::string, std::string> weight_map;  // tensor -> plain file name; empty without index
  std::string index_path;                         // "" without an index
  std::vector<std::string> warnings;
};

// model.safetensors, else what model.safetensors.index.json names, else a pickle is refused with a
// sentence on how to convert it. Before anything is opened: every file that the index names is
// there, and the numbered family it names is whole. `ignore_index` takes the shards on disk
// instead. Throws Error: not_found (files that are not there, all of them named), corrupt (the
// index itself), unsupported (pickle).
ShardSet find_shards(const std::string& folder, const OpenOptions& options);

// Holds the index against the opened shards: every tensor is in the shard it was promised in.
// Throws Error{corrupt} with tensor and file; returns a warning about tensors that the index does
// not name, if any.
std::vector<std::string> check_against_index(const ShardSet& shards,
                                             const SafetensorsCheckpoint& checkpoint);

// "model-00002-of-00003.safetensors": number 2 of 3 of the family "model-of-00003".
struct ShardName {
  std::string stem;  // "model"
  int number = 0, total = 0;
  bool operator==(const ShardName&) const = default;
};

// False when the name is not of that form.
bool parse_shard_name(const std::string& file_name, ShardName& out);

// How to convert a pickle, as the end of a sentence.
std::string pickle_advice(const std::string& file);

// Of a symbolic link that leads to no file. Throws Error: corrupt (links in a circle), not_found.
[[noreturn]] void refuse_dead_link(const std::string& path);

}  // namespace sinkscope
