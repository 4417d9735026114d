// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/capture_layout.h"
#include "core/capture_reader.h"
#include "core/figure/figure.h"
#include "core/figure/figure_request.h"

namespace sinkscope {

// One input of a request, opened: a run of a capture, or a model of which only the norms are read.
struct FigureInput {
  std::string name;  // what tells it from the other inputs: a file's stem, a run
  const CaptureReader* capture = nullptr;
  std::string run;  // of the capture
  // Of a model:
  ModelFacts model;
  std::vector<NormFacts> norms;
  std::string evidence =
      {};  // the JSON that `probe -o F.json` wrote; empty = another kind of input
};

// What the request asks for, from its inputs in their order. The numbers are those of
// core/snapshot and core/sink_report, so that window, report and figure agree.
// Throws Error: invalid_argument and unsupported for a request that its inputs cannot fill (a model
// where a capture is needed, a layer that is not there); those of the reader.
Figure make_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs);

}  // namespace sinkscope
