// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/run/prompt_groups.h"

#include <fmt/format.h>

#include "core/error.h"

namespace sinkscope {

std::vector<std::pair<int, int>> resumed_groups(const CaptureRequest& request, const ArchSpec& spec,
                                                const RecordingState& state) {
  const auto n = static_cast<int>(request.runs.size());
  const int first = state.first_run, kept = static_cast<int>(state.streams.size());
  if (first < 0 || first > n || kept > n - first)
    throw Error(ErrorKind::corrupt, "the kept state has runs that the request has not");
  std::vector<std::pair<int, int>> groups;
  if (first > 0) groups.emplace_back(0, first);
  if (kept > 0) groups.emplace_back(first, first + kept);
  for (const auto& group : prompt_groups(request, spec, first + kept)) groups.push_back(group);
  return groups;
}

bool has_other_baseline(const CaptureRequest& request, std::size_t run) {
  const RunInput& input = request.runs[run];
  return input.edit_of >= 0 && (!input.baseline_file.empty() || input.edit_of < request.n_recorded);
}

bool is_run_again(const CaptureRequest& request, std::size_t run) {
  return has_other_baseline(request, run) &&
         (run >= request.baseline_final_norms.size() || request.baseline_final_norms[run].empty());
}

void require_one_group(const CaptureRequest& request, const ArchSpec& spec) {
  std::int64_t bytes = 0;
  const auto first = static_cast<std::size_t>(request.n_recorded);
  std::size_t n = request.runs.size() - first;
  for (std::size_t r = first; r < request.runs.size(); ++r) {
    const std::int64_t state = state_bytes(request.runs[r].seq_len(), spec);
    bytes += is_run_again(request, r) ? 2 * state : state;
  }
  for (const RunInput& prompt : request.calibration) {
    bytes += state_bytes(prompt.seq_len(), spec);
    ++n;
  }
  if (n > 1 && bytes > request.activation_budget) refuse_groups(request.activation_budget);
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
