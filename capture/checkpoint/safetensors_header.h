// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "capture/checkpoint/file_reader.h"
#include "capture/checkpoint/safetensors_dtype.h"

namespace sinkscope {

struct SafetensorsEntry {
  TensorInfo info;
  const SafetensorsDtype* dtype = nullptr;
  std::uint64_t begin = 0;  // byte of the file
};

// Reads and checks the header of one safetensors file: the ten checks of the reference parser in
// its order, plus what it keeps silent about (a name twice, an odd row of F4). Nothing is allocated
// from a number in the file before it was held against the file's size. Entries come sorted by
// name. Throws Error{corrupt} with a sentence; a Git-LFS pointer is named as such.
std::vector<SafetensorsEntry> read_safetensors_header(const FileReader& file);

// Whether the first bytes can be those of a safetensors file: a header length that fits the file
// and JSON after it.
bool looks_like_safetensors(const FileReader& file);

// Whether the file is the text that Git-LFS leaves in place of a file that was not downloaded.
bool looks_like_lfs_pointer(const FileReader& file);

}  // namespace sinkscope
