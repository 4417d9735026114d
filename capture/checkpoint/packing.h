// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capture/checkpoint/arch_spec.h"

namespace sinkscope {

// How a family lays a role into the tensor that it names. Experts are numbered by {} in the name.
enum class Packing {
  own,                        // the role's own tensor
  reshaped,                   // its values in another shape
  transposed,                 // [in, out]
  qkv_rows,                   // q, k, v one below the other
  qkv_columns,                // the same, transposed
  qkv_by_head,                // per head: q, k, v
  gate_up_rows,               // gate, then up
  query_gate_by_head,         // per head: q, its gate
  query_gate_by_group,        // per key head: q of the heads that it serves, their gates
  key_value_by_head,          // MLA, per head: k, v
  delta_rows,                 // q, k, v of all heads one below the other
  delta_by_head,              // per key head: q, k, v of its value heads, gate of those
  delta_pairs_by_head,        // per key head: beta, then decay of its value heads
  expert_each,                // a tensor an expert
  qkv_each,                   // a tensor for each of q, k and v, {} in the name is the letter
  experts_gate_up,            // [E, 2I, D], per expert: gate, then up
  experts_alternate,          // [E, 2I, D] or [E, 2I]: gate, up, gate, …
  experts_alternate_columns,  // [E, D, 2I]: the same, transposed
  experts_transposed,         // [E, in, out]
  index_rows,                 // the index's queries, then its key
  shards,                     // tensors one below the other, {} in the name is their number
  // What converters to GGUF do:
  rotary_pairs,           // inside each head the rotary rows stand as pairs
  minus_exp,              // −e^x in place of x
  head_stack,             // [H, out / H, in]
  head_stack_transposed,  // [H, in, out / H]
};

const char* to_string(Packing packing);  // "own", "qkv_rows", …
std::optional<Packing> packing_named(const std::string& name);
// Whether roles like this one can lie like that in a model of these sizes.
bool can_pack(Packing packing, Role role, const ArchSpec& spec);

// A role's tensor by name and how the role lies in it; {} in the name stands for an expert's number
// (expert_each), a shard's (shards) or one of the letters q, k, v (qkv_each).
struct StoredAs {
  std::string name;
  Packing packing = Packing::own;
};

}  // namespace sinkscope
