// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"

namespace sinkscope {

class ModelFiles;
class GgufFile;

enum class BosRule {
  automatic,  // what the model's own files say
  always,
  never,
  text_alone,  // no BOS, nothing else of the model's template either ([SEP], an EOS behind the
               // text), and what spells a special token is cut up like any other text
};

// Text as the model would be fed it. `bos_positions`: every position that holds the BOS id, also
// one that the text itself spelled out. `warnings`: "2 BOS: …" and the like.
struct Encoding {
  std::vector<int> ids;
  std::vector<int> bos_positions;
  std::vector<std::string> warnings;
};

// A vocabulary and the rules that cut text into it. Const members are thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Throws Error{invalid_argument} for text that is not UTF-8 and Error{invalid_argument} for
  // BosRule::always on a vocabulary without BOS; Error{unsupported} naming the file whose rules
  // make no end of a text.
  virtual Encoding encode(std::string_view text, BosRule bos = BosRule::automatic) const = 0;

  virtual int vocab_size() const = 0;
  virtual int bos_id() const = 0;  // -1 = none
  // What made the ids, for the capture file: "gguf:gpt2/smollm", "tokenizer.json:bpe/llama3".
  virtual const std::string& name() const = 0;
  // The token as the vocabulary spells it: "Ġthe", "▁the", "<0x0A>". Empty for ids out of range.
  virtual std::string raw_piece(int id) const = 0;
  // The bytes the token stands for; may be part of a character.
  virtual std::string bytes(int id) const = 0;
  virtual bool is_special(int id) const = 0;
  // The id of the token that is cut out of the text where it reads `content`; -1 = there is none.
  virtual int added_id(std::string_view content) const = 0;

  // The file it was read from, for messages; "" = none.
  const std::string& file() const { return file_; }
  void set_file(std::string path) { file_ = std::move(path); }

  // One readable label per id: the decoded text where it is whole; spaces, newlines and tabs made
  // visible (· ↵ ⇥); a part of a character as ⟨E6 88⟩. Special tokens as they are spelled. Always
  // valid UTF-8 without control characters, whatever the file holds.
  std::vector<std::string> labels(const std::vector<int>& ids) const;
  // The joined bytes as text, special tokens as they are spelled, malformed UTF-8 as U+FFFD.
  std::string decode(const std::vector<int>& ids) const;

 private:
  std::string file_;
};

// The error, with the path of the file in front where it does not say it.
Error in_file(const std::string& path, const Error& error);

struct TokenizerOptions {
  std::string pre_tokenizer;  // overrides or supplies GGUF's tokenizer.ggml.pre; "" = the file's
};

// The tokenizer that comes with a model: GGUF metadata, tokenizer.json or tokenizer.model. Throws
// Error{unsupported} with the reason when it cannot be read (unknown or absent pre-tokenizer, …),
// Error{not_found} when there is none: token ids still work then.
std::unique_ptr<Tokenizer> open_tokenizer(const ModelFiles& model,
                                          const TokenizerOptions& options = {});
std::unique_ptr<Tokenizer> open_gguf_tokenizer(const GgufFile& file,
                                               const TokenizerOptions& options = {});
// `json_path`: tokenizer.json; BOS and related flags from tokenizer_config.json beside it, if any.
std::unique_ptr<Tokenizer> open_json_tokenizer(const std::string& json_path);
// `model_path`: a SentencePiece model (tokenizer.model); flags and further tokens from
// tokenizer_config.json beside it, if any. Cut by the SentencePiece library.
std::unique_ptr<Tokenizer> open_sentencepiece_tokenizer(const std::string& model_path);

}  // namespace sinkscope
