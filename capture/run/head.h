// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <future>
#include <stop_token>
#include <vector>

#include "capture/checkpoint/model_files.h"
#include "capture/record/write_queue.h"
#include "core/job.h"

namespace sinkscope {

// One run at the head: the final norm's output, where it goes in the file, and what comes out.
inline constexpr int kUnrecorded = -1;
struct HeadRun {
  int run = 0;                        // in the file; kUnrecorded: only compared with
  at::Tensor normed;                  // [T, D] on the device
  std::vector<int> token_ids;         // [T]
  int baseline = -1;                  // index of the run that this one is an edit of; −1 = none
  std::vector<float> loss;            // [T-1] −ln p of the next token, nats
  std::vector<std::int32_t> top_ids;  // [T, k] most probable next tokens; ties: lower id first
  std::vector<float> top_logprob;     // [T, k]
  std::vector<float> kl;              // [T] KL(baseline ‖ this), nats; empty without a baseline
};

struct HeadOptions {
  int top_k = 10;
  bool logits_full = false;  // write logits/full as the tiles come
};

// The rows of the head in slices of at most 3,072, read one slice ahead on a thread of its own.
class HeadRows {
 public:
  HeadRows(const ModelFiles& model, at::Device device, at::ScalarType dtype);
  std::int64_t vocab_size() const { return vocab_size_; }
  // Logits of the products with a slice's rows: scaled and capped as the model does, float32.
  at::Tensor finished(const at::Tensor& products) const;
  // Starts reading the first slice, unless that has begun already.
  void prefetch();
  // The slice that begins at `begin`, in order from 0; starts reading the next one.
  at::Tensor slice(std::int64_t begin);

 private:
  void start(std::int64_t begin);

  const ModelFiles& model_;
  at::Device device_;
  at::ScalarType dtype_;
  Role role_;
  std::int64_t vocab_size_;
  std::future<at::Tensor> next_;
};

// The language-model head in tiles of at most 256 tokens × 3,072 vocabulary rows: online
// log-sum-exp, loss, top-k and KL; [T, V] never exists. The head's rows are read once for all runs.
// `queue` takes full logits, null where there are none to record. `twin_rows`: the head that twins
// (runs with a baseline) go through, of as many tokens; null = the same. False = canceled.
bool run_head(HeadRows& rows, std::vector<HeadRun>& runs, const HeadOptions& options,
              WriteQueue* queue, JobContext job, HeadRows* twin_rows = nullptr);

}  // namespace sinkscope
