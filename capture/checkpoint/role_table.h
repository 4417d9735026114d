// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "capture/checkpoint/arch_spec.h"
#include "capture/checkpoint/packing.h"

namespace sinkscope {

// How the rows of a stored tensor stand to the Hugging Face order that everything else speaks.
enum class RowOrder {
  as_stored,    // they agree
  llama_pairs,  // GGUF arch "llama", q and k (weights and biases alike): inside each head the
                // rotary rows are stored as pairs, stored row 2j+s = Hugging Face row j +
                // s*rotary_dim/2
};

// The part of a stored tensor that plays a role, where several share one: fused projections,
// gates beside queries, experts in a stack. Line i of the role is stored line
//   begin + i / block * stride + i % block.
struct TensorView {
  enum class Lines {
    all,         // the tensor as it is
    rows,        // lines are stored rows
    columns,     // lines are stored columns of each row (a vector has one row)
    transposed,  // stored columns become rows: the file holds [in, out], or a stack of such
  };
  Lines lines = Lines::all;
  std::int64_t begin = 0, block = 1, stride = 1;
  // Rows and columns that the role sees; 0 = those of the tensor. In `transposed` stacks every
  // matrix has rows / matrices of the rows and `cols` stored rows.
  std::int64_t rows = 0, cols = 0, matrices = 1;

  std::int64_t stored(std::int64_t line) const {
    return begin + line / block * stride + line % block;
  }
};

// Which tensor plays a role, and what was done to it on the way into the file.
struct TensorRef {
  int tensor = -1;  // index into Checkpoint::tensors()
  RowOrder order = RowOrder::as_stored;
  // For llama_pairs: the tensor (or bias vector) has n_heads * head_dim rows; only the first
  // rotary_dim rows of each head are permuted. n_heads is the role's own (kv heads for k).
  int n_heads = 0, head_dim = 0, rotary_dim = 0;
  // Norm weights: the part of ArchSpec::norm_offset that the converter has already added to the
  // stored numbers. effective gain = stored + (norm_offset - stored_offset). Llama: 0 and 0;
  // a (1+w) family from Hugging Face: norm_offset 1, stored_offset 0; its GGUF: 1 and 1.
  float stored_offset = 0.0f;
  TensorView view;
  bool is_minus_exp = false;  // the file holds −e^x in place of x (GGUF's rates of delta-nets)
  // More tensors of the same shape, whose rows follow those of the first: one tensor an expert.
  std::vector<int> more;
  StoredAs stored_as;  // the name with its number open
};

// Roles filled by tensors. At most one tensor a (role, layer); the same tensor may fill two roles
// (tied embeddings).
class RoleTable {
 public:
  // Replaces what was there.
  void add(Role role, int layer, TensorRef ref) { refs_[{role, layer}] = std::move(ref); }

  // Null when the role is not filled. Valid until the next add.
  const TensorRef* find(Role role, int layer) const {
    const auto found = refs_.find({role, layer});
    return found == refs_.end() ? nullptr : &found->second;
  }

  bool empty() const { return refs_.empty(); }

 private:
  std::map<std::pair<Role, int>, TensorRef> refs_;
};

}  // namespace sinkscope
