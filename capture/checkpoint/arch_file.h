// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "capture/checkpoint/family.h"
#include "capture/checkpoint/model_files.h"

namespace sinkscope {

// An architecture as a file: an ArchSpec and which tensor plays which role, schema
// "sinkscope.arch/1". What `info --arch-json` writes and `--arch FILE` reads:
//   spec      every field of ArchSpec by its name; absent fields keep their defaults, and
//             n_kv_heads, head_dim, window, moe_layers and attention_scale follow from the rest
//   roles     role -> tensor name; of a block's role a list with one name a block (null = it has
//             none), or one pattern with {layer}; {expert} is an expert's number
//   packing   role -> how it lies in its tensor, where it has none to itself (packing.h's words)
//   stored_offset  what a converter to GGUF added to the gains of norms 1 + w (1), if anything
//   unmapped  patterns of tensors without a role: only written, for who describes a new family
nlohmann::ordered_json arch_to_json(const ModelFiles& model);
// The same of a model yet to be: roles as above, each with a tensor to itself.
nlohmann::ordered_json arch_json(const ArchSpec& spec, const nlohmann::ordered_json& roles);

// Such a file in a model's folder describes that model without being asked for.
inline constexpr const char* kOwnDescription = "sinkscope_arch.json";

// A family made of such a file. Holds the texts that its table points to: not to be copied.
class ArchFile {
 public:
  // Throws Error: not_found, corrupt (not JSON, a key or value that does not belong there),
  // invalid_argument (sizes that contradict each other).
  // `is_asked_for`: by the user, not found beside the model.
  explicit ArchFile(const std::string& path, bool is_asked_for = true);
  ArchFile(const ArchFile&) = delete;
  ArchFile& operator=(const ArchFile&) = delete;

  // Makes `config` say what the file says; its quantization and the special ids that the file
  // leaves open stay. Keeps a pointer to this object.
  void describe(HfConfig& config) const;

  const std::string& asked_for() const { return asked_for_; }  // its path, or ""

 private:
  void add_role(Role role, const nlohmann::json& names, Packing packing, const std::string& where);
  void add_name(Role role, const nlohmann::json& name, Packing packing, int layer,
                const std::string& where);

  std::string asked_for_;
  ArchSpec spec_;
  Family family_;
  std::deque<std::string> texts_;
  std::vector<TensorName> names_;
};

}  // namespace sinkscope
