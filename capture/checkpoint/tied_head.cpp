// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/tied_head.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sinkscope {
namespace {

// Whether two tensors hold the same bytes. Small ones are compared whole; of large ones 256 pieces
// spread evenly, ends included: opening a model must not read gigabytes, and since the file's head
// is what runs in either case, a miss could only mislabel it as tied.
bool same_values(const Checkpoint& checkpoint, int a, int b) {
  const TensorInfo& first = checkpoint.tensors()[static_cast<std::size_t>(a)];
  const TensorInfo& second = checkpoint.tensors()[static_cast<std::size_t>(b)];
  if (first.dtype != second.dtype || first.shape != second.shape) return false;
  constexpr std::uint64_t kPiece = 1 << 14, kPieces = 256, kWhole = 1 << 22;
  std::vector<char> left(kPiece), right(kPiece);
  const std::uint64_t size = first.n_bytes;
  const auto same_at = [&](std::uint64_t offset) {
    const std::uint64_t n = std::min(kPiece, size - offset);
    checkpoint.read_raw(a, offset, n, left.data());
    checkpoint.read_raw(b, offset, n, right.data());
    return std::equal(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(n), right.begin());
  };
  if (size <= kWhole) {
    for (std::uint64_t offset = 0; offset < size; offset += kPiece) {
      if (!same_at(offset)) return false;
    }
    return true;
  }
  for (std::uint64_t i = 0; i < kPieces; ++i) {
    if (!same_at((size - kPiece) / (kPieces - 1) * i)) return false;
  }
  return same_at(size - kPiece);
}

}  // namespace

HeadChoice choose_head(const Checkpoint& checkpoint, int embed, int head, bool flag) {
  HeadChoice choice{embed, head, false, ""};
  if (embed >= 0 && head >= 0) {
    choice.tied = flag && same_values(checkpoint, embed, head);
    if (flag && !choice.tied) {
      choice.warning =
          "config.json says tie_word_embeddings, but lm_head.weight differs from the embedding: "
          "the "
          "file's head is used";
    }
  } else if (embed >= 0 && flag) {
    choice.unembed = embed;
    choice.tied = true;
  } else if (embed >= 0) {
    choice.warning =
        "config.json does not tie the head to the embedding, and there is no lm_head.weight: the "
        "model has no head, its run ends at the final norm";
  } else if (head >= 0 && flag) {
    choice.embed = head;
    choice.tied = true;
  }
  return choice;
}

}  // namespace sinkscope
