// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "capture/checkpoint/gguf_file.h"
#include "core/error.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {

inline constexpr auto kStories = "data/models/stories260Ktok512.gguf";

// Kind and message of the error of `action`; "no error" when there was none.
inline std::pair<ErrorKind, std::string> failure_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  return {ErrorKind::io, "no error"};
}

inline std::pair<ErrorKind, std::string> failure_to_open(const std::string& path) {
  return failure_of([&path] { GgufFile::open(path); });
}

inline std::string written(const GgufBytes& bytes) {
  return bytes.write(scratch_folder() + "/m.gguf");
}

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<float> all_values(const GgufFile& file, const std::string& name) {
  const int index = file.find(name);
  const TensorInfo& tensor = file.tensors().at(static_cast<std::size_t>(index));
  std::vector<float> values(static_cast<std::size_t>(tensor.n_elements()));
  file.read_rows(index, 0, tensor.n_rows(), values.data());
  return values;
}

}  // namespace sinkscope::test
