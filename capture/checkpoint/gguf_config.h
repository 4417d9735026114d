// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "capture/checkpoint/arch_spec.h"
#include "capture/checkpoint/role_table.h"

namespace sinkscope {

class GgufFile;

// What a GGUF file says about its model: the architecture as data, which tensor plays which role,
// and everything that stands in the way of running it.
struct GgufModel {
  ArchSpec spec;  // as far as it could be read; sizes that could not are 0
  RoleTable roles;
  std::string config_text;  // the metadata as JSON; token lists and the like only as lengths
  std::vector<std::string> obstacles, warnings;  // one sentence each
};

// Translates metadata keys and tensor names. Architectures that can be run: gguf_family_names().
// Any other is an obstacle, but its norms still get their roles by name. Rows of q and k that a
// converter has permuted are marked Packing::rotary_pairs; norm weights of the (1+w) families,
// which converters store with the 1 already added, get norm_offset and stored_offset 1. `path`
// names the model when the file does not. What is wrong with the file's statements is an obstacle;
// throws Error where a tensor that a family reads cannot be read.
GgufModel describe_gguf(const GgufFile& file, const std::string& path);

}  // namespace sinkscope
