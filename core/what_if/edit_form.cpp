// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/what_if/edit_form.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace sinkscope {
namespace {

using Kind = EditField::Kind;

std::string names_text(const NameList& names) {
  return names.empty() ? "all" : fmt::format("{}", fmt::join(names, ","));
}

NameList names_of(const std::string& text) {
  NameList names;
  std::string name;
  for (const char c : text + ",") {
    if (c == ' ') continue;
    if (c != ',') {
      name += c;
    } else if (!name.empty()) {
      names.push_back(name);
      name.clear();
    }
  }
  return names == NameList{"all"} ? NameList() : names;
}

// The fields of every edit are listed once (fields_of below) and visited by a lister and a setter.
class Lister {
 public:
  void number(const char* key, const char* label, double value, double low, double high,
              bool is_log = false) {
    EditField& field = add(key, label, Kind::number);
    field.number = value;
    field.low = low;
    field.high = high;
    field.is_log = is_log;
  }
  template <class Enum>
  void choice(const char* key, const char* label, Enum value, std::vector<std::string> names) {
    EditField& field = add(key, label, Kind::choice);
    field.text = names[static_cast<std::size_t>(value)];
    field.choices = std::move(names);
  }
  void toggle(const char* key, const char* label, bool value) {
    add(key, label, Kind::toggle).is_on = value;
  }
  void text(const char* key, const char* label, const std::string& value) {
    add(key, label, Kind::text).text = value;
  }
  void indices(const char* key, const IndexSet& value) { text(key, key, value.text()); }
  void tokens(const TokenSet& value) { text("tokens", "tokens", value.text()); }
  void names(const char* key, const NameList& value) { text(key, key, names_text(value)); }
  std::vector<EditField> take() { return std::move(fields_); }

 private:
  EditField& add(const char* key, const char* label, Kind kind) {
    EditField field;
    field.key = key;
    field.label = label;
    field.kind = kind;
    fields_.push_back(std::move(field));
    return fields_.back();
  }
  std::vector<EditField> fields_;
};

class Setter {
 public:
  Setter(std::string key, const EditValue& value) : key_(std::move(key)), value_(value) {}

  void number(const char* key, const char* /*label*/, double& value, double, double,
              bool /*is_log*/ = false) {
    if (is(key)) value = get<double>("a number");
  }
  template <class Enum>
  void choice(const char* key, const char* /*label*/, Enum& value,
              const std::vector<std::string>& names) {
    if (!is(key)) return;
    const auto& name = get<std::string>("a name");
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] != name) continue;
      value = static_cast<Enum>(i);
      return;
    }
    refuse(fmt::format("one of {}", fmt::join(names, ", ")), name);
  }
  void toggle(const char* key, const char* /*label*/, bool& value) {
    if (is(key)) value = get<bool>("a switch");
  }
  void text(const char* key, const char* /*label*/, std::string& value) {
    if (is(key)) value = get<std::string>("a text");
  }
  void indices(const char* key, IndexSet& value) {
    if (is(key)) value = IndexSet::parse(key, get<std::string>("a text"));
  }
  void tokens(TokenSet& value) {
    if (is("tokens")) value = TokenSet::parse(get<std::string>("a text"));
  }
  void names(const char* key, NameList& value) {
    if (is(key)) value = names_of(get<std::string>("a text"));
  }
  void finish() const {
    if (!is_found_) refuse("a field of this edit", key_);
  }

 private:
  bool is(const char* key) {
    if (key_ != key) return false;
    is_found_ = true;
    return true;
  }
  template <class T>
  const T& get(const char* expected) const {
    const T* value = std::get_if<T>(&value_);
    if (value == nullptr) refuse(expected, "another kind of value");
    return *value;
  }
  [[noreturn]] void refuse(const std::string& expected, const std::string& found) const {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: expected {}, found {}", key_, expected, found));
  }

  std::string key_;
  const EditValue& value_;
  bool is_found_ = false;
};

template <class Enum>
std::vector<std::string> names_up_to(Enum last) {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(last); ++i)
    names.emplace_back(name_of(static_cast<Enum>(i)));
  return names;
}

template <class V>
void fields_of(V& v, ResidualClip& e) {
  v.number("limit", "limit", e.limit, 1, 1e5, true);
  v.names("sites", e.sites);
  v.indices("layers", e.layers);
  v.tokens(e.tokens);
}
template <class V>
void fields_of(V& v, ResidualSet& e) {
  v.choice("how", "set to", e.how, {"value", "mean", "scale"});
  if (e.how == ResidualSet::How::value) v.number("value", "value", e.number, -1000, 1000);
  if (e.how == ResidualSet::How::scale) v.number("scale", "scale", e.number, 0, 2);
  v.indices("dims", e.dims);
  v.tokens(e.tokens);
  v.names("sites", e.sites);
  v.indices("layers", e.layers);
}
template <class V>
void fields_of(V& v, NormProbe& e) {
  v.choice("mode", "mode", e.mode, names_up_to(ProbeMode::remove_const));
  if (e.mode == ProbeMode::clamp) v.number("tau", "τ", e.tau, 0.1, 100, true);
  v.indices("dims", e.dims);
  v.tokens(e.tokens);
  v.names("norms", e.norms);
  v.indices("layers", e.layers);
}
template <class V>
void fields_of(V& v, NormReplace& e) {
  using With = NormReplace::With;
  v.choice("with", "with", e.with, names_up_to(With::preaffine));
  const bool is_gate = e.with == With::gatednorm || e.with == With::tensor_gate;
  if (is_gate || e.with == With::preaffine) v.text("weights", "weights", e.weights);
  if (is_gate && e.weights.empty()) {
    bool is_paper = e.start == "paper";
    v.choice("start", "start", is_paper, {"identity", "paper"});
    e.start = is_paper ? "paper" : "identity";
  }
  if (is_of_dims(e)) {
    v.number("lambda", "λ₁", e.lambda, 0.01, 100, true);
    v.indices("dims", e.dims);
  }
  v.names("norms", e.norms);
  v.indices("layers", e.layers);
}
template <class V>
void fields_of(V& v, AttentionNormalizer& e) {
  v.choice("kind", "kind", e.normalizer.kind, names_up_to(NormalizerKind::sigmoid));
  if (e.normalizer.kind == NormalizerKind::sink_logit) {
    v.toggle("checkpoint", "b of the checkpoint", e.from_checkpoint);
    if (!e.from_checkpoint && e.sink_logits.empty())
      v.number("b", "sink logit b", e.normalizer.sink_logit, -20, 20);
  }
  if (e.normalizer.kind == NormalizerKind::clipped) {
    v.number("gamma", "γ", e.normalizer.gamma, -0.5, 0);
    v.number("zeta", "ζ", e.normalizer.zeta, 1, 1.5);
  }
  v.indices("layers", e.layers);
  v.indices("heads", e.heads);
}
template <class V>
void fields_of(V& v, AttentionMaskKey& e) {
  v.indices("keys", e.keys);
  v.toggle("renormalize", "renormalize", e.renormalize);
  v.indices("layers", e.layers);
  v.indices("heads", e.heads);
}
template <class V>
void fields_of(V& v, AttentionValue& e) {
  v.number("scale", "scale", e.scale, 0, 2);
  v.tokens(e.tokens);
  v.indices("layers", e.layers);
  v.indices("heads", e.heads);
}
template <class V>
void fields_of(V& v, AttentionGate& e) {
  if (e.weights.empty()) v.number("value", "gate", e.value, 0, 1);
  v.text("weights", "weights", e.weights);
  v.indices("layers", e.layers);
  v.indices("heads", e.heads);
}
template <class V>
void fields_of(V& v, MlpActivation& e) {
  v.choice("kind", "kind", e.kind, names_up_to(MlpActivation::Kind::relu));
  v.indices("layers", e.layers);
}

// What a new choice needs to make sense at once.
void complete(NormProbe& e) {
  if (e.mode == ProbeMode::clamp && !(e.tau > 0)) e.tau = 3;
}
template <class Any>
void complete(Any& /*edit*/) {}

}  // namespace

std::vector<EditField> edit_fields(const Edit& edit) {
  Lister lister;
  std::visit([&](auto copy) { fields_of(lister, copy); }, edit);
  return lister.take();
}

Edit with_field(const Edit& edit, const std::string& key, const EditValue& value) {
  Setter setter(key, value);
  Edit changed = std::visit(
      [&](auto copy) {
        fields_of(setter, copy);
        complete(copy);
        return Edit(std::move(copy));
      },
      edit);
  setter.finish();
  if (const double* number = std::get_if<double>(&value); number != nullptr)
    if (!std::isfinite(*number))
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("{}: expected a finite number, found {}", key, *number));
  // Through the JSON form, which checks it and drops what no longer matters.
  return edit_from_json(nlohmann::json::parse(edit_json(changed).dump()));
}

}  // namespace sinkscope
