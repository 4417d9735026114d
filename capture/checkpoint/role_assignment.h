// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "capture/checkpoint/family.h"
#include "capture/checkpoint/role_table.h"
#include "capture/checkpoint/tensor_search.h"

namespace sinkscope {

// Gives tensors their roles by a family's names, whatever container they lie in, and holds their
// shapes against the spec. What is missing, of another shape, not decodable or left over becomes an
// obstacle with the numbers of both sides; obstacles of one kind and role in many layers are one
// line: the first, and how many more. Everything handed in must outlive this; the spec is
// looked at anew by every call.
class RoleAssignment {
 public:
  // `where` names the index or file in messages.
  RoleAssignment(ArchSpec& spec, const Family& family, const Checkpoint& checkpoint,
                 TensorSearch::Inside inside, std::string where);

  const TensorSearch& search() const { return search_; }
  // Rows of a matrix that has a tensor to itself, 0 = there is none.
  std::int64_t rows_of(Role role) const;

  // An obstacle of that kind.
  void object(Role role, const std::string& kind, const std::string& sentence);
  // Every role of the blocks and outside of them that the spec demands, embedding and head aside.
  void fill_all(int n_layers);
  // Embedding and head by the rules of choose_head; returns its warning. Sets the spec's
  // tied and has_head.
  std::string fill_head(bool is_said_to_be_tied);

  // Appends the obstacles found, and returns the names of tensors without a purpose.
  std::vector<std::string> finish(std::vector<std::string>& obstacles) const;
  RoleTable take_table() { return std::move(table_); }

 private:
  struct Group {
    std::string sentence;
    int more = 0;
  };

  // The tensor by the first of the role's names that is there, or −1.
  int find(Role role, int layer) const;
  // The tensor has a purpose, if not this role.
  void use(int tensor);
  // Fills a role, or says what stands in the way.
  void fill(Role role, int layer);
  const TensorInfo& info(int tensor) const;
  bool fits(Role role, int tensor, const Packed& expected, Packing packing);
  void take(Role role, int layer, const TensorName& line);
  bool take_more(Role role, int layer, const TensorName& line, const Packed& expected,
                 TensorRef& ref);
  void take(Role role, int tensor);
  void miss(Role role, int layer, const TensorName& line, int number = 0);

  ArchSpec& spec_;
  const Family& family_;
  const Checkpoint& checkpoint_;
  std::string where_;
  TensorSearch search_;
  std::vector<bool> used_;
  RoleTable table_;
  std::map<std::pair<std::string, Role>, Group> groups_;
};

// "2 unexpected tensors: a, b".
std::string unexpected_tensors(const std::vector<std::string>& names);

}  // namespace sinkscope
