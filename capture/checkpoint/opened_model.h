// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "capture/checkpoint/model_files.h"
#include "capture/checkpoint/read_together.h"
#include "capture/checkpoint/read_view.h"
#include "capture/checkpoint/role_table.h"

namespace sinkscope {

// Everything that opening a model finds out, whatever its container.
struct ModelParts {
  std::unique_ptr<Checkpoint> checkpoint;
  const GgufFile* gguf = nullptr;  // the checkpoint, if it is one
  Container container = Container::safetensors;
  ArchSpec spec;
  RoleTable roles;
  std::string path, config_text;
  std::string arch_file;  // asked for
  std::vector<std::string> obstacles, warnings;
};

// The one implementation of ModelFiles: parts, and rows brought into Hugging Face order.
class OpenedModel final : public ModelFiles {
 public:
  explicit OpenedModel(ModelParts parts) : parts_(std::move(parts)) {}

  const Checkpoint& checkpoint() const override { return *parts_.checkpoint; }
  const ArchSpec& spec() const override { return parts_.spec; }
  Container container() const override { return parts_.container; }
  const std::string& path() const override { return parts_.path; }
  const std::string& config_text() const override { return parts_.config_text; }
  const GgufFile* gguf() const override { return parts_.gguf; }
  std::string arch_file() const override { return parts_.arch_file; }
  const std::vector<std::string>& obstacles() const override { return parts_.obstacles; }
  const std::vector<std::string>& warnings() const override { return parts_.warnings; }

  bool has(Role role, int layer) const override {
    return parts_.roles.find(role, layer) != nullptr;
  }
  std::int64_t rows(Role role, int layer) const override {
    return view_rows(ref(role, layer), info(role, layer));
  }
  std::int64_t cols(Role role, int layer) const override {
    return view_cols(ref(role, layer), info(role, layer));
  }
  std::string tensor_name(Role role, int layer) const override { return info(role, layer).name; }
  StoredAs stored_as(Role role, int layer) const override;
  void read_rows(Role role, int layer, std::int64_t begin, std::int64_t end,
                 float* out) const override;
  std::int64_t bytes_read() const override;
  // read_together.h
  void read_together(int layer, const std::vector<Stretch>& wanted) const;

  float stored_offset(Role role, int layer) const override {
    return ref(role, layer).stored_offset;
  }

 private:
  const TensorRef& ref(Role role, int layer) const;  // throws not_found
  const TensorInfo& info(Role role, int layer) const;
  // Throws invalid_argument naming the role.
  void check_rows(Role role, int layer, std::int64_t begin, std::int64_t end) const;

  ModelParts parts_;
};

}  // namespace sinkscope
