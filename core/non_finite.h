// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/capture_reader.h"
#include "core/site_name.h"

namespace sinkscope {

// NaN and infinite values of one run, as the statistics of every site counted them, and the place
// of the first one in the order of the forward pass.
struct NonFinite {
  std::int64_t count = 0;
  SiteName site;   // meaningless where count is 0
  int token = -1;  // the first of the site
  int dim = -1;    // the first of the token; −1: the statistics cannot tell
};

// From stats/*/token/{n_nan,n_inf} and dim_*/count. Blocks from `layers_end` on (not yet recorded)
// are left out. Errors: those of the reader; corrupt when shapes contradict each other.
NonFinite find_non_finite(const CaptureReader& reader, const std::string& run, int layers_end);

// "1,024 values are NaN or infinite, the first at blocks.0.hook_resid_pre, token 4, dimension 7"
std::string non_finite_text(const NonFinite& found);

// The same for people, of the first run that has any, and in how many more; "" where none has.
std::string non_finite_warning(const std::vector<std::pair<std::string, NonFinite>>& runs);

}  // namespace sinkscope
