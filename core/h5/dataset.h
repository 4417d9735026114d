// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/element_type.h"
#include "core/h5/box.h"
#include "core/h5/handle.h"

namespace sinkscope::h5 {

// What stands where nothing was written: zeros, or "absent" (NaN, −1), or whatever the file holds
// (for arrays that are always written whole).
enum class Fill { zero, absent, none };

struct DatasetShape {
  ElementType type = ElementType::f32;
  Dims dims;   // empty = scalar
  Dims chunk;  // empty = contiguous
  Fill fill = Fill::absent;
};

// An open dataset. `where` ("FILE: run0/attention/key_mass") begins every message.
// A box is `start` and `count`, one entry a dimension; values are in C order.
class Dataset {
 public:
  Dataset() = default;

  // Contiguous numbers get their place in the file at once (see offset); chunks come into being
  // when they are written. Error{io}.
  static Dataset create(const Handle& parent, const std::string& name, const DatasetShape& shape,
                        std::string where);
  // For writing without a chunk cache: whole chunks pass straight through. Error{io}.
  static Dataset open_for_writing(const Handle& parent, const std::string& path, std::string where);
  // Checks everything that a read relies on: a known type, dimensions that fit, storage inside
  // this file and only there, filters from the standard set. Errors: corrupt, unsupported.
  static Dataset open_for_reading(Handle dataset, std::string where);

  const Dims& dims() const { return dims_; }
  ElementType type() const { return type_; }
  const Handle& handle() const { return handle_; }
  Handle& handle() { return handle_; }

  // Place of a contiguous dataset's first byte in the file; -1 when it has none (chunked, of no
  // elements, or text that was never written).
  std::int64_t offset() const;

  // Converts between float types and between integer types. Error{io}.
  void write(const Dims& start, const Dims& count, ElementType type, const void* values);
  void write_texts(std::span<const std::string> texts);  // the whole dataset
  // One whole chunk that begins at `start`, as it goes to disk. Error{io}.
  void write_chunk(const Dims& start, const void* values, std::int64_t n_bytes);

  // How many elements the box has, once it is clear that memory may be taken for them: the box is
  // inside the shape, and what is stored justifies its size (an array of absent chunks may claim
  // any dimensions at no cost). Errors: invalid_argument, corrupt.
  std::int64_t readable(const Dims& start, const Dims& count) const;
  // Numbers of any class into `type`. Errors: those of readable(); corrupt.
  void read(const Dims& start, const Dims& count, ElementType type, void* values) const;
  std::vector<std::string> read_texts() const;  // the whole dataset

 private:
  void check_storage() const;
  void check_chunks(RawId creation) const;
  void check_amount(std::int64_t n_bytes) const;

  Handle handle_;
  std::string where_;
  Dims dims_;
  ElementType type_ = ElementType::f32;
};

}  // namespace sinkscope::h5
