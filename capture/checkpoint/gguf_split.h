// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture/checkpoint/file_reader.h"

namespace sinkscope {

struct GgufHeader;

// A model cut into files `name-00001-of-0000N.gguf`: keys split.no (from 0), split.count and
// split.tensors.count; the metadata is in the first file, every file has its own tensors.

// Paths of the parts 2…N that belong to the file at `path`; empty for a file that is whole.
// Throws Error: invalid_argument when `path` is not the first part (the message names the first),
// corrupt when its name or its keys are no part's.
std::vector<std::string> remaining_split_parts(const std::string& path, const GgufHeader& header);

// Opens a later part; Error{not_found} says which one is missing.
FileReader open_split_part(const std::string& path);

// Throws Error{corrupt} unless this file says that it is part `number` (from 0) of `count`.
void check_split_part(const std::string& path, const GgufHeader& header, int number, int count);

// Throws Error{corrupt} when the first part promises another number of tensors than there are.
void check_split_total(const std::string& path, const GgufHeader& first, std::int64_t n_tensors);

}  // namespace sinkscope
