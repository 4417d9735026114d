// SPDX-License-Identifier: GPL-3.0-or-later
// Any bytes as a safetensors file: a header or one Error. What a header promises must be in the
// file.
#include <cstdlib>

#include "capture/checkpoint/safetensors_header.h"
#include "core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sinkscope;
  try {
    const FileReader file("fuzz.safetensors",
                          std::string(reinterpret_cast<const char*>(data), size));
    looks_like_safetensors(file);
    for (const SafetensorsEntry& entry : read_safetensors_header(file)) {
      if (entry.begin > size || entry.info.n_bytes > size - entry.begin) std::abort();
      if (entry.info.readable && entry.info.n_elements() < 0) std::abort();
    }
  } catch (const Error&) {
  }
  return 0;
}
