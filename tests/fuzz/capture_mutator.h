// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sinkscope::fuzz {

// The bytes of a small capture that every reader understands whole.
std::string base_capture();

// Changes the structure of a valid capture, in a valid HDF5 container in memory: objects and
// attributes go, get other types, shapes, storage or values, or become links. What is fuzzed is
// what a reader makes of it, not the HDF5 library.
class CaptureMutator {
 public:
  // `image`: the bytes of the capture.
  explicit CaptureMutator(std::string image);

  struct Changed {
    std::string path;       // from the root, without "/" in front
    std::string attribute;  // of it; "" for the object itself
  };
  struct Mutated {
    std::string image;
    std::vector<Changed> changed;
  };
  // Every ten bytes of `program` are one change; what HDF5 does not allow is left out.
  Mutated mutate(std::span<const std::uint8_t> program) const;

 private:
  std::string image_;
  std::vector<std::string> objects_;  // all paths, the root as "."
};

}  // namespace sinkscope::fuzz
