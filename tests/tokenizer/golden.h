// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace sinkscope::test {

inline std::string read_text_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The texts of a golden .inp file, which a line "__ggml_vocab_test__" separates.
inline std::vector<std::string> read_golden_texts(const std::string& path) {
  const std::string all = read_text_file(path), line = "\n__ggml_vocab_test__\n";
  std::vector<std::string> texts;
  for (std::size_t at = 0; at <= all.size();) {
    const std::size_t end = std::min(all.find(line, at), all.size());
    texts.push_back(all.substr(at, end - at));
    at = end + line.size();
  }
  return texts;
}

// One line of ids for each text; the last text, behind the last separator, is empty and has none.
inline std::vector<std::vector<int>> read_golden_ids(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::vector<int>> lines;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::vector<int> ids;
    for (int id = 0; words >> id;) ids.push_back(id);
    lines.push_back(ids);
  }
  lines.emplace_back();
  return lines;
}

}  // namespace sinkscope::test
