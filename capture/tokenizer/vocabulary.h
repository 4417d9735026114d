// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sinkscope {

// Pieces by id and ids by piece. Fixed after construction; the index points into the pieces.
class Vocabulary {
 public:
  // pieces[id]; empty pieces are unused ids. Of equal pieces the lowest id is found.
  explicit Vocabulary(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {
    ids_.reserve(pieces_.size());
    for (int id = 0; id < size(); ++id) {
      const std::string& piece = pieces_[static_cast<std::size_t>(id)];
      if (!piece.empty()) ids_.emplace(piece, id);
    }
  }
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  int size() const { return static_cast<int>(pieces_.size()); }
  bool contains_id(int id) const { return id >= 0 && id < size(); }
  const std::string& piece(int id) const { return pieces_[static_cast<std::size_t>(id)]; }
  // -1 when there is no such piece.
  int find(std::string_view piece) const {
    const auto it = ids_.find(piece);
    return it == ids_.end() ? -1 : it->second;
  }

 private:
  std::vector<std::string> pieces_;
  std::unordered_map<std::string_view, int> ids_;
};

// The byte that "<0x0A>" spells, or -1 for any other piece.
int byte_of_piece(std::string_view piece);
// [256] ids of "<0x00>" to "<0xFF>", -1 for those that are no pieces; the highest of equal ones.
std::vector<int> all_byte_ids(const Vocabulary& vocabulary);
// Whether every byte of the text has an id there. None has where `byte_ids` is empty.
bool has_all_bytes(const std::vector<int>& byte_ids, std::string_view text);

}  // namespace sinkscope
