// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/run/prompt_groups.h"

#include <fmt/format.h>

#include "core/error.h"

namespace sinkscope {

std::vector<std::pair<int, int>> prompt_groups(const CaptureRequest& request, int d_model) {
  std::vector<std::pair<int, int>> groups;
  const auto n = static_cast<int>(request.runs.size());
  for (int begin = 0; begin < n;) {
    std::int64_t bytes = 0;
    int end = begin;
    while (end < n) {
      bytes += state_bytes(request.runs[static_cast<std::size_t>(end)].seq_len(), d_model);
      if (end > begin && bytes > request.activation_budget) break;
      ++end;
    }
    groups.emplace_back(begin, end);
    begin = end;
  }
  return groups;
}

void refuse_groups(std::int64_t activation_budget) {
  throw Error(ErrorKind::invalid_argument,
              fmt::format("all prompts of a what-if run together, and their states exceed "
                          "--activation-budget ({} MiB): fewer or shorter prompts, or a larger "
                          "budget",
                          activation_budget >> 20));
}

at::ScalarType scalar_type(RunDtype dtype) {
  return dtype == RunDtype::bfloat16 ? at::kBFloat16 : at::kFloat;
}

}  // namespace sinkscope
