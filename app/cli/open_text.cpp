// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/open_text.h"

#include <filesystem>

#include "capture/checkpoint/gguf_file.h"
#include "capture/checkpoint/model_files.h"

namespace sinkscope {

std::unique_ptr<Tokenizer> open_tokenizer_at(const std::string& path,
                                             const TokenizerOptions& options) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path place(path);
  if (fs::is_directory(place, ignored) && fs::exists(place / "tokenizer.json", ignored))
    return open_json_tokenizer((place / "tokenizer.json").string());
  if (fs::is_directory(place, ignored) && fs::exists(place / "tokenizer.model", ignored))
    return open_sentencepiece_tokenizer((place / "tokenizer.model").string());
  if (fs::is_regular_file(place, ignored)) {
    if (looks_like_gguf(path)) return open_gguf_tokenizer(*GgufFile::open(path), options);
    if (place.extension() == ".json") return open_json_tokenizer(path);
    if (place.extension() == ".model") return open_sentencepiece_tokenizer(path);
  }
  return open_tokenizer(*open_model(path), options);
}

}  // namespace sinkscope
