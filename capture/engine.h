// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/checkpoint/model_files.h"
#include "core/capture_layout.h"
#include "core/capture_writer.h"
#include "core/job.h"
#include "core/what_if/what_if.h"

namespace sinkscope {

// The plain C++ face of the engine, the module libsinkscope_engine.so that is loaded on first use.
// No Torch type appears here.

enum class RunDtype { float32, bfloat16 };

// What to record, beyond the statistics that every capture has.
struct RecordRequest {
  bool stream = true;              // residual/stream and final_norm
  bool maps = false;               // attention/pattern
  bool all = false;                // norm outputs, q, k, v, z
  bool logits = false;             // logits/full
  std::vector<std::string> sites;  // single hooks by name, e.g. "hook_attn_out"
  std::vector<int> layers;         // recorded blocks; empty = all
  std::vector<int> heads, rows;    // of the maps; empty = all
  Reduce reduce = Reduce::none;
  ReduceOver reduce_over = ReduceOver::heads;
  bool operator==(const RecordRequest&) const = default;
};

struct CaptureRequest {
  std::vector<RunInput> runs;
  RecordRequest record;
  std::string device = "auto";  // auto | cpu | cuda[:N]
  RunDtype dtype = RunDtype::float32;
  int threads = 0;                                         // intra-op; 0 = all cores
  std::int64_t weight_budget = std::int64_t{4} << 30;      // bytes of weights kept between groups
  std::int64_t activation_budget = std::int64_t{1} << 30;  // bytes of prompt states in a group
  int top_k = 10;
  std::string kernel = "auto";  // auto | fused | reference: which body computes attention
  std::string command;          // canonical request, for provenance
  // For twins whose baseline lies in another capture (RunInput::baseline_file), by run: the
  // output of its final norm [T, D]. Empty: the baseline is run beside the twin, unrecorded.
  std::vector<std::vector<float>> baseline_final_norms;
  // The first so many runs are in the writer's file already and are not run; the baselines of their
  // twins are known as those of another capture are. Not for a recording that is resumed.
  int n_recorded = 0;
  // Where the means of residual.set come from: these prompts, run through the model as it is,
  // unrecorded. None: from the edited positions of the twins themselves, in the edited pass.
  std::vector<RunInput> calibration;
};

// What-ifs tried without recording anything: one list of losses a variant and run.
struct EvaluateRequest {
  std::vector<RunInput> runs;
  std::vector<WhatIf> variants;  // the model as it is comes first by itself
  std::string device = "auto";
  RunDtype dtype = RunDtype::float32;
  int threads = 0;
  std::int64_t weight_budget = std::int64_t{4} << 30;  // kept between batches of variants
  std::int64_t activation_budget = std::int64_t{1} << 30;
};

struct Evaluation {
  // [1 + variants][runs][T−1] loss of the next token in nats; [0] is the model as it is.
  std::vector<std::vector<std::vector<float>>> loss;
  // [variants][runs][T] KL(model ‖ variant) of the next token's distribution, nats.
  std::vector<std::vector<std::vector<float>>> kl;
};

struct CaptureSummary {
  double mean_loss = 0;         // over all runs and scored positions; NaN without a head
  double edited_mean_loss = 0;  // the same over the edited twins; NaN without any
  std::vector<float> kl;        // KL(baseline ‖ twin) of every twin's positions with a next token
  // [runs] of a twin whose baseline was run beside it, unrecorded: that one's final norm [T, D];
  // empty elsewhere.
  std::vector<std::vector<float>> baseline_final_norms;
  std::int64_t n_tokens = 0;
  double load_seconds = 0;      // the forward pass waited for weights
  double attention_seconds = 0;   // of the forward pass: softmax attention with its statistics
  double statistics_seconds = 0;  // of the forward pass: statistics of all other sites
  double forward_seconds = 0;   // from the first weight read to the last byte handed to the system
  std::int64_t bytes_read = 0;  // of stored weights; of experts only those that were routed to
  double write_seconds = 0;     // the writer thread was busy, mostly beside the forward pass
  std::string device;
};

// Intra-op threads the request will run with: its own number, else one a core.
int resolved_threads(const CaptureRequest& request);

// The file this request will make of this model, before anything runs: shapes, norms' gains,
// recorded sites. Needs no LibTorch (linked into the checkpoint side); throws
// Error{invalid_argument} naming the layer, head, row or site that does not exist.
CaptureLayout plan_capture(const ModelFiles& model, const CaptureRequest& request);

// Bytes of one prompt's state between layers, which the activation budget counts: the stream, its
// successor while a block runs, the head's copy, and the closed sums of attention over depth.
std::int64_t state_bytes(int seq_len, const ArchSpec& spec);

// Estimated peak memory of the request in bytes.
std::int64_t predicted_memory(const ModelFiles& model, const CaptureRequest& request);

class Engine {
 public:
  virtual ~Engine() = default;

  // LibTorch's version, e.g. "2.15.0".
  virtual std::string torch_version() const = 0;

  // Resolves "auto" and checks that the device is there: Error{device} in one sentence otherwise.
  virtual std::string resolve_device(const std::string& request) const = 0;

  // Which body will compute attention, and with which instructions: "fused (avx512)", "reference".
  virtual std::string kernel(const CaptureRequest& request) const = 0;

  // Whether every edit of the request's twins can take effect, before a file is made. Throws
  // Error: invalid_argument, unsupported, not_found, corrupt.
  virtual void check_edits(const ModelFiles& model, const CaptureRequest& request) = 0;

  // Runs the model over the request's prompts, layer-major, and fills `writer` (made from
  // plan_capture's layout of the same request). Does not call finish(). Canceled: nullopt, whole
  // layers are in the file. Throws Error: unsupported, device, out_of_memory, io, corrupt.
  virtual std::optional<CaptureSummary> capture(const ModelFiles& model,
                                                const CaptureRequest& request,
                                                CaptureWriter& writer, JobContext job) = 0;

  // As many variants together as the activation budget holds, layer by layer, weights read once
  // for them. Canceled: nullopt. Throws as capture() does, and Error{invalid_argument} when not
  // even one variant fits beside the model as it is.
  virtual std::optional<Evaluation> evaluate(const ModelFiles& model,
                                             const EvaluateRequest& request, JobContext job) = 0;
};

// Starts loading the module on another thread, so that it is there when load_engine() asks. The
// returned handle waits when it goes; a failure is load_engine()'s to tell.
std::future<void> warm_engine();

// Loads the module (once a process). Error{unsupported} when the program was built without
// LibTorch or the module cannot be loaded, with the loader's reason.
Engine& load_engine();

// Whether load_engine() has succeeded in this process.
bool engine_is_loaded();

}  // namespace sinkscope
