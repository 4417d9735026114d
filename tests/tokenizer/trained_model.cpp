// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/tokenizer/trained_model.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <cstdlib>
#include <stdexcept>

#include "tests/tokenizer/golden.h"

namespace sinkscope::test {
namespace {

// Lines of a text, one a time, as the trainer wants them.
class Lines : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(std::string text) : text_(std::move(text)) { Next(); }
  bool done() const override { return is_done_; }
  void Next() override {
    is_done_ = at_ >= text_.size();
    if (is_done_) return;
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    line_ = text_.substr(at_, end - at_);
    at_ = end + 1;
  }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::string text_, line_;
  std::size_t at_ = 0;
  bool is_done_ = false;
};

void require(const sentencepiece::util::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.error_message());
}

// Loaded once a model: a test asks it for many texts.
const sentencepiece::SentencePieceProcessor& load(const std::string& serialized) {
  static std::map<std::string, std::unique_ptr<sentencepiece::SentencePieceProcessor>> loaded;
  auto& processor = loaded[serialized];
  if (processor != nullptr) return *processor;
  processor = std::make_unique<sentencepiece::SentencePieceProcessor>();
  require(processor->LoadFromSerializedProto({serialized.data(), serialized.size()}));
  return *processor;
}

}  // namespace

const std::string& trained_sentencepiece(const std::string& kind) {
  static std::map<std::string, std::string> made;
  std::string& model = made[kind];
  if (!model.empty()) return model;
  Lines lines(read_text_file(std::string(SINKSCOPE_SOURCE_DIR) + "/LICENSE"));
  require(sentencepiece::SentencePieceTrainer::Train(
      {{"model_type", kind},
       {"vocab_size", "700"},
       {"byte_fallback", "true"},
       {"character_coverage", "0.999"},
       {"user_defined_symbols", "<mask>"},
       {"normalization_rule_name", kind == "unigram" ? "nmt_nfkc" : "identity"},
       {"remove_extra_whitespaces", kind == "unigram" ? "true" : "false"},
       {"pad_id", "3"},
       {"num_threads", "1"},
       {"minloglevel", "2"}},
      &lines, &model));
  return model;
}

std::string proto_bytes(std::string_view message, unsigned number) {
  std::string found;
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(at++));
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.size()) {
    const std::uint64_t tag = varint();
    if ((tag & 7) == 0) varint();
    if ((tag & 7) == 1) at += 8;
    if ((tag & 7) == 5) at += 4;
    if ((tag & 7) != 2) continue;
    const std::uint64_t size = varint();
    if (tag >> 3 == number) found = message.substr(at, size);
    at += size;
  }
  return found;
}

FakeGguf gguf_of(const std::string& serialized, const std::string& ggml_model) {
  const auto& processor = load(serialized);
  std::vector<std::string> tokens;
  std::vector<double> scores;
  std::vector<std::int64_t> types, charsmap;
  for (int id = 0; id < processor.GetPieceSize(); ++id) {
    tokens.push_back(processor.IdToPiece(id));
    scores.push_back(processor.GetScore(id));
    types.push_back(processor.IsUnknown(id)     ? 2
                    : processor.IsControl(id)   ? 3
                    : tokens.back() == "<mask>" ? 4
                    : processor.IsUnused(id)    ? 5
                    : processor.IsByte(id)      ? 6
                                                : 1);
  }
  for (const char c : proto_bytes(proto_bytes(serialized, 3), 2))
    charsmap.push_back(static_cast<unsigned char>(c));
  FakeGguf file;
  file.set("tokenizer.ggml.model", ggml_model);
  file.set("tokenizer.ggml.tokens", tokens);
  file.set("tokenizer.ggml.scores", scores);
  file.set("tokenizer.ggml.token_type", types);
  file.set("tokenizer.ggml.precompiled_charsmap", charsmap);
  file.set("tokenizer.ggml.remove_extra_whitespaces", ggml_model == "t5");
  file.set("tokenizer.ggml.unknown_token_id", std::int64_t{0});
  file.set("tokenizer.ggml.add_bos_token", false);
  file.set("tokenizer.ggml.add_eos_token", false);
  return file;
}

std::vector<int> library_ids(const std::string& serialized, const std::string& text) {
  const auto& processor = load(serialized);
  std::vector<int> ids;
  require(processor.Encode(text, &ids));
  return ids;
}

}  // namespace sinkscope::test
