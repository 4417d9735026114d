// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

#include "core/capture_layout.h"
#include "core/capture_writer.h"

namespace sinkscope::test {

// A small capture in which no two sizes that could be confused are equal: 3 blocks (attention in
// blocks 0 and 2), 4 heads on 2 kv heads, D = 6, vocabulary 11; run0 has 7 tokens, run1 has 5.
CaptureLayout sample_layout();

// The value at flat index `i` of a dataset: different for every dataset, run and place, exact in
// float, NaN nowhere. Attention maps are 0 above the diagonal.
double sample_value(int run, const DatasetSpec& spec, std::int64_t i);

// Whether the dataset is filled while the model runs (not at creation).
bool is_streamed(const DatasetSpec& spec);

// Writes what belongs to one block of one run: the rows of every streamed array whose `layers` list
// holds it, and the residual sites after it. After the last block: everything else.
void write_sample_block(CaptureWriter& writer, int run, int block);

// The whole sample at `path`.
void write_sample_capture(const std::string& path);

}  // namespace sinkscope::test
