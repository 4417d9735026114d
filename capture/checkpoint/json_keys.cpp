// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/json_keys.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "capture/checkpoint/printable.h"
#include "core/error.h"

namespace sinkscope {

const nlohmann::json* JsonKeys::value(const std::string& key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void JsonKeys::refuse(const std::string& key, const std::string& expected) const {
  throw Error(ErrorKind::corrupt, fmt::format("{}: {}{} is {}, expected {}", where_, prefix_, key,
                                              printable(object_.at(key).dump()), expected));
}

std::int64_t JsonKeys::whole_of(const nlohmann::json& found, const std::string& key,
                                std::int64_t lowest, std::int64_t highest) const {
  const std::string expected = fmt::format("a whole number from {} to {}", lowest, highest);
  if (!found.is_number()) refuse(key, expected);
  if (found.is_number_unsigned() &&
      found.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    refuse(key, expected);
  }
  // Some writers store counts as 4096.0.
  const double as_real = found.get<double>();
  if (as_real != std::floor(as_real) || std::abs(as_real) > 0x1p62) refuse(key, expected);
  const auto whole = found.get<std::int64_t>();
  if (whole < lowest || whole > highest) refuse(key, expected);
  return whole;
}

std::optional<std::int64_t> JsonKeys::whole(const std::string& key, std::int64_t lowest,
                                            std::int64_t highest) const {
  const nlohmann::json* found = value(key);
  if (found == nullptr) return std::nullopt;
  return whole_of(*found, key, lowest, highest);
}

std::optional<std::int64_t> JsonKeys::first_whole(const std::string& key, std::int64_t lowest,
                                                  std::int64_t highest) const {
  const nlohmann::json* found = value(key);
  if (found == nullptr || (found->is_array() && found->empty())) return std::nullopt;
  return whole_of(found->is_array() ? found->front() : *found, key, lowest, highest);
}

std::optional<double> JsonKeys::number(const std::string& key) const {
  const nlohmann::json* found = value(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number() || !std::isfinite(found->get<double>())) refuse(key, "a number");
  return found->get<double>();
}

std::optional<bool> JsonKeys::boolean(const std::string& key) const {
  const nlohmann::json* found = value(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_boolean()) refuse(key, "true or false");
  return found->get<bool>();
}

std::optional<std::string> JsonKeys::text(const std::string& key) const {
  const nlohmann::json* found = value(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_string()) refuse(key, "text");
  return found->get<std::string>();
}

std::optional<std::vector<std::string>> JsonKeys::texts(const std::string& key) const {
  const nlohmann::json* found = value(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_array()) refuse(key, "a list of texts");
  std::vector<std::string> all;
  for (const nlohmann::json& item : *found) {
    if (!item.is_string()) refuse(key, "a list of texts");
    all.push_back(item.get<std::string>());
  }
  return all;
}

std::optional<std::vector<double>> JsonKeys::numbers(const std::string& key) const {
  const nlohmann::json* found = value(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_array()) refuse(key, "a list of numbers");
  std::vector<double> all;
  for (const nlohmann::json& item : *found) {
    if (!item.is_number() || !std::isfinite(item.get<double>())) refuse(key, "a list of numbers");
    all.push_back(item.get<double>());
  }
  return all;
}

const nlohmann::json* JsonKeys::object(const std::string& key) const {
  const nlohmann::json* found = value(key);
  if (found != nullptr && !found->is_object()) refuse(key, "an object");
  return found;
}

}  // namespace sinkscope
