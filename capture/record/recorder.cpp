// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/record/recorder.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "capture/model/spread.h"
#include "capture/record/write_stats.h"
#include "core/mechanism_metrics.h"

namespace sinkscope {
namespace {

std::map<int, int> rows_of(const std::vector<int>& layers) {
  std::map<int, int> rows;
  for (std::size_t i = 0; i < layers.size(); ++i) rows[layers[i]] = static_cast<int>(i);
  return rows;
}

bool is_residual(Site site) {
  return site == Site::resid_pre || site == Site::resid_mid || site == Site::resid_post;
}

// Row of residual/sites: resid_pre of block 0, then mid and post of every block; parallel blocks
// have no mid.
int residual_row(Site site, int layer, bool parallel) {
  if (parallel) return layer + (site == Site::resid_post ? 1 : 0);
  if (site == Site::resid_pre) return 2 * layer;
  return 2 * layer + (site == Site::resid_mid ? 1 : 2);
}

// What statistics hold on to, about: the queue is bounded by it.
std::int64_t n_bytes(const TapStats& stats) {
  return static_cast<std::int64_t>(2 * 64 * stats.rest.count.size() + 36 * stats.token.rms.size());
}
std::int64_t n_bytes(const AttentionStats& stats) {
  return static_cast<std::int64_t>(52 * stats.key_mass.size() + 4 * stats.window.size() +
                                   4 * stats.thumbnail.size());
}

// Adds the time until it goes to `sum`.
class Stopwatch {
 public:
  explicit Stopwatch(double& sum) : sum_(sum) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() { sum_ += std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  double& sum_;
  const Clock::time_point begin_ = Clock::now();
};

}  // namespace

void parallel_for(std::int64_t n, std::int64_t grain, const RangeBody& body) {
  spread(n, grain, body);
}

at::Tensor host_matrix(const at::Tensor& x) {
  return x.squeeze(0).flatten(1).to(at::kCPU, at::kFloat).contiguous();
}

RunRecorder::RunRecorder(const CaptureLayout& layout, int run, WriteQueue& queue, BufferPool& pool,
                         AttentionBody body, RecordSeconds& seconds, std::stop_token stop)
    : layout_(layout),
      run_(run),
      seq_len_(layout.runs[static_cast<std::size_t>(run)].seq_len()),
      queue_(queue),
      body_(body),
      seconds_(seconds),
      stop_(std::move(stop)),
      attention_rows_(rows_of(layout.attention_layers)),
      pattern_rows_(rows_of(layout.pattern.layers)) {
  for (const StatsSite& site : layout.sites) stats_rows_[site.hook] = rows_of(site.layers);
  for (const TapRecord& tap : layout.taps) {
    tap_rows_[tap.hook] = rows_of(tap.layers);
    tap_dims_[tap.hook] = tap.dims;
  }
  if (!layout.pattern.layers.empty()) maps_.emplace(layout.pattern, run, seq_len_, queue, pool);
}

RunRecorder::SharedStats RunRecorder::stats_of(const at::Tensor& x) {
  const Stopwatch watch(seconds_.statistics);
  const auto rows = static_cast<int>(x.size(0)), width = static_cast<int>(x.size(1));
  return std::make_shared<TapStats>(
      tap_stats(x.const_data_ptr<float>(), rows, width, width, parallel_for));
}

void RunRecorder::on_tap(Site site, int layer, const at::Tensor& value) {
  write_tap(site, layer, value);
  if (site == Site::resid_mid_sum) on_sum(2 * layer, value);
  if (site == Site::resid_post_sum) on_sum(2 * layer + 1, value);
  if (site == Site::resid_pre) on_block_state(layer, value);
  if (is_residual(site)) {
    // resid_pre of a later block is resid_post of the one before: measured and written there.
    if (site != Site::resid_pre || layer == 0) on_residual(site, layer, value);
    return;
  }
  if (!has_statistics(site)) return;
  const at::Tensor x = host_matrix(value);
  if (site == Site::ln1_gate || site == Site::ln2_gate) gate_ = x;
  if (gate_.defined() && (site == Site::ln1_out || site == Site::ln2_out)) {
    write_gate_correlation(site == Site::ln1_out ? Site::ln1_gate : Site::ln2_gate, layer, x);
    gate_ = at::Tensor();
  }
  const auto stats = stats_of(x);
  write_stats(site, layer, stats, input_stats(site), std::nullopt);
  if (site == Site::ln_final_out && layout_.stream)
    queue_.push(x.numel() * 4, [x, run = run_](CaptureWriter& writer) {
      writer.write(run, "residual/final_norm", {0, 0}, {x.size(0), x.size(1)},
                   x.const_data_ptr<float>());
    });
}

bool RunRecorder::wants(Site site, int layer) const {
  return has_statistics(site) || is_recorded(site, layer);
}

// The norm that comes next reads this and not the residual state.
void RunRecorder::on_norm_input(Role role, int /*layer*/, const at::Tensor& value) {
  const bool is_behind_a_half = role == Role::ln1_post || role == Role::ln2_post;
  (is_behind_a_half ? half_input_stats_ : residual_stats_) = stats_of(host_matrix(value));
}

RunRecorder::SharedStats RunRecorder::input_stats(Site norm) const {
  if (norm == Site::ln1_out || norm == Site::ln2_out || norm == Site::ln_final_out)
    return residual_stats_;
  return norm == Site::ln1_post_out || norm == Site::ln2_post_out ? half_input_stats_ : nullptr;
}

void RunRecorder::on_resume(const at::Tensor& stream) {
  residual_stats_ = stats_of(host_matrix(stream));
}

void RunRecorder::on_sum(int row, const at::Tensor& value) {
  if (!layout_.stream) return;
  const at::Tensor x = host_matrix(value);
  queue_.push(x.numel() * 4, [=, run = run_](CaptureWriter& writer) {
    writer.write(run, "residual/prenorm", {row, 0, 0}, {1, x.size(0), x.size(1)},
                 x.const_data_ptr<float>());
  });
}

void RunRecorder::on_block_state(int layer, const at::Tensor& value) {
  const auto& blocks = layout_.block_layers;
  const auto found = std::find(blocks.begin(), blocks.end(), layer);
  if (!layout_.stream || found == blocks.end()) return;
  const at::Tensor x = host_matrix(value);
  const std::int64_t row = found - blocks.begin();
  queue_.push(x.numel() * 4, [=, run = run_](CaptureWriter& writer) {
    writer.write(run, "residual/block_states", {row, 0, 0}, {1, x.size(0), x.size(1)},
                 x.const_data_ptr<float>());
  });
}

void RunRecorder::on_residual(Site site, int layer, const at::Tensor& value) {
  const at::Tensor x = host_matrix(value);
  const auto width = static_cast<int>(x.size(1));
  const auto stats = stats_of(x);
  const double median = median_abs(x.const_data_ptr<float>(), seq_len_, width, width, parallel_for);
  residual_stats_ = stats;
  write_stats(site, layer, stats, nullptr, median);
  if (site == Site::resid_post) write_stats(Site::resid_pre, layer + 1, stats, nullptr, median);
  if (site != Site::resid_mid) write_block_state(site == Site::resid_pre ? 0 : layer + 1, stats);

  const int row = residual_row(site, layer, layout_.parallel_blocks);
  const bool whole = layout_.stream;
  const std::int64_t n_streams = layout_.model.n_streams;
  queue_.push(whole ? x.numel() * 4 : 0, [=, run = run_](CaptureWriter& writer) {
    const std::int64_t T = x.size(0), D = x.size(1), W = std::min<std::int64_t>(T, 64);
    const float* from = x.const_data_ptr<float>();
    writer.write(run, "residual/window", {row, 0, 0}, {1, W, D}, from);
    if (whole && n_streams > 1)
      writer.write(run, "residual/stream", {row, 0, 0, 0}, {1, T, n_streams, D / n_streams}, from);
    else if (whole)
      writer.write(run, "residual/stream", {row, 0, 0}, {1, T, D}, from);
  });
}

// residual/abs_mean: mean |h| per dimension over all tokens, and without the first one.
void RunRecorder::write_block_state(int state, const SharedStats& stats) {
  const std::size_t width = stats->rest.count.size();
  std::vector<float> all(width), rest(width);
  for (std::size_t d = 0; d < width; ++d) {
    const double n1 = stats->first.count[d], n2 = stats->rest.count[d];
    const double sum = stats->first.mean_abs[d] * n1 + stats->rest.mean_abs[d] * n2;
    const double none = std::numeric_limits<double>::quiet_NaN();
    all[d] = static_cast<float>(n1 + n2 > 0 ? sum / (n1 + n2) : none);
    rest[d] = static_cast<float>(n2 > 0 ? stats->rest.mean_abs[d] : none);
  }
  queue_.push(0,
              [=, run = run_, all = std::move(all), rest = std::move(rest)](CaptureWriter& writer) {
                const auto D = static_cast<std::int64_t>(all.size());
                writer.write(run, "residual/abs_mean", {state, 0}, {1, D}, all.data());
                writer.write(run, "residual/abs_mean_rest", {state, 0}, {1, D}, rest.data());
              });
}

void RunRecorder::write_stats(Site site, int layer, const SharedStats& stats,
                              const SharedStats& norm_input, std::optional<double> median) {
  const std::string hook = hook_name(site);
  const auto& rows = stats_rows_.at(hook);
  const auto row = rows.find(layer);
  if (row == rows.end()) return;
  queue_.push(n_bytes(*stats), [=, run = run_, row = row->second](CaptureWriter& writer) {
    write_tap_stats(writer, run, hook, row, *stats, norm_input.get(), median);
  });
}

void RunRecorder::write_gate_correlation(Site gate_site, int layer, const at::Tensor& gated) {
  const std::string hook = hook_name(gate_site);
  const auto& rows = stats_rows_.at(hook);
  const auto row = rows.find(layer);
  if (row == rows.end()) return;
  const auto width = static_cast<int>(gated.size(1));
  queue_.push(0,
              [run = run_, path = "stats/" + hook + "/corr", row = row->second, width,
               corr = gate_correlation(gated.const_data_ptr<float>(), gate_.const_data_ptr<float>(),
                                       seq_len_, width)](CaptureWriter& writer) {
                writer.write(run, path, {row, 0}, {1, width}, corr.data());
              });
}

bool RunRecorder::is_recorded(Site site, int layer) const {
  const auto tap = tap_rows_.find(hook_name(site));
  return tap != tap_rows_.end() && tap->second.contains(layer);
}

void RunRecorder::write_tap(Site site, int layer, const at::Tensor& value) {
  const auto tap = tap_rows_.find(hook_name(site));
  if (tap == tap_rows_.end()) return;
  const auto row = tap->second.find(layer);
  if (row == tap->second.end()) return;
  at::Tensor x = value.squeeze(0).to(at::kCPU, at::kFloat);
  const std::vector<int>& dims = tap_dims_.at(tap->first);
  const bool is_by_token = dims.front() < 0;
  if (is_by_token && x.dim() == 2 && dims.size() == 3) x = x.unflatten(-1, {dims[1], dims[2]});
  if ((x.dim() == 3 && !is_by_token) || (x.dim() == 2 && site == Site::linear_state_norm))
    x = x.transpose(0, 1);  // [T, heads, …] -> [heads, T, …]
  x = x.contiguous();
  queue_.push(x.numel() * 4, [=, run = run_, path = "taps/" + tap->first + "/values",
                              row = row->second](CaptureWriter& writer) {
    std::vector<std::int64_t> start{row}, count{1};
    for (std::int64_t n : x.sizes()) {
      start.push_back(0);
      count.push_back(n);
    }
    writer.write(run, path, start, count, x.const_data_ptr<float>());
  });
}

at::Tensor RunRecorder::chosen(const at::Tensor& maps) const {
  at::Tensor some = maps;
  const auto take = [&](int dim, const std::vector<int>& indices) {
    if (!indices.empty()) some = some.index_select(dim, at::tensor(indices, at::kInt));
  };
  take(0, layout_.pattern.heads);
  take(1, layout_.pattern.rows);
  return some;
}

at::Tensor RunRecorder::on_attention(int layer, const AttentionCall& call) {
  const Stopwatch watch(seconds_.attention);
  const auto H = static_cast<int>(call.q.size(1)), G = static_cast<int>(call.k.size(1));
  auto stats = std::make_shared<AttentionStats>(H, G, seq_len_);
  MapSink* maps = nullptr;
  if (const auto slot = pattern_rows_.find(layer); maps_ && slot != pattern_rows_.end()) {
    maps_->start_layer(slot->second);
    maps = &*maps_;
  }
  const TileGeometry tile = tile_geometry(seq_len_, H, G);
  at::Tensor z;
  if (body_ == AttentionBody::fused && fused_knows(call)) {
    z = attend_fused(call, tile, *stats, maps, stop_);
  } else {
    AttentionCall own = call;
    if (call.entries.k.defined() && is_recorded(Site::pattern_compressed, layer))
      own.entries.weights = at::empty({H, seq_len_, call.entries.k.size(0)}, at::kFloat);
    z = attend_reference(own, tile, *stats, maps, stop_);
    if (z.defined() && own.entries.weights.defined())
      write_tap(Site::pattern_compressed, layer,
                chosen(own.entries.weights).transpose(0, 1).unsqueeze(0));
  }
  if (!z.defined()) return z;
  if (layout_.has_compressed_keys) stats->compressed_mass.resize(stats->lse.size());
  queue_.push(n_bytes(*stats),
              [stats, run = run_, row = attention_rows_.at(layer)](CaptureWriter& writer) {
                write_attention_stats(writer, run, row, *stats);
              });
  return z;
}

}  // namespace sinkscope
