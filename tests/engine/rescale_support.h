// SPDX-License-Identifier: GPL-3.0-or-later
// What the tests of rescaling evidence share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "capture/checkpoint/model_files.h"
#include "core/capture_reader.h"
#include "core/rescale/report.h"

namespace sinkscope::test {

inline const std::vector<int> kIds = {3, 1, 4, 1, 5, 9, 2};

// What reads a norm of width D, and W_o, whole.
WeightRows weights_of(const ModelFiles& model);

// Maps and everything of these tokens, and of a twin under a what-if.
std::unique_ptr<CaptureReader> record_all(const ModelFiles& model, const std::vector<int>& ids,
                                          const std::string& what_if = "");

// Rows of a recorded array of one block.
std::vector<double> tap(const CaptureReader& reader, const std::string& run,
                        const std::string& hook, int layer);

}  // namespace sinkscope::test
