// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "capture/model/forward.h"
#include "capture/record/map_recorder.h"
#include "capture/record/tap_stats.h"
#include "capture/record/write_queue.h"
#include "core/capture_layout.h"

namespace sinkscope {

// Which body computes attention.
enum class AttentionBody { fused, reference };

// What recording takes of the forward pass, in seconds.
struct RecordSeconds {
  double attention = 0;   // attention itself, its maps and statistics
  double statistics = 0;  // of every other site
};

// Listens to the forward pass of one run: reduces every tap to its statistics, keeps what the
// layout records, and hands both to the writer's queue.
class RunRecorder : public TapListener {
 public:
  RunRecorder(const CaptureLayout& layout, int run, WriteQueue& queue, BufferPool& pool,
              AttentionBody body, RecordSeconds& seconds, std::stop_token stop);

  void on_tap(Site site, int layer, const at::Tensor& value) override;
  bool wants(Site site, int layer) const override;
  std::stop_token stop() const override { return stop_; }
  at::Tensor on_attention(int layer, const AttentionCall& call) override;
  void on_norm_input(Role role, int layer, const at::Tensor& x) override;
  void on_resume(const at::Tensor& stream) override;

 private:
  using SharedStats = std::shared_ptr<const TapStats>;

  SharedStats stats_of(const at::Tensor& x);  // of a host_matrix [T, width]
  void on_residual(Site site, int layer, const at::Tensor& x);
  void on_sum(int row, const at::Tensor& x);  // residual/prenorm
  void on_block_state(int layer, const at::Tensor& x);
  SharedStats input_stats(Site norm) const;  // of what that norm has read; null = not known
  void write_stats(Site site, int layer, const SharedStats& stats, const SharedStats& norm_input,
                   std::optional<double> median);
  void write_block_state(int state, const SharedStats& stats);
  bool is_recorded(Site site, int layer) const;
  void write_tap(Site site, int layer, const at::Tensor& value);
  // The heads and rows [H, T, …] that maps are recorded of; all where no maps are.
  at::Tensor chosen(const at::Tensor& maps) const;
  void write_gate_correlation(Site gate_site, int layer, const at::Tensor& gated);

  const CaptureLayout& layout_;
  const int run_, seq_len_;
  WriteQueue& queue_;
  const AttentionBody body_;
  RecordSeconds& seconds_;  // of all runs together
  const std::stop_token stop_;
  std::map<std::string, std::map<int, int>> stats_rows_, tap_rows_;  // hook -> block -> row
  std::map<std::string, std::vector<int>> tap_dims_;                 // hook -> TapRecord::dims
  std::map<int, int> attention_rows_, pattern_rows_;                 // block -> row
  std::optional<MapRecorder> maps_;
  at::Tensor gate_;               // of the gated norm whose output comes next, [T, D]
  SharedStats residual_stats_;    // of the latest residual site: what the next norm reads
  SharedStats half_input_stats_;  // of what the next norm behind a half reads
};

// Spreads work over LibTorch's own threads.
void parallel_for(std::int64_t n, std::int64_t grain, const RangeBody& body);

// x [1, T, …] as a float32 matrix [T, width] in host memory; no copy where it is one already.
at::Tensor host_matrix(const at::Tensor& x);

}  // namespace sinkscope
