// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "capture/checkpoint/checkpoint.h"

namespace sinkscope {

// A metadata value of a GGUF file. Integers of every width come as int64 (u64 beyond int64 is
// refused), floats as double. Arrays are homogeneous; arrays of arrays are refused.
using GgufValue =
    std::variant<bool, std::int64_t, double, std::string, std::vector<bool>,
                 std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>>;

// A GGUF file, v2 or v3, little-endian, single or split (part 1 pulls in the others).
// Everything in the header is checked against the file's size before it is believed.
class GgufFile : public Checkpoint {
 public:
  // Throws Error: not_found (also a missing part), corrupt (naming key or tensor), unsupported
  // (version, byte order); invalid_argument for another part than the first, naming the first.
  static std::unique_ptr<GgufFile> open(const std::string& path);

  // Null when the key is absent.
  virtual const GgufValue* find_key(const std::string& key) const = 0;
  virtual const std::vector<std::string>& keys() const = 0;  // in file order

  // Typed access; nullopt / nullptr when absent, Error{corrupt} naming the key when of another
  // type.
  std::optional<std::int64_t> integer(const std::string& key) const;
  std::optional<double> number(const std::string& key) const;  // accepts integers
  std::optional<bool> boolean(const std::string& key) const;
  std::optional<std::string> text(const std::string& key) const;
  const std::vector<std::string>* texts(const std::string& key) const;
  const std::vector<std::int64_t>* integers(const std::string& key) const;
  const std::vector<double>* numbers(const std::string& key) const;
};

// True when the first bytes are those of a GGUF file.
bool looks_like_gguf(const std::string& path);

}  // namespace sinkscope
