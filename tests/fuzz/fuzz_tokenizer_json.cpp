// SPDX-License-Identifier: GPL-3.0-or-later
// Any bytes as tokenizer.json; what can be read cuts a text, too.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "capture/checkpoint/text_file.h"
#include "capture/tokenizer/json_components.h"
#include "core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sinkscope;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const nlohmann::json json = parse_json(text, "tokenizer.json");
    const auto tokenizer = read_json_tokenizer(json, nlohmann::json::object(), "tokenizer.json");
    const Encoding encoding = tokenizer->encode("Ab ab  <s>1\u00e9\n");
    for (const int id : encoding.ids)
      if (id < 0 || id >= (1 << 24)) std::abort();
    tokenizer->labels(encoding.ids);
    tokenizer->decode(encoding.ids);
  } catch (const Error&) {
  }
  return 0;
}
