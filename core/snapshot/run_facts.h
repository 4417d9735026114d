// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/capture_reader.h"

namespace sinkscope {

// One run of a capture, as trees, titles and comparisons name it. Structure and input only.
struct RunFacts {
  std::string path;  // of the capture
  std::string run;   // its group: "run0"
  ModelFacts model;
  RunInput input;
  bool complete = true;
  int whole_layers = 0;  // blocks that are whole, of model.n_layers
  // What panels can be filled with.
  bool has_attention = false, has_window = false, has_thumbnail = false, has_pattern = false;
  bool has_residual = false, has_stream = false, has_norms = false, has_loss = false;
  std::vector<int> attention_layers;               // [A] block indices, whole ones only
  std::vector<int> pattern_layers, pattern_heads;  // recorded maps; heads [-1] = reduced
  std::vector<std::string> norm_roles;             // "ln1", "ln1/pre_gain", "ln2", …

  int seq_len() const { return input.seq_len(); }
  // The user's name of the run, else its group.
  const std::string& name() const { return input.name.empty() ? run : input.name; }
};

// Throws Error: not_found (run), corrupt.
RunFacts read_run_facts(const CaptureReader& reader, const std::string& run);

// "SmolLM2 · run0 · 64 tokens"
std::string run_title(const RunFacts& facts);

// What is recorded beyond the statistics, in words: "statistics, residual stream, attention maps".
std::string recorded_text(const RunFacts& facts);

// "instrument" of "·instrument": a token's label without the mark of its leading space.
std::string bare_token(const std::string& label);

}  // namespace sinkscope
