// SPDX-License-Identifier: GPL-3.0-or-later
// Any bytes as edits; what is read must survive its own text.
#include <cstdlib>

#include "core/error.h"
#include "core/what_if/what_if.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sinkscope;
  try {
    const WhatIf what_if = parse_what_if(std::string(reinterpret_cast<const char*>(data), size));
    const std::string text = what_if_text(what_if);
    if (what_if_text(parse_what_if(text)) != text) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
