// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "capture/checkpoint/checkpoint.h"

namespace sinkscope {

// Which tensors serve as embedding and as head. -1: there is none.
struct HeadChoice {
  int embed = -1, unembed = -1;
  bool tied = false;
  std::string warning;  // where the config's flag and the file disagree
};

// The rules for tied embeddings. `embed` and `head` are tensor indices or -1, `flag` is
// tie_word_embeddings (or the family's default).
//   embedding alone: flag true, it serves as head; flag false, there is no head
//   head alone:      flag true, it serves as embedding; flag false, the embedding is missing
//   both:            the file's head is used; with the flag true they should be equal
HeadChoice choose_head(const Checkpoint& checkpoint, int embed, int head, bool flag);

}  // namespace sinkscope
