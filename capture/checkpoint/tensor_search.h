// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "capture/checkpoint/family.h"
#include "capture/checkpoint/hf_names.h"

namespace sinkscope {

// Looks for the tensors of a model by a family's names. The family's prefix is
// optional; where the language model sits inside one for pictures or sound, the wrapper's prefixes
// count too. What is handed in must outlive this.
class TensorSearch {
 public:
  enum class Inside { nothing, wrapper };

  TensorSearch(const Checkpoint& checkpoint, const Family& family, Inside inside);

  // The name that a line stands for, without a prefix. `expert` −1 leaves the number open: "{}".
  std::string name(const TensorName& line, int layer, int expert) const;
  // The tensor, or −1.
  int find(const TensorName& line, int layer, int expert = 0) const;
  // The first of the role's spellings that the files have; null = none.
  const TensorName* spelling(Role role, int layer) const;
  // The spelling to name when there is none; null where the family has no name for the role.
  const TensorName* usual_spelling(Role role, int layer) const;

  // The block of the language model that a tensor belongs to.
  std::optional<LayerName> block(std::string_view name) const;
  // Whether a tensor belongs to another part of a wrapper: a tower, a projector.
  bool is_outside(std::string_view name) const;

 private:
  const Checkpoint& checkpoint_;
  const Family& family_;
  Inside inside_;
  std::vector<std::string> prefixes_;  // in the order in which they are tried
};

}  // namespace sinkscope
