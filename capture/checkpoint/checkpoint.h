// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sinkscope {

// One stored tensor as the file's header declares it. `shape` is outermost first ([out, in] for a
// linear layer), also for GGUF, whose headers say it the other way round.
struct TensorInfo {
  std::string name;
  std::string dtype;  // safetensors or GGUF spelling: "BF16", "Q4_K", "F8_E4M3"; "type 250" unknown
  std::vector<std::int64_t> shape;
  std::uint64_t n_bytes = 0;
  bool readable = true;  // false: the dtype is known or unknown but cannot be decoded here

  std::int64_t n_elements() const;
  std::int64_t n_rows() const;  // product of all dimensions but the last; 1 for a vector or scalar
  std::int64_t row_size() const;  // the last dimension; 1 for a scalar
};

// The raw tensors of a checkpoint, in whatever container: a single safetensors file, a sharded
// folder, a GGUF file, a split GGUF. Opening reads and checks headers only; every offset, length,
// shape and count is verified before use. Values are read with pread: nothing is mapped, nothing
// cached, a file larger than memory is fine. All const members are safe from several threads.
class Checkpoint {
 public:
  virtual ~Checkpoint() = default;

  // In file order (name order within a shard for safetensors).
  virtual const std::vector<TensorInfo>& tensors() const = 0;

  // Index into tensors(), or -1. The default walks the list; containers with many tensors override.
  virtual int find(const std::string& name) const;

  // Decodes rows [begin, end) of tensor `index` to float32, row-major, into `out`, which must hold
  // (end - begin) * row_size() floats. Quantized types are dequantized exactly as their reference
  // does; FP8 with block scales is multiplied by them; integers are converted.
  // Throws Error: corrupt (short read, file changed), unsupported (dtype), invalid_argument (rows).
  virtual void read_rows(int index, std::int64_t begin, std::int64_t end, float* out) const = 0;

  // The stored bytes [offset, offset + n) of the tensor, undecoded (for fingerprints).
  virtual void read_raw(int index, std::uint64_t offset, std::uint64_t n, void* out) const = 0;

  // Whether the tensor is a scale that another one is multiplied by.
  virtual bool is_scale(int /*index*/) const { return false; }
  // Why a tensor with readable == false cannot be decoded.
  virtual std::string refusal(int index) const;

  // Sentences the user should see: extra tensors in a shard, ignored entries, flags against files.
  const std::vector<std::string>& warnings() const { return warnings_; }

 protected:
  std::vector<std::string> warnings_;
};

struct OpenOptions {
  bool ignore_index = false;  // read the shards that are there instead of what the index claims
  std::string arch_file;      // describes the architecture in config.json's place (arch_file.h)
};

// SHA-256 in hex over the tensors sorted by name: name, dtype, shape, first and last 4 KiB of each.
std::string fingerprint(const Checkpoint& checkpoint);

}  // namespace sinkscope
