// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/spec_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "capture/checkpoint/printable.h"
#include "capture/checkpoint/spec_fields.h"
#include "core/error.h"

namespace sinkscope {
namespace {

using Json = nlohmann::json;
using Ordered = nlohmann::ordered_json;

class SpecWriter {
 public:
  template <class T>
  void field(const char* name, const T& value) {
    json[name] = value;
  }
  void field(const char* name, const std::optional<double>& value) {
    json[name] = value ? Ordered(*value) : Ordered(nullptr);
  }
  template <class E, class N>
  void choice(const char* name, E value, const N& names) {
    json[name] = names[static_cast<std::size_t>(value)];
  }
  template <class E, class N>
  void choices(const char* name, const std::vector<E>& values, const N& names) {
    json[name] = Ordered::array();
    for (const E value : values) json[name].push_back(names[static_cast<std::size_t>(value)]);
  }
  template <class S, class F>
  void group(const char* name, const S& object, const F& f) {
    SpecWriter inner;
    f(object, inner);
    json[name] = std::move(inner.json);
  }
  template <class S, class F>
  void groups(const char* name, const std::vector<S>& objects, const F& f) {
    json[name] = Ordered::array();
    for (const S& object : objects) {
      SpecWriter inner;
      f(object, inner);
      json[name].push_back(std::move(inner.json));
    }
  }
  Ordered json = Ordered::object();
};

// Takes the fields that are there; finish() refuses those that nobody asked for.
class SpecReader {
 public:
  SpecReader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json_.is_object()) throw Error(ErrorKind::corrupt, where_ + ": expected an object");
  }

  template <class T>
  void field(const char* name, T& value) {
    if (const Json* found = find(name)) read(*found, name, value);
  }
  template <class E, class N>
  void choice(const char* name, E& value, const N& names) {
    if (const Json* found = find(name)) value = chosen<E>(*found, name, names);
  }
  template <class E, class N>
  void choices(const char* name, std::vector<E>& values, const N& names) {
    const Json* found = find(name);
    if (found == nullptr) return;
    values.clear();
    for (const Json& item : list(*found, name)) values.push_back(chosen<E>(item, name, names));
  }
  template <class S, class F>
  void group(const char* name, S& object, const F& f) {
    const Json* found = find(name);
    if (found == nullptr) return;
    SpecReader inner(*found, where_ + "." + name);
    f(object, inner);
    inner.finish();
  }
  template <class S, class F>
  void groups(const char* name, std::vector<S>& objects, const F& f) {
    const Json* found = find(name);
    if (found == nullptr) return;
    objects.clear();
    for (const Json& item : list(*found, name)) {
      SpecReader inner(item, where_ + "." + name);
      f(objects.emplace_back(), inner);
      inner.finish();
    }
  }
  void finish() const {
    for (const auto& [name, value] : json_.items())
      if (!asked_.contains(name))
        throw Error(ErrorKind::corrupt,
                    fmt::format("{}: no field is called {}", where_, printable(name)));
  }

 private:
  const Json* find(const char* name) {
    asked_.insert(name);
    const auto found = json_.find(name);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  [[noreturn]] void refuse(const Json& value, const char* name, const std::string& expected) const {
    throw Error(ErrorKind::corrupt, fmt::format("{}.{} is {}, expected {}", where_, name,
                                                printable(value.dump()), expected));
  }
  const Json& list(const Json& value, const char* name) const {
    constexpr std::size_t kMost = 1 << 16;
    if (!value.is_array() || value.size() > kMost) refuse(value, name, "a list");
    return value;
  }
  void read(const Json& value, const char* name, int& into) const {
    constexpr std::int64_t kMost = 1 << 26;
    if (!value.is_number_integer() || value.get<double>() < -1 ||
        value.get<double>() > static_cast<double>(kMost))
      refuse(value, name, fmt::format("a whole number from -1 to {}", kMost));
    into = value.get<int>();
  }
  void read(const Json& value, const char* name, double& into) const {
    if (!value.is_number() || !std::isfinite(value.get<double>())) refuse(value, name, "a number");
    into = value.get<double>();
  }
  void read(const Json& value, const char* name, bool& into) const {
    if (!value.is_boolean()) refuse(value, name, "true or false");
    into = value.get<bool>();
  }
  void read(const Json& value, const char* name, std::string& into) const {
    if (!value.is_string()) refuse(value, name, "text");
    into = value.get<std::string>();
  }
  void read(const Json& value, const char* name, std::optional<double>& into) const {
    double number = 0;
    read(value, name, number);
    into = number;
  }
  template <class T>
  void read(const Json& value, const char* name, std::vector<T>& into) const {
    into.clear();
    for (const Json& item : list(value, name)) {
      T one{};
      read(item, name, one);
      into.push_back(one);
    }
  }
  template <class E, class N>
  E chosen(const Json& value, const char* name, const N& names) const {
    const auto found = value.is_string()
                           ? std::find(names.begin(), names.end(), value.get<std::string>())
                           : names.end();
    if (found == names.end()) {
      refuse(value, name, fmt::format("one of {}", fmt::join(names, ", ")));
    }
    return static_cast<E>(found - names.begin());
  }

  const Json& json_;
  std::string where_;
  std::set<std::string> asked_;
};

}  // namespace

nlohmann::ordered_json spec_to_json(const ArchSpec& spec) {
  SpecWriter writer;
  visit_spec(spec, writer);
  return std::move(writer.json);
}

ArchSpec spec_from_json(const nlohmann::json& json, const std::string& where) {
  ArchSpec spec;
  SpecReader reader(json, where + ": spec");
  visit_spec(spec, reader);
  reader.finish();
  return spec;
}

}  // namespace sinkscope
