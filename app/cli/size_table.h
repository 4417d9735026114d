// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture/checkpoint/arch_spec.h"
#include "core/capture_layout.h"

namespace sinkscope {

// How large a capture gets, before it is made: one row per group of datasets, over all runs, and
// "structure": what names, attributes, texts and indexes take. Of maps only chunks count that hold
// a key which some of their queries see: the others are never written.
struct SizeRow {
  std::string group;  // "attention/pattern", "residual/stream", "stats", "taps/attn.hook_q"
  std::string shape;  // of the largest dataset in it, in the longest run
  std::int64_t bytes = 0;
};

// `arch` says how far back the layers' queries see; the default: to the first key.
std::vector<SizeRow> size_table(const CaptureLayout& layout, const ArchSpec& arch = {});
std::int64_t total_bytes(const std::vector<SizeRow>& table);

// Bytes of the residual/stream datasets of all runs.
std::int64_t stream_bytes(const std::vector<SizeRow>& table);

// Throws Error{io} when the file system that is to hold `path` has less than `needed` bytes free,
// naming both numbers; Error{io} too when its folder does not exist.
void require_free_space(const std::string& path, std::int64_t needed);

}  // namespace sinkscope
