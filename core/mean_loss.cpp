// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mean_loss.h"

#include <limits>

namespace sinkscope {

double mean_loss(const CaptureReader& reader, const std::vector<std::string>& runs) {
  double sum = 0, n = 0;
  for (const std::string& run : runs) {
    if (!reader.has(run, "logits/loss")) return std::numeric_limits<double>::quiet_NaN();
    for (double loss : reader.read_f64(run, "logits/loss")) sum += loss, ++n;
  }
  return n > 0 ? sum / n : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace sinkscope
