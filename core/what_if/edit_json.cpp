// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/what_if/edit.h"

namespace sinkscope {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorKind::invalid_argument, message);
}

// The fields of every edit are listed once (fields_of below) and visited by a writer and a reader.
class Writer {
 public:
  explicit Writer(const std::string& edit) { json_["edit"] = edit; }

  template <class T>
  void need(const char* key, const T& value) {
    json_[key] = to_json(value);
  }
  template <class T>
  void may(const char* key, const T& value, const T& fallback) {
    if (!(value == fallback)) json_[key] = to_json(value);
  }
  template <class Enum>
  void one_of(const char* key, const Enum& value, int /*n*/) {
    json_[key] = name_of(value);
  }
  void how(ResidualSet& edit) {
    if (edit.how == ResidualSet::How::mean)
      json_["value"] = "mean";
    else
      json_[edit.how == ResidualSet::How::scale ? "scale" : "value"] = edit.number;
  }
  void sinks(AttentionNormalizer& edit) {
    if (edit.normalizer.kind != NormalizerKind::sink_logit) return;
    if (edit.from_checkpoint)
      json_["b"] = "checkpoint";
    else if (!edit.sink_logits.empty())
      json_["b"] = edit.sink_logits;
    else
      json_["b"] = edit.normalizer.sink_logit;
  }
  OrderedJson take() { return std::move(json_); }

 private:
  static OrderedJson to_json(const IndexSet& set) {
    return set.members().size() > 16 || set.is_all() ? OrderedJson(set.text())
                                                     : OrderedJson(set.members());
  }
  static OrderedJson to_json(const TokenSet& set) { return set.text(); }
  static OrderedJson to_json(const NameList& names) { return names; }
  static OrderedJson to_json(double value) { return value; }
  static OrderedJson to_json(int value) { return value; }
  static OrderedJson to_json(bool value) { return value; }
  static OrderedJson to_json(const std::string& value) { return value; }

  OrderedJson json_;
};

class Reader {
 public:
  Reader(const Json& json, std::string edit) : json_(json), edit_(std::move(edit)) {
    used_.insert("edit");
  }

  template <class T>
  void need(const char* key, T& value) {
    if (!json_.contains(key))
      refuse(fmt::format("{}: expected \"{}\", which is missing", edit_, key));
    read(key, value);
  }
  template <class T>
  void may(const char* key, T& value, const T& fallback) {
    value = fallback;
    known_.insert(key);
    if (json_.contains(key)) read(key, value);
  }
  template <class Enum>
  void one_of(const char* key, Enum& value, int n) {
    std::string name;
    need(key, name);
    std::vector<std::string> names;
    for (int i = 0; i < n; ++i) {
      names.emplace_back(name_of(static_cast<Enum>(i)));
      if (name != names.back()) continue;
      value = static_cast<Enum>(i);
      return;
    }
    refuse(fmt::format("{}: \"{}\": expected one of {}, found '{}'", edit_, key,
                       fmt::join(names, " "), name));
  }
  void how(ResidualSet& edit) {
    const bool has_value = json_.contains("value");
    if (has_value == json_.contains("scale"))
      refuse(fmt::format("{}: expected either \"value\" or \"scale\"", edit_));
    const char* key = has_value ? "value" : "scale";
    used_.insert(key);
    edit.how = has_value ? ResidualSet::How::value : ResidualSet::How::scale;
    if (has_value && json_["value"] == "mean")
      edit.how = ResidualSet::How::mean;
    else
      read(key, edit.number);
  }
  void sinks(AttentionNormalizer& edit) {
    if (edit.normalizer.kind != NormalizerKind::sink_logit) return;
    if (!json_.contains("b")) refuse(fmt::format("{}: sink_logit needs \"b\"", edit_));
    const Json& b = json_["b"];
    used_.insert("b");
    if (b == "checkpoint") {
      edit.from_checkpoint = true;
    } else if (b.is_array()) {
      for (const Json& value : b) edit.sink_logits.push_back(finite("b", value));
      if (edit.sink_logits.empty()) refuse(fmt::format("{}: \"b\": the list is empty", edit_));
      // A set of heads is sorted, a list of numbers is not: which number is whose must be plain.
      if (json_.contains("heads") && json_["heads"].is_array()) {
        const std::vector<int> heads = indices("heads");
        if (std::adjacent_find(heads.begin(), heads.end(), std::greater_equal<>()) != heads.end())
          refuse(
              fmt::format("{}: \"heads\": expected ascending heads beside a list \"b\", found {}",
                          edit_, json_["heads"].dump()));
      }
    } else {
      edit.normalizer.sink_logit = finite("b", b);
    }
  }
  void finish() const {
    for (const auto& [key, value] : json_.items())
      if (!used_.contains(key))
        refuse(fmt::format("{}: unknown key \"{}\"; it takes {}", edit_, key,
                           fmt::join(known(), " ")));
  }

 private:
  std::set<std::string> known() const {
    std::set<std::string> keys = known_;
    keys.insert(used_.begin(), used_.end());
    return keys;
  }
  [[noreturn]] void expected(const char* key, const char* what) {
    refuse(fmt::format("{}: \"{}\": expected {}, found {}", edit_, key, what, json_[key].dump()));
  }
  double finite(const char* key, const Json& value) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) expected(key, "a number");
    return value.get<double>();
  }
  void read(const char* key, double& value) {
    used_.insert(key);
    value = finite(key, json_[key]);
  }
  void read(const char* key, int& value) {
    used_.insert(key);
    const Json& json = json_[key];
    if (!json.is_number_integer() || json < 1 || json > 1 << 20) expected(key, "a whole number");
    value = json.get<int>();
  }
  void read(const char* key, bool& value) {
    used_.insert(key);
    if (!json_[key].is_boolean()) expected(key, "true or false");
    value = json_[key].get<bool>();
  }
  void read(const char* key, std::string& value) {
    used_.insert(key);
    if (!json_[key].is_string()) expected(key, "a text");
    value = json_[key].get<std::string>();
  }
  void read(const char* key, NameList& names) {
    used_.insert(key);
    const Json& json = json_[key];
    names.clear();
    if (json == "all") return;
    if (json.is_string()) {
      names.push_back(json.get<std::string>());
      return;
    }
    if (!json.is_array() || json.empty()) expected(key, "\"all\" or a list of names");
    for (const Json& name : json) {
      if (!name.is_string()) expected(key, "\"all\" or a list of names");
      names.push_back(name.get<std::string>());
    }
  }
  std::vector<int> indices(const char* key) {
    std::vector<int> members;
    for (const Json& member : json_[key]) {
      if (!member.is_number_integer() || member < 0 || member > 1 << 24)
        expected(key, "indices from 0 on");
      members.push_back(member.get<int>());
    }
    if (members.empty()) expected(key, "at least one index");
    return members;
  }
  void read(const char* key, IndexSet& set) {
    used_.insert(key);
    const Json& json = json_[key];
    const std::string where = fmt::format("{}: \"{}\"", edit_, key);
    if (json.is_string())
      set = IndexSet::parse(where, json.get<std::string>());
    else if (json.is_array())
      set = IndexSet(indices(key));
    else if (json.is_number_integer() && json >= 0 && json <= 1 << 24)
      set = IndexSet({json.get<int>()});
    else
      expected(key, "\"all\", a list of indices or a range text");
  }
  void read(const char* key, TokenSet& set) {
    used_.insert(key);
    const Json& json = json_[key];
    if (json.is_string()) {
      try {
        set = TokenSet::parse(json.get<std::string>());
      } catch (const Error& error) {
        refuse(fmt::format("{}: \"{}\": {}", edit_, key, error.what()));
      }
      return;
    }
    IndexSet positions;
    read(key, positions);
    set = TokenSet(positions);
  }

  const Json& json_;
  std::string edit_;
  std::set<std::string> used_, known_;  // keys that were there; keys that may be left out
};

template <class V>
void fields_of(V& v, ResidualClip& e) {
  v.need("limit", e.limit);
  v.may("sites", e.sites, {});
  v.may("layers", e.layers, {});
  v.may("tokens", e.tokens, {});
}
template <class V>
void fields_of(V& v, ResidualSet& e) {
  v.how(e);
  v.may("dims", e.dims, {});
  v.may("tokens", e.tokens, {});
  v.may("sites", e.sites, {});
  v.may("layers", e.layers, {});
}
template <class V>
void fields_of(V& v, NormProbe& e) {
  v.one_of("mode", e.mode, 7);
  if (e.mode == ProbeMode::clamp) v.need("tau", e.tau);
  v.may("dims", e.dims, {});
  v.may("tokens", e.tokens, {});
  v.may("norms", e.norms, {});
  v.may("layers", e.layers, {});
}
template <class V>
void fields_of(V& v, NormReplace& e) {
  using With = NormReplace::With;
  v.one_of("with", e.with, 8);
  const bool is_gate = e.with == With::gatednorm || e.with == With::tensor_gate;
  if (is_gate || e.with == With::preaffine) v.may("weights", e.weights, {});
  if (is_gate && e.weights.empty()) {
    v.may("start", e.start, std::string("identity"));
    v.may("rank", e.rank, 16);
  }
  if (is_of_dims(e)) {
    v.may("lambda", e.lambda, 1.0);
    v.may("dims", e.dims, {});
  }
  v.may("norms", e.norms, {});
  v.may("layers", e.layers, {});
}
template <class V>
void fields_of(V& v, AttentionNormalizer& e) {
  v.one_of("kind", e.normalizer.kind, static_cast<int>(normalizers().size()));
  v.sinks(e);
  if (e.normalizer.kind == NormalizerKind::clipped) {
    v.need("gamma", e.normalizer.gamma);
    v.may("zeta", e.normalizer.zeta, 1.0);
  }
  v.may("layers", e.layers, {});
  v.may("heads", e.heads, {});
}
template <class V>
void fields_of(V& v, AttentionMaskKey& e) {
  v.need("keys", e.keys);
  v.may("renormalize", e.renormalize, true);
  v.may("layers", e.layers, {});
  v.may("heads", e.heads, {});
}
template <class V>
void fields_of(V& v, AttentionValue& e) {
  v.need("scale", e.scale);
  v.may("tokens", e.tokens, {});
  v.may("layers", e.layers, {});
  v.may("heads", e.heads, {});
}
template <class V>
void fields_of(V& v, AttentionGate& e) {
  v.may("weights", e.weights, {});
  if (e.weights.empty()) v.need("value", e.value);
  v.may("layers", e.layers, {});
  v.may("heads", e.heads, {});
}
template <class V>
void fields_of(V& v, MlpActivation& e) {
  v.one_of("kind", e.kind, 4);
  v.may("layers", e.layers, {});
}

// Ranges of values that no key alone decides.
void check(const ResidualClip& e) {
  if (!(e.limit > 0))
    refuse(fmt::format("residual.clip: expected a limit above 0, found {}", e.limit));
}
void check(const NormProbe& e) {
  if (e.dims.is_all())
    refuse("norm.probe: \"dims\": expected the probed dimensions, found all of them");
  if (e.mode == ProbeMode::clamp && !(e.tau > 0))
    refuse(fmt::format("norm.probe: \"tau\": expected a number above 0, found {}", e.tau));
}
void check(const NormReplace& e) {
  if (e.start != "identity" && e.start != "paper")
    refuse(fmt::format("norm.replace: \"start\": expected identity or paper, found '{}'", e.start));
}
void check(const AttentionNormalizer& e) {
  if (e.normalizer.kind == NormalizerKind::clipped) normalize(e.normalizer, {});
  if (!e.sink_logits.empty() && !e.heads.is_all() &&
      e.sink_logits.size() != e.heads.members().size())
    refuse(
        fmt::format("attention.normalizer: \"b\": expected one number for each of {} heads, "
                    "found {}",
                    e.heads.members().size(), e.sink_logits.size()));
}
void check(const AttentionMaskKey& e) {
  if (e.keys.is_all())
    refuse("attention.mask_key: \"keys\": expected some keys, found all of them");
}
template <class Any>
void check(const Any& /*edit*/) {}

template <std::size_t index = 0>
Edit read_alternative(const std::string& name, const Json& json) {
  if constexpr (index == std::variant_size_v<Edit>) {
    refuse(fmt::format("an edit: unknown name '{}'", name));
  } else {
    std::variant_alternative_t<index, Edit> edit;
    if (name != name_of(Edit(edit))) return read_alternative<index + 1>(name, json);
    Reader reader(json, name);
    fields_of(reader, edit);
    reader.finish();
    check(edit);
    return edit;
  }
}

}  // namespace

nlohmann::ordered_json edit_json(const Edit& edit) {
  Writer writer(name_of(edit));
  std::visit([&](auto copy) { fields_of(writer, copy); }, edit);
  return writer.take();
}

Edit edit_from_json(const nlohmann::json& json) {
  if (!json.is_object() || !json.contains("edit") || !json["edit"].is_string())
    refuse(
        fmt::format("an edit: expected an object like {{\"edit\":\"residual.clip\",…}}, found {}",
                    json.dump().substr(0, 80)));
  return read_alternative(json["edit"].get<std::string>(), json);
}

}  // namespace sinkscope
