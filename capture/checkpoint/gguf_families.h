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
  std::span<const TensorName> names = {};  // what differs from the Llama family's names
  bool pairs = false;                      // q and k rows stored in rotary pairs
  bool one_plus = false;                   // norms multiply by 1 + w; the file holds 1 + w
  bool windows = false;                    // attention.sliding_window counts
  int window_period = 0;   // where the file does not say which layers: the last of each is full
  const char* reads = "";  // keys with an effect that `read` understands, between spaces
  void (*read)(const GgufKeys& keys, const GgufFile& file, GgufModel& model) = nullptr;
};

// Null for an architecture that cannot be run.
const GgufFamily* find_gguf_family(const std::string& architecture);
// "llama, qwen2, …"
std::string gguf_family_names();
// Spellings of a role; empty where the family has none.
std::span<const TensorName> names_of(const GgufFamily& family, Role role);

}  // namespace sinkscope
