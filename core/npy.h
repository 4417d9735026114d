// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "core/element_type.h"

namespace sinkscope {

// Header of a NumPy .npy file, format version 1.0 (numpy.lib.format): magic, version, length,
// then a Python dictionary padded to a multiple of 64 bytes. The elements follow in C order,
// little-endian. No dims = a scalar. Whoever streams an array writes this, then its blocks.
// Throws Error{invalid_argument} for text and for negative dims.
std::string npy_header(ElementType type, const std::vector<std::int64_t>& dims);

// A whole .npy file: header and values [dims…]. Throws Error{io} when the stream fails.
void write_npy(std::ostream& out, const std::vector<std::int64_t>& dims, const float* values);
void write_npy(std::ostream& out, const std::vector<std::int64_t>& dims, const double* values);
void write_npy(std::ostream& out, const std::vector<std::int64_t>& dims,
               const std::int32_t* values);

}  // namespace sinkscope
