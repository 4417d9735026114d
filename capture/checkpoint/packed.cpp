// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include "capture/checkpoint/family.h"
#include "capture/checkpoint/hf_names.h"

namespace sinkscope {
namespace {

using Lines = TensorView::Lines;

// Where the lines of one of several parts lie that take turns: `block` lines of each, in order.
struct Turns {
  std::int64_t before, block, all;
};

TensorView view_of(Lines lines, const Turns& turns) {
  TensorView view;
  view.lines = lines;
  view.begin = turns.before;
  view.block = turns.block;
  view.stride = turns.all;
  return view;
}

bool is_vector(const ExpectedShape& own) { return own.shape.size() == 1; }

// `own` lies in a tensor of `n_all` lines; a vector's lines are its elements.
Packed shared_rows(const ExpectedShape& own, const Turns& turns, std::int64_t n_all,
                   std::string because) {
  Packed packed;
  packed.view = view_of(is_vector(own) ? Lines::columns : Lines::rows, turns);
  packed.shape = own.shape;
  packed.shape.front() = n_all;
  packed.because = std::move(because);
  packed.view.rows = is_vector(own) ? 1 : own.shape.front();
  packed.view.cols = own.shape.back();
  return packed;
}

Packed transposed(const ExpectedShape& own, const Turns& turns, std::int64_t n_all,
                  std::string because) {
  Packed packed;
  packed.view = view_of(Lines::transposed, turns);
  packed.shape = {own.shape[1], n_all};
  packed.because = std::move(because);
  packed.view.rows = own.shape[0];
  packed.view.cols = own.shape[1];
  return packed;
}

// The first, second or third of three roles that share a tensor.
int place_of(Role role, std::initializer_list<Role> first, std::initializer_list<Role> second) {
  for (const Role r : first)
    if (r == role) return 0;
  for (const Role r : second)
    if (r == role) return 1;
  return 2;
}

Turns qkv_turns(Role role, const ArchSpec& spec) {
  const int place = place_of(role, {Role::q, Role::q_bias}, {Role::k, Role::k_bias});
  const std::int64_t q = spec.q_width(), kv = spec.kv_width();
  const std::int64_t before[] = {0, q, q + kv}, size[] = {q, kv, kv};
  return {before[place], size[place], q + 2 * kv};
}

Turns delta_turns(Role role, const DeltaSpec& delta, bool by_head) {
  const std::int64_t heads = by_head ? 1 : delta.n_key_heads;
  const std::int64_t key = delta.key_dim * heads;
  const std::int64_t value =
      std::int64_t{delta.value_dim} * delta.n_value_heads / delta.n_key_heads * heads;
  const int place = place_of(role, {Role::delta_q}, {Role::delta_k});
  const std::int64_t all = by_head ? 2 * key + 2 * value : 2 * key + value;
  if (place < 2) return {place * key, key, all};
  return {2 * key + (role == Role::delta_gate ? value : 0), value, all};
}

Packed expert_stack(Packing packing, Role role, const ArchSpec& spec, const ExpectedShape& own) {
  const std::int64_t E = spec.moe.n_experts, I = spec.moe.d_expert, D = spec.d_model;
  const bool second = role == Role::expert_up || role == Role::expert_up_bias;
  const bool is_bias = role == Role::expert_gate_bias || role == Role::expert_up_bias;
  const bool is_down = role == Role::expert_down;
  Packed packed;
  packed.because = fmt::format("experts {}, their width {}, hidden_size {}", E, I, D);
  packed.view.rows = own.shape[0];
  packed.view.cols = own.shape[1];
  const auto take = [&](Lines lines, const Turns& turns, std::vector<std::int64_t> shape) {
    const TensorView part = view_of(lines, turns);
    packed.view.lines = part.lines;
    packed.view.begin = part.begin;
    packed.view.block = part.block;
    packed.view.stride = part.stride;
    packed.shape = std::move(shape);
  };
  switch (packing) {
    case Packing::experts_gate_up:
      take(Lines::rows, {second ? I : 0, I, 2 * I}, {E, 2 * I, D});
      break;
    case Packing::experts_alternate:
      if (is_bias)
        take(Lines::columns, {second, 1, 2}, {E, 2 * I});
      else
        take(Lines::rows, {second, 1, 2}, {E, 2 * I, D});
      break;
    case Packing::experts_alternate_columns:
      take(Lines::transposed, {second, 1, 2}, {E, D, 2 * I});
      packed.view.matrices = E;
      break;
    default:  // experts_transposed
      take(Lines::transposed, {0, own.shape[0] / E, own.shape[0] / E},
           is_down ? std::vector<std::int64_t>{E, I, D} : std::vector<std::int64_t>{E, D, I});
      packed.view.matrices = E;
      break;
  }
  return packed;
}

bool is_gate(Role role) { return role == Role::attn_gate || role == Role::attn_gate_bias; }

}  // namespace

Packed packed(Packing packing, Role role, const ArchSpec& spec, int layer) {
  const ExpectedShape own = expected_shape(role, spec, layer);
  const std::int64_t d = spec.head_dim, D = spec.d_model;
  const std::string heads =
      fmt::format("num_attention_heads {} and num_key_value_heads {} x head_dim {}, hidden_size {}",
                  spec.n_heads, spec.n_kv_heads, d, D);
  switch (packing) {
    case Packing::own:
    case Packing::reshaped:
    case Packing::rotary_pairs:
    case Packing::minus_exp:
      break;
    case Packing::transposed:
      return transposed(own, {0, own.shape[0], own.shape[0]}, own.shape[0],
                        own.because + ", stored [in, out]");
    case Packing::qkv_rows: {
      const Turns turns = qkv_turns(role, spec);
      return shared_rows(own, turns, turns.all, heads);
    }
    case Packing::qkv_columns: {
      const Turns turns = qkv_turns(role, spec);
      return transposed(own, turns, turns.all, heads);
    }
    case Packing::qkv_by_head: {
      const int place = place_of(role, {Role::q, Role::q_bias}, {Role::k, Role::k_bias});
      return shared_rows(own, {place * d, d, 3 * d}, 3 * spec.n_heads * d, heads);
    }
    case Packing::gate_up_rows: {
      const std::int64_t width = own.shape[0];
      const bool second = role == Role::up || role == Role::shared_up;
      return shared_rows(own, {second ? width : 0, width, 2 * width}, 2 * width, own.because);
    }
    case Packing::query_gate_by_head: {
      const std::int64_t query =
          spec.latent.kv_rank > 0 ? spec.latent.nope_dim + spec.latent.rope_dim : d;
      const std::int64_t gate = spec.gate_dim(), all = query + gate;
      const bool second = is_gate(role);
      return shared_rows(own, {second ? query : 0, second ? gate : query, all}, spec.n_heads * all,
                         own.because + ", with a gate beside each head");
    }
    case Packing::query_gate_by_group: {
      const std::int64_t heads_of_one = spec.n_heads / spec.n_kv_heads, query = heads_of_one * d,
                         gate = heads_of_one * spec.gate_dim(), all = query + gate;
      const bool second = is_gate(role);
      return shared_rows(own, {second ? query : 0, second ? gate : query, all},
                         spec.n_kv_heads * all,
                         own.because + ", with the gates beside the queries of each key head");
    }
    case Packing::key_value_by_head: {
      const std::int64_t key = spec.latent.nope_dim, value = spec.d_value();
      const bool second = role == Role::v;
      return shared_rows(own, {second ? key : 0, second ? value : key, key + value},
                         spec.n_heads * (key + value), own.because);
    }
    case Packing::delta_rows: {
      const Turns turns = delta_turns(role, spec.delta, false);
      return shared_rows(own, turns, turns.all, own.because);
    }
    case Packing::delta_by_head: {
      const Turns turns = delta_turns(role, spec.delta, true);
      return shared_rows(own, turns, spec.delta.n_key_heads * turns.all, own.because);
    }
    case Packing::delta_pairs_by_head: {
      const std::int64_t n = spec.delta.n_value_heads / spec.delta.n_key_heads;
      return shared_rows(own, {role == Role::delta_decay ? n : 0, n, 2 * n},
                         2 * spec.delta.n_value_heads, own.because);
    }
    case Packing::index_rows: {
      const std::int64_t key = spec.index.head_dim, query = spec.index.n_heads * key;
      const bool second = role == Role::index_k;
      return shared_rows(own, {second ? query : 0, second ? key : query, query + key}, query + key,
                         own.because);
    }
    case Packing::head_stack:
      return {{spec.n_heads, own.shape[0] / spec.n_heads, own.shape[1]}, own.because, {}};
    case Packing::head_stack_transposed: {
      const std::int64_t each = own.shape[0] / spec.n_heads;
      Packed stack = transposed(own, {0, each, each}, each, own.because + ", stored transposed");
      stack.shape.insert(stack.shape.begin(), spec.n_heads);
      stack.view.matrices = spec.n_heads;
      return stack;
    }
    case Packing::shards:
      return {own.shape, own.because, {}};
    case Packing::expert_each:
    case Packing::qkv_each: {
      Packed one{own.shape, own.because, {}};
      one.shape.front() /= packing == Packing::qkv_each ? 3 : spec.moe.n_experts;
      if (packing == Packing::qkv_each) {  // reshaped
        one.view.rows = one.shape.front();
        one.view.cols = one.shape.back();
      }
      return one;
    }
    default:
      return expert_stack(packing, role, spec, own);
  }
  if (role == Role::expert_gate || role == Role::expert_up || role == Role::expert_down) {
    const std::int64_t E = spec.moe.n_experts;
    return {{E, own.shape[0] / E, own.shape[1]}, own.because, {}};  // a stack of matrices
  }
  TensorView whole;
  if (packing == Packing::reshaped) {
    whole.rows = own.shape.size() == 1 ? 1 : own.shape.front();
    whole.cols = own.shape.back();
  }
  return {own.shape, own.because, whole};
}

}  // namespace sinkscope
