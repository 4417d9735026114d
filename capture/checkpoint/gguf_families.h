// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <string>

#include "capture/checkpoint/family.h"
#include "capture/checkpoint/gguf_config.h"
#include "capture/checkpoint/gguf_keys.h"

namespace sinkscope {

// One `general.architecture` as data. What converters do to a model on its way into GGUF is said
// by names and packings; see gguf_families.cpp.
struct GgufFamily {
  const char* architecture;
  std::span<const TensorName> names = {};  // what differs from the usual names
  bool one_plus = false;                   // norms multiply by 1 + w; the file holds 1 + w
  bool windows = false;                    // attention.sliding_window counts
  bool latent = false;                     // heads are said by the keys of latent attention
  int window_period = 0;   // where the file does not say which layers: the last of each is full
  const char* reads = "";  // keys with an effect that `read` understands, between spaces
  void (*read)(const GgufKeys& keys, const GgufFile& file, GgufModel& model) = nullptr;
};

// Null for an architecture that cannot be run.
const GgufFamily* find_gguf_family(const std::string& architecture);
// "llama, qwen2, …"
std::string gguf_family_names();
// The names that most families share, after "blk.N." for what belongs to a block.
std::span<const TensorName> gguf_names();

}  // namespace sinkscope
