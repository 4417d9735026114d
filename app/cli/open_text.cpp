// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/open_text.h"

#include <filesystem>

#include "capture/checkpoint/gguf_file.h"
#include "capture/checkpoint/model_files.h"
#include "capture/tokenizer/tokenizer_file.h"

namespace sinkscope {

std::unique_ptr<Tokenizer> open_tokenizer_at(const std::string& path,
                                             const TokenizerOptions& options,
                                             const OpenOptions& opening) {
  if (!opening.arch_file.empty()) return open_tokenizer(*open_model(path, opening), options);
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path place(path);
  if (fs::is_directory(place, ignored))
    for (const char* name : {"tokenizer.json", "tokenizer.model"})
      if (fs::exists(place / name, ignored))
        return open_tokenizer_file((place / name).string(), options);
  if (fs::is_regular_file(place, ignored) &&
      (looks_like_gguf(path) || place.extension() == ".json" || place.extension() == ".model"))
    return open_tokenizer_file(path, options);
  return open_tokenizer(*open_model(path, opening), options);
}

}  // namespace sinkscope
