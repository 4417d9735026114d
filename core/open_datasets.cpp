// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/open_datasets.h"

#include <fmt/format.h>

namespace sinkscope {

h5::Dataset& OpenDatasets::get(int run, const std::string& path) {
  constexpr std::size_t kMostOpen = 1024;
  const Key key(run, path);
  if (const auto found = index_.find(key); found != index_.end()) {
    order_.splice(order_.begin(), order_, found->second);
    return order_.front().second;
  }
  if (order_.size() >= kMostOpen) {
    index_.erase(order_.back().first);
    order_.pop_back();
  }
  const std::string full = fmt::format("{}/{}", run_group_name(runs_, run), path);
  order_.emplace_front(key, h5::Dataset::open_for_writing(
                                file_.root(), full, fmt::format("{}: {}", file_.path(), full)));
  index_[key] = order_.begin();
  return order_.front().second;
}

void OpenDatasets::close() {
  index_.clear();
  order_.clear();
}

void OpenDatasets::abandon() {
  for (auto& [key, dataset] : order_) dataset.handle().release();
  close();
}

}  // namespace sinkscope
