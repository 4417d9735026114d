// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/spread.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>

namespace sinkscope {

void spread(std::int64_t n, std::int64_t grain,
            const std::function<void(std::int64_t begin, std::int64_t end)>& body) {
  std::atomic<std::int64_t> next{0};
  const std::int64_t n_ranges = (n + grain - 1) / grain;
  const std::int64_t n_threads = std::min<std::int64_t>(at::get_num_threads(), n_ranges);
  at::parallel_for(0, n_threads, 1, [&](std::int64_t, std::int64_t) {
    for (std::int64_t begin; (begin = next.fetch_add(grain)) < n;)
      body(begin, std::min(n, begin + grain));
  });
}

}  // namespace sinkscope
