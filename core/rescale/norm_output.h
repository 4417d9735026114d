// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <string>

#include "core/capture_reader.h"
#include "core/tensor.h"
#include "core/what_if/what_if.h"

namespace sinkscope {

// What stands between a norm's recorded input and its output besides λ ⊙ x / rms(x).
enum class NormChange {
  none,
  gated,   // GatedNorm: the output goes through a gate
  edited,  // the run's what-if replaces or probes the norm
};

// Of the norm `role` in block `layer` (−1 = the final norm) of a run under `what_if`.
NormChange norm_change(const CaptureReader& reader, const std::string& run, const WhatIf& what_if,
                       const std::string& role, int layer);

// Calls `visit` with consecutive recorded output rows [n, width] of a norm, at most 16 MiB at a
// time, and the position of the first of them: taps/<role>.hook_out, of the final norm also
// residual/final_norm. False, and no call, where the capture holds neither. Throws
// Error{corrupt} for other shapes than [T, width].
bool for_each_output_block(const CaptureReader& reader, const std::string& run,
                           const std::string& role, int layer, int width,
                           const std::function<void(int, const ConstMapF&)>& visit);

}  // namespace sinkscope
