// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/checkpoint/arch_spec.h"
#include "capture/checkpoint/checkpoint.h"
#include "capture/checkpoint/packing.h"

namespace sinkscope {

class GgufFile;

enum class Container { safetensors, gguf };

// A norm weight, effective and as stored. Both [C].
struct NormGain {
  std::vector<float> effective, raw;
};

// A model on disk, understood: its tensors, its architecture, and which tensor plays which role.
// Opening reads headers and config only, never weights. Const members are thread-safe.
//
//   auto model = open_model("org/name");
//   model->read_rows(Role::q, 3, 0, model->rows(Role::q, 3), buffer);
class ModelFiles {
 public:
  virtual ~ModelFiles() = default;

  virtual const Checkpoint& checkpoint() const = 0;
  virtual const ArchSpec& spec() const = 0;
  virtual Container container() const = 0;
  virtual const std::string& path() const = 0;         // resolved folder or first file
  virtual const std::string& config_text() const = 0;  // config.json, or GGUF's metadata as JSON
                                                       // (without token lists)
  virtual const GgufFile* gguf() const = 0;            // null for a safetensors folder

  // The file that describes the architecture in place of the model's own config, as it was asked
  // for (--arch); "" = none.
  virtual std::string arch_file() const { return ""; }

  // Why the model cannot be run, or empty. `info` and `norms` still work on such a model
  // (architecture unknown, a tensor missing or of an unreadable type): every reason, one a line.
  virtual const std::vector<std::string>& obstacles() const = 0;
  // Opening notes for the user, the checkpoint's own warnings included.
  virtual const std::vector<std::string>& warnings() const = 0;

  // Whether the role is filled (a bias or norm that the model lacks is not).
  virtual bool has(Role role, int layer) const = 0;
  virtual std::int64_t rows(Role role, int layer) const = 0;
  virtual std::int64_t cols(Role role, int layer) const = 0;  // 1 row: the vector's length
  // The tensor's name in the file, for messages.
  virtual std::string tensor_name(Role role, int layer) const = 0;
  // The same with an expert's number left open, and how the role lies in the tensor.
  virtual StoredAs stored_as(Role role, int layer) const { return {tensor_name(role, layer)}; }

  // Rows [begin, end) as float32 in Hugging Face order: linear layers [out, in], llama q/k rows
  // un-permuted, biases likewise. Norm weights come as stored: see norm_gain.
  // Throws Error{not_found} naming the role when it is not filled.
  virtual void read_rows(Role role, int layer, std::int64_t begin, std::int64_t end,
                         float* out) const = 0;

  // Bytes that came from the files so far, headers and scales of codes included.
  virtual std::int64_t bytes_read() const { return 0; }

  // A whole vector (bias, norm weight as stored).
  std::vector<float> read_vector(Role role, int layer) const;

  // Whole numbers that are stored as such (I64), to the bit. Throws Error{corrupt} for others.
  std::vector<std::int64_t> read_integers(Role role, int layer) const;

  // Effective gain (stored weight + spec().norm_offset, undone where a converter added it already)
  // and the raw stored one.
  NormGain norm_gain(Role role, int layer) const;

  // The part of spec().norm_offset that is already in the stored numbers (role_table.h).
  virtual float stored_offset(Role, int /*layer*/) const { return 0.0f; }
};

// Opens a Hugging Face folder, one .safetensors file in such a folder, a GGUF file (recognized by
// its first bytes, not by its suffix) or a hub-cache name `org/name` (HF_HUB_CACHE, else
// HF_HOME/hub, else ~/.cache/huggingface/hub; symbolic links are followed). A pickle is refused
// with a sentence on how to convert it. Throws Error: not_found, corrupt, unsupported.
std::unique_ptr<ModelFiles> open_model(const std::string& path, const OpenOptions& options = {});

}  // namespace sinkscope
