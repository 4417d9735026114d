// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string_view>
#include <vector>

#include "capture/tokenizer/piece_model.h"
#include "capture/tokenizer/prefix_index.h"
#include "capture/tokenizer/vocabulary.h"

namespace sinkscope {

struct UnigramPieces {
  std::vector<double> scores;   // log-probabilities, of every piece
  std::vector<char> is_usable;  // whether text may become it; empty = all of them
  double unknown_score = 0;     // of one character that is no piece: the lowest score − 10
  int unk_id = -1;
  bool byte_fallback = false;  // what is no piece becomes its "<0xNN>" tokens, if all exist
  bool fuse_unk = true;        // neighboring unknown characters share one unknown token
};

// The cut of highest summed log-probability (Viterbi over the prefixes of each suffix; the first of
// equal ones in order of length). Of equal pieces the last counts.
class UnigramModel : public PieceModel {
 public:
  // `vocabulary` must outlive the model. Throws Error{corrupt} for scores that are no numbers or
  // not one for every piece.
  UnigramModel(const Vocabulary& vocabulary, UnigramPieces pieces);

  std::int64_t encode(std::string_view piece, std::vector<int>& ids) const override;

 private:
  std::int64_t encode_unknown(std::string_view text, std::vector<int>& ids) const;

  UnigramPieces pieces_;
  PrefixIndex index_;
  std::vector<int> byte_ids_;  // [256], -1 where there is none; empty unless byte_fallback
};

}  // namespace sinkscope
