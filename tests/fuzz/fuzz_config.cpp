// SPDX-License-Identifier: GPL-3.0-or-later
// Any bytes as config.json and generation_config.json.
#include "capture/checkpoint/hf_config.h"
#include "core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sinkscope;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    HfConfig config = parse_hf_config(text, "config.json");
    add_generation_config(config, text, "generation_config.json");
  } catch (const Error&) {
  }
  return 0;
}
