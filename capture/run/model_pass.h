// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "capture/checkpoint/model_files.h"
#include "capture/edits/what_if_pass.h"
#include "capture/model/forward.h"
#include "capture/model/weights.h"
#include "capture/run/head.h"
#include "core/job.h"

namespace sinkscope {

// One prompt on its way through the model, as it is or under a what-if.
struct Lane {
  const std::vector<int>* token_ids = nullptr;
  std::unique_ptr<TapListener> listener;
  WhatIfPass* what_if = nullptr;         // null: as it is
  bool is_calibration = false;           // as it is, and where means of residual.set come from
  std::unique_ptr<Interventions> edits;  // never null
  at::Tensor stream;    // [1, T, D], or [1, T, N·D] of several; between layers a lane is this and
                        // nothing else
  at::Tensor seen;      // what the half of a block that runs next reads
  at::Tensor half_out;  // what half a block has put out, until the stream has it
  std::vector<RotaryTable> rotaries;  // one for each kind of positions in the model
  std::unique_ptr<LaneState> state = std::make_unique<LaneState>();
};

// The way of a group of prompts through the model, layer by layer: every layer's weights are read
// once for all lanes, and lanes advance together, half a block at a time.
class ModelPass {
 public:
  // `keep_bytes`: weights kept between groups.
  ModelPass(const ModelFiles& model, at::Device device, at::ScalarType dtype,
            std::int64_t keep_bytes);

  const ArchSpec& spec() const { return spec_; }
  // Starts reading the first block.
  void warm_up() { weights_.prefetch(0); }
  double seconds_waited() const { return weights_.seconds_waited(); }
  HeadRows& head_rows() { return *head_rows_; }

  // A lane at the start: embedded, with its rotary table. Under a what-if, its positions count.
  Lane start(const std::vector<int>& token_ids, std::unique_ptr<TapListener> listener,
             WhatIfPass* what_if);

  // The blocks from `first_layer` on. `layer_done` is called after each one. False = canceled.
  bool run_blocks(std::vector<Lane>& lanes, JobContext job, int first_layer,
                  const std::function<void(int layer)>& layer_done);

  // The final norm of each lane, tapped; [T, D]. The streams are given up.
  std::vector<at::Tensor> final_norms(std::vector<Lane>& lanes);

  // Units of progress of one token in one block; the head counts vocab_size.
  std::int64_t layer_work() const { return layer_work_; }

 private:
  // `input`: which of the half's inputs this norm reads.
  void prepare_norm(const std::vector<Lane>& lanes, Role role, int layer, const Norm& norm,
                    const at::Tensor& pre_gain, int input = 0);
  void prepare_post_norm(const std::vector<Lane>& lanes, Role role, int layer, const Norm& norm);
  BlockPass block(const Lane& lane, const LayerWeights& w, int layer) const;
  // What the final norm reads of a lane.
  at::Tensor final_input(const Lane& lane) const;
  // What every lane's half reads, before it runs.
  void read_inputs(std::vector<Lane>& lanes, Role half, const LayerWeights& w, int layer);
  void residual_states(std::vector<Lane>& lanes, Site site, const LayerWeights& w, int layer);

  const ModelFiles& model_;
  const ArchSpec& spec_;
  at::Device device_;
  at::ScalarType dtype_;
  WeightStore weights_;
  std::optional<HeadRows> head_rows_;
  StreamMixer final_mixer_;
  Norm final_norm_;
  at::Tensor final_pre_gain_, final_query_;
  std::vector<RopeSpec> ropes_;  // the kinds of positions, and which one a layer has
  std::vector<std::size_t> rope_of_layer_;
  std::vector<float> divisors_;
  std::int64_t layer_work_ = 0;
};

}  // namespace sinkscope
