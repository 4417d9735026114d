// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

#include "core/element_type.h"
#include "core/h5/box.h"

namespace sinkscope::h5 {

// Values of a contiguous dataset lie at a place of the file that never changes once it is created.
// Writing them there with pwrite costs 1 µs where opening the dataset would cost 30 µs and keeping
// it open 16 kB; and it changes no metadata, so there is nothing for a kill to damage.

struct RawPlace {
  int descriptor = -1;
  std::int64_t offset = 0;  // of the dataset's first byte
  ElementType type = ElementType::f32;
};

// Writes a box that lies inside the shape; float types are converted. Error{io}.
void write_raw(const RawPlace& place, const Dims& dims, const Dims& start, const Dims& count,
               ElementType type, const void* values, const std::string& where);

}  // namespace sinkscope::h5
