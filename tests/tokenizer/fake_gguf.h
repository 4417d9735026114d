// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capture/checkpoint/gguf_file.h"

namespace sinkscope::test {

// A GGUF file that is only metadata, in memory; without tensors.
class FakeGguf : public GgufFile {
 public:
  FakeGguf() = default;
  // The tokenizer keys of a real file, to be changed by the test.
  explicit FakeGguf(const GgufFile& file) {
    for (const std::string& key : file.keys())
      if (key.starts_with("tokenizer.")) set(key, *file.find_key(key));
  }

  void set(const std::string& key, GgufValue value) {
    if (values_.find(key) == values_.end()) keys_.push_back(key);
    values_.insert_or_assign(key, std::move(value));
  }
  void erase(const std::string& key) {
    values_.erase(key);
    std::erase(keys_, key);
  }

  const GgufValue* find_key(const std::string& key) const override {
    const auto it = values_.find(key);
    return it == values_.end() ? nullptr : &it->second;
  }
  const std::vector<std::string>& keys() const override { return keys_; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  void read_rows(int, std::int64_t, std::int64_t, float*) const override {}
  void read_raw(int, std::uint64_t, std::uint64_t, void*) const override {}

 private:
  std::map<std::string, GgufValue> values_;
  std::vector<std::string> keys_;
  std::vector<TensorInfo> tensors_;
};

// A SentencePiece vocabulary of a dozen pieces: <unk> <s> </s>, the bytes of "é", and a few words.
inline FakeGguf tiny_sentencepiece() {
  FakeGguf file;
  file.set("tokenizer.ggml.model", std::string("llama"));
  file.set("tokenizer.ggml.tokens",
           std::vector<std::string>{"<unk>", "<s>", "</s>", "<0xC3>", "<0xA9>", "▁", "a", "b", "▁a",
                                    "ab", "▁ab", "abab", "[PAD]"});
  file.set("tokenizer.ggml.scores",
           std::vector<double>{0, 0, 0, 0, 0, -9, -9, -9, -4, -2, -3, -1, 0});
  file.set("tokenizer.ggml.token_type",
           std::vector<std::int64_t>{2, 3, 3, 6, 6, 1, 1, 1, 1, 1, 1, 5, 5});
  return file;
}

}  // namespace sinkscope::test
