// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/role_assignment.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/checkpoint/hf_names.h"
#include "capture/checkpoint/printable.h"
#include "capture/checkpoint/tied_head.h"

namespace sinkscope {
namespace {

// −1 where it is no number; no tensor has that many elements.
std::int64_t product(const std::vector<std::int64_t>& shape) {
  std::int64_t n = 1;
  for (const std::int64_t size : shape)
    if (__builtin_mul_overflow(n, size, &n)) return -1;
  return n;
}

bool same_shape(Packing packing, const TensorInfo& found, const std::vector<std::int64_t>& shape) {
  switch (packing) {
    case Packing::reshaped:
    case Packing::qkv_each:
      return found.n_elements() == product(shape);
    case Packing::shards:  // of any number of rows
      return found.shape.size() == 2 && found.shape.back() == shape.back();
    default:
      return found.shape == shape;
  }
}

// What a query projection of another height may be, for whoever reads the obstacle.
std::string gate_hint(Role role, const TensorInfo& found, const ArchSpec& spec) {
  if (role != Role::q || found.shape.size() != 2 || spec.latent.kv_rank > 0) return "";
  const std::int64_t rows = found.shape.front(), queries = spec.q_width();
  if (spec.attn_gate != AttnGate::headwise && rows == queries + spec.n_heads)
    return "; the rows would hold a gate for each head, which nothing else says "
           "(headwise_attn_output_gate)";
  if (spec.attn_gate != AttnGate::elementwise && rows == queries + spec.z_width())
    return "; the rows would hold a gate for each channel, which nothing else says "
           "(elementwise_attn_output_gate)";
  return "";
}

// Tensors that a role is spread over.
int n_tensors(Packing packing, const ArchSpec& spec) {
  return packing == Packing::expert_each ? spec.moe.n_experts
         : packing == Packing::qkv_each  ? 3
         : packing == Packing::shards    ? spec.ngram.n_shards
                                         : 1;
}

// Un-permuting needs whole heads: those of the role's own rows.
void mark_pairs(const ExpectedShape& own, const ArchSpec& spec, TensorRef& ref) {
  ref.order = RowOrder::llama_pairs;
  ref.head_dim = spec.head_dim;
  ref.n_heads = static_cast<int>(own.shape.front() / std::max(spec.head_dim, 1));
  ref.rotary_dim = spec.rope.rotary_dim;
}

}  // namespace

RoleAssignment::RoleAssignment(ArchSpec& spec, const Family& family, const Checkpoint& checkpoint,
                               TensorSearch::Inside inside, std::string where)
    : spec_(spec),
      family_(family),
      checkpoint_(checkpoint),
      where_(std::move(where)),
      search_(checkpoint, family, inside),
      used_(checkpoint.tensors().size(), false) {}

int RoleAssignment::find(Role role, int layer) const {
  const TensorName* line = search_.spelling(role, layer);
  return line == nullptr ? -1 : search_.find(*line, layer);
}

const TensorInfo& RoleAssignment::info(int tensor) const {
  return checkpoint_.tensors()[static_cast<std::size_t>(tensor)];
}

std::int64_t RoleAssignment::rows_of(Role role) const {
  const TensorName* line = search_.spelling(role, 0);
  if (line == nullptr || line->packing != Packing::own) return 0;
  const int tensor = search_.find(*line, 0);
  return tensor < 0 || info(tensor).shape.size() != 2 ? 0 : info(tensor).shape[0];
}

void RoleAssignment::object(Role role, const std::string& kind, const std::string& sentence) {
  const auto [found, added] = groups_.try_emplace({kind, role}, Group{sentence, 0});
  if (!added) ++found->second.more;
}

void RoleAssignment::use(int tensor) {
  if (tensor >= 0) used_[static_cast<std::size_t>(tensor)] = true;
}

// Whether the tensor has the shape that the role's packing demands; said if not.
bool RoleAssignment::fits(Role role, int tensor, const Packed& expected, Packing packing) {
  use(tensor);
  const TensorInfo& found = info(tensor);
  const bool same = same_shape(packing, found, expected.shape);
  if (!same) {
    object(role, "shape",
           fmt::format("tensor {} has shape {}, expected {} ({}){}", printable(found.name),
                       shape_text(found.shape), shape_text(expected.shape), expected.because,
                       gate_hint(role, found, spec_)));
  } else if (!found.readable) {
    object(role, "dtype",
           fmt::format("tensor {}: {}", printable(found.name), checkpoint_.refusal(tensor)));
  }
  // Norms of a model that cannot be run are still looked at: only those that can be.
  return same && (found.readable || !is_norm_gain(role));
}

// The rest of a role that is spread over several tensors. False when one is missing.
bool RoleAssignment::take_more(Role role, int layer, const TensorName& line, const Packed& expected,
                               TensorRef& ref) {
  bool all_fit = true;
  for (int number = 1; number < n_tensors(line.packing, spec_); ++number) {
    const int tensor = search_.find(line, layer, number);
    if (tensor < 0) {
      miss(role, layer, line, number);
      return false;
    }
    all_fit = fits(role, tensor, expected, line.packing) && all_fit;
    if (line.packing == Packing::shards && info(tensor).n_rows() != info(ref.tensor).n_rows()) {
      object(role, "shards",
             fmt::format("tensor {} has {} rows, the first of its shards {}",
                         printable(info(tensor).name), info(tensor).n_rows(),
                         info(ref.tensor).n_rows()));
      all_fit = false;
    }
    ref.more.push_back(tensor);
  }
  return all_fit;
}

// Takes the tensor, or the tensors, for the role if the shapes are right.
void RoleAssignment::take(Role role, int layer, const TensorName& line) {
  const Packed expected = packed(line.packing, role, spec_, layer);
  TensorRef ref;
  ref.tensor = search_.find(line, layer);
  ref.view = expected.view;
  if (is_norm_gain(role)) ref.stored_offset = family_.stored_offset;
  if (role == Role::delta_norm) ref.stored_offset = static_cast<float>(spec_.norm_offset);
  ref.is_minus_exp = line.packing == Packing::minus_exp;
  if (line.packing == Packing::rotary_pairs)
    mark_pairs(expected_shape(role, spec_, layer), spec_, ref);
  const bool first_fits = fits(role, ref.tensor, expected, line.packing);
  if (!take_more(role, layer, line, expected, ref) || !first_fits) return;
  ref.stored_as = {info(ref.tensor).name, line.packing};
  const std::string own = search_.name(line, layer, 0);
  const std::size_t prefix = ref.stored_as.name.size() - own.size();
  ref.stored_as.name.replace(prefix, own.size(), search_.name(line, layer, -1));
  table_.add(role, layer, std::move(ref));
}

// The embedding or the head, whichever serves as it.
void RoleAssignment::take(Role role, int tensor) {
  if (!fits(role, tensor, packed(Packing::own, role, spec_, kNoLayer), Packing::own)) return;
  TensorRef ref;
  ref.tensor = tensor;
  ref.stored_as.name = info(tensor).name;
  table_.add(role, kNoLayer, ref);
}

void RoleAssignment::miss(Role role, int layer, const TensorName& line, int number) {
  const std::string prefix = family_.prefix;
  const bool has_prefix =
      std::any_of(checkpoint_.tensors().begin(), checkpoint_.tensors().end(),
                  [&](const TensorInfo& tensor) { return tensor.name.starts_with(prefix); });
  const bool prefixed = has_prefix && role != Role::unembed;
  object(role, "missing",
         fmt::format("missing tensor {}{}: it is not in {} (an incomplete model, or another "
                     "architecture?)",
                     prefixed ? prefix : "", search_.name(line, layer, number), where_));
}

void RoleAssignment::fill(Role role, int layer) {
  if (const TensorName* line = search_.spelling(role, layer)) {
    take(role, layer, *line);
  } else if (const TensorName* usual = search_.usual_spelling(role, layer)) {
    miss(role, layer, *usual);
  } else {
    object(role, "missing",
           fmt::format("no tensor is named for the role {}{}", to_string(role),
                       layer == kNoLayer ? "" : fmt::format(" of block {}", layer)));
  }
}

void RoleAssignment::fill_all(int n_layers) {
  for (const Role role : outer_roles(spec_)) fill(role, kNoLayer);
  for (int layer = 0; layer < n_layers; ++layer)
    for (const Role role : layer_roles(spec_, layer)) fill(role, layer);
}

std::string RoleAssignment::fill_head(bool is_said_to_be_tied) {
  const int embed = find(Role::embed, kNoLayer);
  use(embed);
  if (!spec_.has_head) {  // the architecture has none, whatever config.json ties
    spec_.tied = false;
    fill(Role::embed, kNoLayer);
    return "";
  }
  const int head = find(Role::unembed, kNoLayer);
  use(head);
  const HeadChoice choice = choose_head(checkpoint_, embed, head, is_said_to_be_tied);
  spec_.tied = choice.tied;
  spec_.has_head = choice.unembed >= 0;
  if (choice.embed >= 0)
    take(Role::embed, choice.embed);
  else
    fill(Role::embed, kNoLayer);  // says that it is missing
  if (choice.unembed >= 0) take(Role::unembed, choice.unembed);
  return choice.warning;
}

std::vector<std::string> RoleAssignment::finish(std::vector<std::string>& obstacles) const {
  for (const auto& [key, group] : groups_)
    obstacles.push_back(group.more == 0
                            ? group.sentence
                            : fmt::format("{} (and the same in {} more layer{})", group.sentence,
                                          group.more, group.more == 1 ? "" : "s"));
  std::vector<std::string> unused;
  for (std::size_t i = 0; i < used_.size(); ++i) {
    const std::string& name = checkpoint_.tensors()[i].name;
    if (!used_[i] && !is_ignored_name(name) && !checkpoint_.is_scale(static_cast<int>(i)))
      unused.push_back(name);
  }
  return unused;
}

std::string unexpected_tensors(const std::vector<std::string>& names) {
  return fmt::format("{} unexpected tensor{}: {}", names.size(), names.size() == 1 ? "" : "s",
                     listed(names));
}

}  // namespace sinkscope
