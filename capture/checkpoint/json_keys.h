// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sinkscope {

// Typed look at the keys of one JSON object. A key that is absent or null is nullopt; one of
// another type, or a number out of range, is Error{corrupt} naming file, key and value.
class JsonKeys {
 public:
  // `prefix` comes before the key in messages, e.g. "rope_scaling.". The object must outlive this.
  JsonKeys(const nlohmann::json& object, std::string where, std::string prefix = "")
      : object_(object), where_(std::move(where)), prefix_(std::move(prefix)) {}
  JsonKeys(nlohmann::json&&, std::string, std::string = "") = delete;

  bool has(const std::string& key) const { return value(key) != nullptr; }
  bool is_null(const std::string& key) const {  // there, and null
    return value(key) == nullptr && object_.contains(key);
  }
  bool says(const std::string& key, const nlohmann::json& what) const {
    return value(key) != nullptr && *value(key) == what;
  }
  std::optional<std::int64_t> whole(const std::string& key, std::int64_t lowest,
                                    std::int64_t highest) const;
  std::optional<double> number(const std::string& key) const;  // finite
  std::optional<bool> boolean(const std::string& key) const;
  std::optional<std::string> text(const std::string& key) const;
  std::optional<std::vector<std::string>> texts(const std::string& key) const;
  std::optional<std::vector<double>> numbers(const std::string& key) const;  // finite
  // A number, or the first of a list of them.
  std::optional<std::int64_t> first_whole(const std::string& key, std::int64_t lowest,
                                          std::int64_t highest) const;
  // The object under the key, if there is one.
  const nlohmann::json* object(const std::string& key) const;

 private:
  const nlohmann::json* value(const std::string& key) const;
  [[noreturn]] void refuse(const std::string& key, const std::string& expected) const;
  std::int64_t whole_of(const nlohmann::json& value, const std::string& key, std::int64_t lowest,
                        std::int64_t highest) const;

  const nlohmann::json& object_;
  std::string where_, prefix_;
};

}  // namespace sinkscope
