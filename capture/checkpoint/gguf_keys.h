// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capture/checkpoint/gguf_file.h"

namespace sinkscope {

// The keys `{architecture}.NAME` of a GGUF file, read leniently where writers differ (any integer
// width, one value or one a layer) and strictly otherwise: a key of another type, out of range or
// different from layer to layer is reported to `obstacles` and counts as absent.
class GgufKeys {
 public:
  GgufKeys(const GgufFile& file, std::string architecture, std::vector<std::string>& obstacles)
      : file_(file), architecture_(std::move(architecture)), obstacles_(obstacles) {}

  bool has(const std::string& name) const { return find(name) != nullptr; }

  // A whole number in [least, most]; a list counts when all its entries agree.
  std::optional<int> whole(const std::string& name, int least, int most) const;
  // The same, but the model cannot be understood without it: 0 and an obstacle when absent.
  int required(const std::string& name, int least, int most) const;

  // A finite number. One stored as float32 comes as the double of its shortest decimal (1e-05, not
  // 9.999999747378752e-06), which is what the model's config said and rounds to the same float.
  std::optional<double> number(const std::string& name) const;

  std::optional<std::string> text(const std::string& name) const;
  std::optional<bool> truth(const std::string& name) const;

  // Truth per layer, from a list of booleans or integers; nothing when absent or a single value.
  std::optional<std::vector<bool>> truths(const std::string& name) const;

  std::string full_name(const std::string& name) const { return architecture_ + "." + name; }

 private:
  const GgufValue* find(const std::string& name) const { return file_.find_key(full_name(name)); }
  void object(const std::string& name, const std::string& problem) const;

  const GgufFile& file_;
  std::string architecture_;
  std::vector<std::string>& obstacles_;
};

}  // namespace sinkscope
