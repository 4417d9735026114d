// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/arch_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "capture/checkpoint/hf_names.h"
#include "capture/checkpoint/printable.h"
#include "capture/checkpoint/spec_check.h"
#include "capture/checkpoint/spec_json.h"
#include "capture/checkpoint/text_file.h"
#include "core/error.h"

namespace sinkscope {
namespace {

using Json = nlohmann::json;
using Ordered = nlohmann::ordered_json;

constexpr const char* kSchema = "sinkscope.arch/1";

// The word for the open place in a name.
const char* open_word(Packing packing) {
  return packing == Packing::qkv_each ? "{qkv}"
         : packing == Packing::shards ? "{shard}"
                                      : "{expert}";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  if (const auto at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

// What follows from the rest where the file leaves it open, as in the Llama family.
void complete(ArchSpec& spec) {
  if (spec.n_kv_heads < 1) spec.n_kv_heads = spec.n_heads;
  if (spec.head_dim < 1 && spec.n_heads > 0) spec.head_dim = spec.d_model / spec.n_heads;
  constexpr int kMost = 1024;  // a file that asks for more is refused anyway
  const auto n = static_cast<std::size_t>(std::clamp(spec.n_layers, 0, kMost));
  if (spec.window.empty()) spec.window.assign(n, 0);
  if (spec.moe.n_experts > 0 && spec.moe_layers.empty()) spec.moe_layers.assign(n, true);
}

Role role_named(const std::string& name, const std::string& where) {
  for (int index = 0; index <= static_cast<int>(Role::last); ++index)
    if (name == to_string(static_cast<Role>(index))) return static_cast<Role>(index);
  throw Error(ErrorKind::corrupt, fmt::format("{}: no role is called {}", where, printable(name)));
}

Packing packing_of(const Json& packings, Role role, const ArchSpec& spec,
                   const std::string& where) {
  const auto found = packings.find(to_string(role));
  if (found == packings.end()) return Packing::own;
  const auto packing =
      found->is_string() ? packing_named(found->get<std::string>()) : std::optional<Packing>();
  if (!packing)
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: no packing is called {}", where, printable(found->dump())));
  if (!can_pack(*packing, role, spec))
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: {} cannot be packed as {} with these sizes", where,
                            to_string(role), to_string(*packing)));
  return *packing;
}

// Numbers that are words of a name stand open: "layers.3.experts.0.w1" is
// "layers.{layer}.experts.{expert}.w1".
std::string pattern_of(const std::string& name) {
  std::string pattern;
  int n_numbers = 0;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string word = name.substr(begin, end - begin);
    const bool is_number =
        !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
    if (is_number) ++n_numbers;
    pattern += (begin == 0 ? "" : ".") + (!is_number       ? word
                                          : n_numbers == 1 ? std::string("{layer}")
                                                           : "{expert}");
    begin = end + 1;
  }
  return pattern;
}

class RoleWriter {
 public:
  explicit RoleWriter(const ModelFiles& model) : model_(model) {
    for (int index = 0; index <= static_cast<int>(Role::last); ++index)
      add(static_cast<Role>(index));
  }

  // Patterns of tensors that play no role.
  Ordered unmapped() const {
    std::set<std::string> patterns;
    int index = 0;
    for (const TensorInfo& tensor : model_.checkpoint().tensors()) {
      const bool is_scale = model_.checkpoint().is_scale(index++);
      if (!is_scale && !is_ignored_name(tensor.name) && !used_.contains(pattern_of(tensor.name)))
        patterns.insert(pattern_of(tensor.name));
    }
    return Ordered(patterns);
  }

  Ordered roles = Ordered::object(), packing = Ordered::object();
  double stored_offset = 0;

 private:
  void add(Role role) {
    if (!is_layer_role(role)) {
      if (model_.has(role, kNoLayer)) roles[to_string(role)] = name_of(role, kNoLayer);
      return;
    }
    Ordered layers = Ordered::array();
    bool is_filled = false;
    for (int layer = 0; layer < model_.spec().n_layers; ++layer) {
      const bool has = model_.has(role, layer);
      layers.push_back(has ? Ordered(name_of(role, layer)) : Ordered(nullptr));
      is_filled = is_filled || has;
    }
    if (is_filled) roles[to_string(role)] = std::move(layers);
  }

  std::string name_of(Role role, int layer) {
    if (is_norm_gain(role) && role != Role::delta_norm)
      stored_offset = model_.stored_offset(role, layer);
    const StoredAs stored = model_.stored_as(role, layer);
    if (stored.packing != Packing::own) packing[to_string(role)] = to_string(stored.packing);
    for (const char* open : {"0", "q", "k", "v"})
      used_.insert(pattern_of(replaced(stored.name, "{}", open)));
    for (int shard = 1; stored.packing == Packing::shards && shard < model_.spec().ngram.n_shards;
         ++shard)
      used_.insert(pattern_of(replaced(stored.name, "{}", std::to_string(shard))));
    return replaced(stored.name, "{}", open_word(stored.packing));
  }

  const ModelFiles& model_;
  std::set<std::string> used_;
};

}  // namespace

nlohmann::ordered_json arch_json(const ArchSpec& spec, const nlohmann::ordered_json& roles) {
  return Ordered{
      {"schema", kSchema},
      {"conventions",
       {{"roles", "tensor names; a list has one entry a block, null where it has none"},
        {"packing", "how a role lies in a tensor that it shares, or that has another shape"},
        {"window", "keys a query sees, its own included; 0 = all before it"}}},
      {"spec", spec_to_json(spec)},
      {"roles", roles}};
}

nlohmann::ordered_json arch_to_json(const ModelFiles& model) {
  RoleWriter writer(model);
  Ordered json = arch_json(model.spec(), writer.roles);
  json["packing"] = writer.packing;
  if (writer.stored_offset != 0) json["stored_offset"] = writer.stored_offset;
  json["unmapped"] = writer.unmapped();
  return json;
}

ArchFile::ArchFile(const std::string& path, bool is_asked_for)
    : asked_for_(is_asked_for ? path : "") {
  const Json document = parse_json_file(path);
  if (!document.is_object() || document.value("schema", Json()) != kSchema)
    throw Error(ErrorKind::corrupt, fmt::format("{}: expected a JSON object with schema \"{}\", as "
                                                "info MODEL --arch-json writes it",
                                                path, kSchema));
  spec_ = spec_from_json(document.value("spec", Json()), path);
  complete(spec_);
  if (const std::string problem = contradiction(spec_); !problem.empty())
    throw Error(ErrorKind::invalid_argument, path + ": spec: " + problem);
  const Json roles = document.value("roles", Json::object());
  const Json packings = document.value("packing", Json::object());
  if (!roles.is_object() || !packings.is_object())
    throw Error(ErrorKind::corrupt, path + ": roles and packing are not objects");
  for (const auto& [name, ignored] : packings.items())
    if (!roles.contains(name))
      throw Error(ErrorKind::corrupt,
                  fmt::format("{}: packing names {}, roles do not", path, printable(name)));
  for (const auto& [name, names] : roles.items()) {
    const Role role = role_named(name, path);
    add_role(role, names, packing_of(packings, role, spec_, path), path);
  }
  family_.model_type = "";
  family_.prefix = "";
  family_.is_complete = true;
  const Json offset = document.value("stored_offset", Json(0));
  if (offset != 0 && offset != 1)
    throw Error(ErrorKind::corrupt, fmt::format("{}: stored_offset is {}, expected 0 or 1", path,
                                                printable(offset.dump())));
  family_.stored_offset = offset.get<float>();
  family_.names = names_;
}

void ArchFile::describe(HfConfig& config) const {
  const int bos = config.spec.bos_id, eos = config.spec.eos_id;
  config.spec = spec_;
  if (spec_.bos_id < 0) config.spec.bos_id = bos;
  if (spec_.eos_id < 0) config.spec.eos_id = eos;
  config.family = &family_;
  config.is_known_family = true;
  config.is_wrapped = false;
  config.tied = spec_.tied;
  config.obstacles.clear();
  config.warnings.clear();
}

void ArchFile::add_role(Role role, const nlohmann::json& names, Packing packing,
                        const std::string& where) {
  if (!names.is_array()) {
    add_name(role, names, packing, kNoLayer, where);
    return;
  }
  if (!is_layer_role(role) || static_cast<int>(names.size()) != spec_.n_layers)
    throw Error(
        ErrorKind::corrupt,
        fmt::format("{}: roles.{}: expected {}, found a list of {}", where, to_string(role),
                    is_layer_role(role) ? fmt::format("one name a block ({})", spec_.n_layers)
                                        : std::string("one name"),
                    names.size()));
  for (int layer = 0; layer < spec_.n_layers; ++layer)
    add_name(role, names[static_cast<std::size_t>(layer)], packing, layer, where);
}

void ArchFile::add_name(Role role, const nlohmann::json& name, Packing packing, int layer,
                        const std::string& where) {
  if (name.is_null()) return;
  if (!name.is_string())
    throw Error(ErrorKind::corrupt, fmt::format("{}: roles.{}: {} is no tensor name", where,
                                                to_string(role), printable(name.dump())));
  texts_.push_back(replaced(name.get<std::string>(), open_word(packing), "{}"));
  names_.push_back({role, texts_.back().c_str(), packing, layer});
}

}  // namespace sinkscope
