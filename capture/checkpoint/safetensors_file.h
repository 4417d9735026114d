// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/checkpoint/block_scale.h"
#include "capture/checkpoint/checkpoint.h"
#include "capture/checkpoint/file_reader.h"
#include "capture/checkpoint/safetensors_dtype.h"

namespace sinkscope {

// One safetensors file or the shards of a model, as one list of tensors: shard by shard, by name
// within a shard. Tensors of a code type (FP8, FP4, INT8) are multiplied by their scales
// (`X_scale_inv` in blocks, `X_scale` for a tensor, a row or a block) inside read_rows; where the
// config promises scales and there are none they are not readable, never cast.
class SafetensorsCheckpoint final : public Checkpoint, public CountedReads {
 public:
  // `files`: paths of the shards. Throws Error: not_found, corrupt (also a tensor in two shards).
  static std::unique_ptr<SafetensorsCheckpoint> open(const std::vector<std::string>& files,
                                                     const QuantizationHint& hint = {});

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  int find(const std::string& name) const override;
  void read_rows(int index, std::int64_t begin, std::int64_t end, float* out) const override;
  void read_raw(int index, std::uint64_t offset, std::uint64_t n, void* out) const override;
  std::int64_t bytes_read() const override;

  // Path of the file that holds the tensor.
  const std::string& file_of(int index) const;
  bool is_scale(int index) const override;
  std::string refusal(int index) const override;

 private:
  struct Scale {
    int tensor = -1;
    BlockScale layout;
  };
  struct Stored {
    int shard = 0;
    std::uint64_t begin = 0;
    const SafetensorsDtype* dtype = nullptr;
    bool is_scale = false;
    std::optional<Scale> scale;
    std::string refusal;
  };

  void add_shard(const std::string& path);
  void join_mxfp4();
  bool read_mx_scale(int index, int scale);
  void match_scales(const QuantizationHint& hint);
  std::string match_scale(int index, int scale, const std::vector<std::int64_t>& block);
  const Stored& stored(int index) const;
  void read_elements(int index, std::int64_t first, std::int64_t n, float* out) const;

  std::vector<FileReader> shards_;
  std::vector<TensorInfo> tensors_;
  std::vector<Stored> stored_;
  std::unordered_map<std::string, int> by_name_;
};

}  // namespace sinkscope
