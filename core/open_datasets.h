// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/capture_layout.h"
#include "core/h5/dataset.h"
#include "core/h5/file.h"

namespace sinkscope {

// Chunked datasets of a file that is being written, open for writing: the latest 1,024 of them, as
// an open dataset takes about 16 kB. `file` and `runs` must outlive it.
class OpenDatasets {
 public:
  OpenDatasets(const h5::File& file, const std::vector<RunInput>& runs)
      : file_(file), runs_(runs) {}

  // `path` below the run's group. Error{io}.
  h5::Dataset& get(int run, const std::string& path);
  void close();
  void abandon();  // lets go of them without HDF5, after a failed write

 private:
  using Key = std::pair<int, std::string>;
  const h5::File& file_;
  const std::vector<RunInput>& runs_;
  std::list<std::pair<Key, h5::Dataset>> order_;  // the latest first
  std::map<Key, decltype(order_)::iterator> index_;
};

}  // namespace sinkscope
