// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace sinkscope {

class GgufCursor;
struct GgufHeader;

// Reads the `n_keys` key-value pairs that follow into `header` and returns the alignment of the
// data: general.alignment, else 32. Integers are widened to int64, floats to double.
// Throws Error: corrupt (empty or repeated key, unknown value type, a length the file cannot hold,
// an alignment that is no u32, zero, no power of two or beyond 1 MiB), unsupported (an array of
// arrays, an unsigned value beyond int64).
std::uint64_t read_gguf_metadata(GgufCursor& cursor, std::uint64_t n_keys, GgufHeader& header);

}  // namespace sinkscope
