// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/sink_report.h"
#include "tests/support/h5_reference.h"

namespace sinkscope::test {

// Compare a report with the reference values of somebody else's run of the same model; GoogleTest
// expectations, relative 1e-3.

// lab_baseline_N: all 256 sequences as runs (their first 32 ids), at ids:5-127. Attention sinks of
// key 0 over queries ≥ 1, pooled M2 per site, and the residual sink's dimension.
void expect_lab_sinks(const SinkReport& report, const H5Reference& oracle);

// smollm2: one run of 512 ids. First-token scores and Gu's score of key 0.
void expect_smollm2_attention(const SinkReport& report, const H5Reference& oracle);
// Maxima with token and dimension (1e-4), tensor kurtosis (Pearson), median |h|.
void expect_smollm2_residual(const SinkReport& report, const H5Reference& oracle);

}  // namespace sinkscope::test
