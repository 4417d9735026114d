// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "capture/checkpoint/model_files.h"
#include "capture/engine.h"

namespace sinkscope::test {

// The engine under test, one a process.
Engine& engine();

// Threads for tests: SINKSCOPE_TEST_THREADS, else 1, since CTest runs as many tests as there are
// cores. A test that is about threads asks for more.
int test_threads();

// A request of one run with these ids; record nothing beyond statistics and the stream.
CaptureRequest request_for(const std::vector<int>& ids);

// Adds an edited twin of the first run.
void add_twin(CaptureRequest& request, const std::string& what_if);

// Plans, runs and writes a capture into a fresh scratch file; returns its path.
std::string capture(const ModelFiles& model, const CaptureRequest& request);

// Every dataset of a run of two captures that holds numbers is the same to the bit; provenance is
// left out. Returns the path of the first that differs, or "".
std::string first_difference(const std::string& a, const std::string& b,
                             const std::string& run = "/run0");

}  // namespace sinkscope::test
