// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/capture_resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/h5/dataset.h"
#include "core/h5/object.h"
#include "core/recording_request.h"

namespace sinkscope {
namespace {

// The state says which tokens the recording began with; the file may have changed since.
void require_same_tokens(const h5::File& look, const CaptureLayout& layout) {
  for (int run = 0; run < static_cast<int>(layout.runs.size()); ++run) {
    const std::string path = run_group_name(layout.runs, run) + "/input/token_ids";
    const std::string where = fmt::format("{}: {}", look.path(), path);
    const auto data =
        h5::Dataset::open_for_reading(h5::open_object(look.root(), path, where), where);
    const std::vector<int>& expected = layout.runs[static_cast<std::size_t>(run)].token_ids;
    std::vector<int> found(expected.size());  // of this shape: find_structure() has looked
    data.read({0}, data.dims(), ElementType::i32, found.data());
    const auto [e, f] = std::mismatch(expected.begin(), expected.end(), found.begin());
    if (e != expected.end())
      throw Error(ErrorKind::corrupt,
                  fmt::format("{}: expected the tokens that the recording began with, found {} "
                              "in place of {} at position {}",
                              where, *f, *e, e - expected.begin()));
  }
}

// Of runs that have not begun there is nothing to load.
RecordingState state_after(std::vector<RecordingState>& states, int layers, int first_run,
                           const std::string& part, const std::string& request) {
  if (layers == 0) return {request, 0, first_run, {}, false};
  for (RecordingState& state : states)
    if (state.layers_done == layers && state.first_run == first_run) return std::move(state);
  throw Error(ErrorKind::corrupt,
              fmt::format("{}.state: no whole state after {} layers, which the recording has", part,
                          layers));
}

}  // namespace

ResumePoint find_resume_point(const std::string& part, const CaptureLayout& layout,
                              const std::string& request) {
  std::vector<RecordingState> states = load_states(part);
  if (states.empty())
    throw Error(ErrorKind::corrupt,
                fmt::format("{}.state: no whole state to go on from; sinkscope repair says what "
                            "can be read, --force starts anew",
                            part));
  require_same_request(part, states.front().request, request);
  // Nothing may be written before it is clear that this is the file.
  const h5::File look = h5::File::open_for_reading(part);
  ResumePoint point;
  point.tables = find_structure(look, layout);
  require_same_tokens(look, layout);
  const auto count = [&](const char* name) {
    return static_cast<int>(h5::number_attribute(look.root(), name, part).value_or(0));
  };
  point.runs_begun = count("runs_begun");
  const int first_run = count("runs_done");
  // Maps summed over layers were in memory: those runs start again.
  const bool begins_again = layout.pattern.reduces(ReduceOver::layers);
  const int layers = point.runs_begun > first_run && !begins_again ? count("layers_done") : 0;
  point.state = state_after(states, layers, first_run, part, request);
  return point;
}

}  // namespace sinkscope
