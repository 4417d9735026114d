// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/h5/handle.h"

namespace sinkscope::h5 {

// Texts of a file, taken out of its global heap without HDF5, whose reader (1.10) trusts the
// numbers of an object in the heap and crashes on a damaged one. Source: HDF5 File Format
// Specification 3.0, III.E (global heap), IV.A.1.a and IV.A.2.m (object header version 1, attribute
// message).
class TextHeap {
 public:
  // As a variable-length text is stored: length (4 bytes), collection address (8), index (4).
  using Reference = std::array<unsigned char, 16>;

  // Of the file that `object` belongs to, which must outlive this. Error{unsupported} for a file
  // with a user block or addresses that are not 8 bytes long.
  TextHeap(const Handle& object, std::string where);

  // Error{corrupt}.
  std::string text(const Reference& reference);
  // n references that lie one after the other in the file. Error{corrupt}.
  std::vector<std::string> texts(std::int64_t offset, std::int64_t n);

  // The reference that a scalar text attribute holds; nullopt where the object's header is of
  // another version than 1 (files of other programs). Error{corrupt}.
  std::optional<Reference> attribute(const Handle& object, const std::string& name);

 private:
  struct Object {
    std::int64_t index, begin, size;
  };
  struct Collection {
    std::vector<unsigned char> bytes;
    std::vector<Object> objects;  // by index
    const Object* find(std::int64_t index) const;
  };

  std::vector<unsigned char> bytes(std::int64_t offset, std::int64_t n);
  const Collection& collection(std::int64_t address);
  [[noreturn]] void corrupt(const std::string& what) const;

  std::string where_;
  int descriptor_ = -1;
  std::int64_t file_size_ = 0;
  std::int64_t left_to_read_ = 0;  // against files that make every text a journey through them
  std::map<std::int64_t, Collection> recent_;
};

}  // namespace sinkscope::h5
