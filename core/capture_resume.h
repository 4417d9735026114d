// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/capture_create.h"
#include "core/capture_layout.h"
#include "core/recording_state.h"

namespace sinkscope {

// Where an unfinished recording goes on.
struct ResumePoint {
  std::vector<RunTable> tables;
  RecordingState state;  // no streams = the runs from its first one on have not begun
  int runs_begun = 0;
};

// Looks at NAME.part and the states beside it; writes nothing of its own (a flush that
// was broken off is finished). Throws Error{invalid_argument}
// naming the first field in which `request` differs from the recording's, Error{corrupt} where the
// file is not the one that the states speak of, has other tokens than the layout, or no state is
// whole.
ResumePoint find_resume_point(const std::string& part, const CaptureLayout& layout,
                              const std::string& request);

}  // namespace sinkscope
