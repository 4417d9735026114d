// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/gguf_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "capture/checkpoint/printable.h"

namespace sinkscope {

void GgufKeys::object(const std::string& name, const std::string& problem) const {
  obstacles_.push_back(fmt::format("key \"{}\": {}", printable(full_name(name)), problem));
}

std::optional<int> GgufKeys::whole(const std::string& name, int least, int most) const {
  const GgufValue* value = find(name);
  if (value == nullptr) return std::nullopt;
  std::int64_t number = 0;
  if (const auto* single = std::get_if<std::int64_t>(value)) {
    number = *single;
  } else if (const auto* list = std::get_if<std::vector<std::int64_t>>(value);
             list != nullptr && !list->empty()) {
    number = list->front();
    const GgufValue* blocks = find("block_count");
    const auto* n_layers = blocks == nullptr ? nullptr : std::get_if<std::int64_t>(blocks);
    if (n_layers != nullptr && std::ssize(*list) != *n_layers) {
      object(name, fmt::format("a list of {} entries for {} layers", list->size(), *n_layers));
      return std::nullopt;
    }
    const auto other = std::find_if(list->begin(), list->end(),
                                    [number](std::int64_t entry) { return entry != number; });
    if (other != list->end()) {
      object(name, fmt::format("differs between layers ({} in block 0, {} in block {}), which "
                               "cannot be run",
                               number, *other, other - list->begin()));
      return std::nullopt;
    }
  } else {
    object(name, "expected a whole number");
    return std::nullopt;
  }
  if (number < least || number > most) {
    object(name, fmt::format("is {}, expected {} to {}", number, least, most));
    return std::nullopt;
  }
  return static_cast<int>(number);
}

int GgufKeys::required(const std::string& name, int least, int most) const {
  if (!has(name)) object(name, "is missing");
  return whole(name, least, most).value_or(0);
}

std::optional<double> GgufKeys::number(const std::string& name) const {
  const GgufValue* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* single = std::get_if<std::int64_t>(value)) return static_cast<double>(*single);
  const auto* real = std::get_if<double>(value);
  if (real == nullptr || !std::isfinite(*real)) {
    object(name, "expected a finite number");
    return std::nullopt;
  }
  const bool in_range = std::abs(*real) <= 3.4e38;
  if (!in_range || static_cast<double>(static_cast<float>(*real)) != *real) return *real;
  return std::strtod(fmt::format("{}", static_cast<float>(*real)).c_str(), nullptr);
}

std::optional<std::string> GgufKeys::text(const std::string& name) const {
  const GgufValue* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* words = std::get_if<std::string>(value)) return *words;
  object(name, "expected a text");
  return std::nullopt;
}

std::optional<bool> GgufKeys::truth(const std::string& name) const {
  const GgufValue* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* is_so = std::get_if<bool>(value)) return *is_so;
  object(name, "expected true or false");
  return std::nullopt;
}

std::optional<std::vector<bool>> GgufKeys::truths(const std::string& name) const {
  const GgufValue* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* list = std::get_if<std::vector<bool>>(value)) return *list;
  const auto* numbers = std::get_if<std::vector<std::int64_t>>(value);
  if (numbers == nullptr) return std::nullopt;
  std::vector<bool> list;
  for (const std::int64_t number : *numbers) list.push_back(number != 0);
  return list;
}

}  // namespace sinkscope
