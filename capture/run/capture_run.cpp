// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/run/capture_run.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <limits>

#include "capture/prediction.h"
#include "capture/record/block_size.h"
#include "capture/run/device.h"
#include "capture/run/model_pass.h"
#include "capture/run/prompt_groups.h"
#include "capture/run/silent_listener.h"
#include "core/error.h"

namespace sinkscope {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::int64_t kept_bytes(const ModelFiles& model, const CaptureRequest& request) {
  return kept_weight_bytes(model, request.weight_budget, request.dtype,
                           largest_group(request, model.spec()));
}

constexpr std::int64_t kQueueBytes = std::int64_t{32} << 20;

double mean_of(const std::vector<float>& values) {
  double sum = 0;
  for (float value : values) sum += value;
  return values.empty() ? std::numeric_limits<double>::quiet_NaN()
                        : sum / static_cast<double>(values.size());
}

// One capture from start to end; the engine keeps nothing between captures.
class Run {
 public:
  Run(const ModelFiles& model, const CaptureRequest& request, CaptureWriter& writer, JobContext job)
      : model_(model),
        request_(request),
        layout_(writer.layout()),
        job_(job),
        device_(resolve_device(request.device)),
        resume_(writer.resume_point()),
        groups_(resume_ != nullptr ? resumed_groups(request, model.spec(), *resume_)
                                   : prompt_groups(request, model.spec(), request.n_recorded)),
        pass_(model, device_, scalar_type(request.dtype),
              groups_.size() > 1 ? kept_bytes(model, request) : 0),
        what_ifs_(what_ifs_of(request, model, device_)),
        queue_(writer, kQueueBytes) {
    if (resume_ != nullptr && request.n_recorded > 0)
      throw Error(ErrorKind::invalid_argument,
                  "a recording that is resumed takes no runs over from another");
    summary_.baseline_final_norms.resize(request.runs.size());
    if (!what_ifs_.empty()) require_one_group(request, model.spec());
  }

  std::optional<CaptureSummary> run() {
    const Clock::time_point begin = Clock::now();
    const std::int64_t read_before = model_.bytes_read();
    pass_.warm_up();
    count_work();
    for (const auto& [first, last] : groups_) {
      if (resume_ != nullptr && first < resume_->first_run) {
        skip(first, last);
        continue;
      }
      if (!run_group(first, last)) return finish_canceled();
    }
    job_.progress.stage = Stage::closing;
    queue_.drain();
    summary_.bytes_read = model_.bytes_read() - read_before;
    summary_.load_seconds = pass_.seconds_waited();
    summary_.forward_seconds = seconds_since(begin);
    summary_.attention_seconds = recorded_.attention;
    summary_.statistics_seconds = recorded_.statistics;
    summary_.write_seconds = queue_.seconds();
    summary_.mean_loss = mean_of(loss_);
    summary_.edited_mean_loss = mean_of(edited_loss_);
    summary_.device = device_.str();
    return summary_;
  }

 private:
  void count_work() {
    job_.progress.done = 0;  // the same progress may have seen another recording
    const ArchSpec& spec = model_.spec();
    std::int64_t in_blocks = 0, at_head = 0;
    for (auto r = static_cast<std::size_t>(request_.n_recorded); r < request_.runs.size(); ++r) {
      const RunInput& run = request_.runs[r];
      summary_.n_tokens += run.seq_len();
      at_head += run.seq_len() * (has_other_baseline(request_, r) ? 2 : 1);
      if (is_run_again(request_, r)) in_blocks += run.seq_len();
    }
    in_blocks += summary_.n_tokens;
    for (const RunInput& run : request_.calibration) in_blocks += run.seq_len();
    job_.progress.total = in_blocks * pass_.layer_work() * spec.n_layers +
                          (spec.has_head ? at_head * spec.head_rows() : 0);
  }

  void skip(int first, int last) {
    std::int64_t tokens = 0;
    for (int r = first; r < last; ++r)
      tokens += request_.runs[static_cast<std::size_t>(r)].seq_len();
    const ArchSpec& spec = model_.spec();
    job_.progress.done +=
        tokens * (pass_.layer_work() * spec.n_layers + (spec.has_head ? spec.head_rows() : 0));
  }

  bool run_group(int first, int last) {
    std::vector<Lane> lanes;
    job_.progress.stage = Stage::reading;
    for (int r = first; r < last; ++r) lanes.push_back(start(r));
    for (int r = first; r < last; ++r)
      if (is_run_again(request_, static_cast<std::size_t>(r)))
        lanes.push_back(start_silent(request_.runs[static_cast<std::size_t>(r)]));
    for (const RunInput& prompt : request_.calibration) {
      lanes.push_back(start_silent(prompt));
      lanes.back().is_calibration = true;
    }
    for (const auto& [text, what_if] : what_ifs_) what_if->check_tokens();
    const int first_layer = resume_ != nullptr && resume_->first_run == first ? go_on(lanes) : 0;
    job_.progress.stage = Stage::running;
    const bool is_whole = pass_.run_blocks(lanes, job_, first_layer, [&](int layer) {
      keep(lanes, layer + 1, first, last);
      queue_.push(0, [layer, first](CaptureWriter& out) { out.layer_done(layer + 1, first); });
    });
    if (!is_whole) return false;
    job_.progress.stage = Stage::head;
    std::erase_if(lanes, [](const Lane& lane) { return lane.is_calibration; });
    if (!finish_group(lanes, first, last)) return false;
    queue_.push(0, [n_layers = model_.spec().n_layers, last](CaptureWriter& out) {
      out.layer_done(n_layers, last);
    });
    return true;
  }

  // The closed sums of attention over depth, and the stream: what go_on() needs.
  static at::Tensor kept_state(const Lane& lane) {
    std::vector<at::Tensor> states = lane.state->block_states;
    states.push_back(lane.stream);
    return (states.size() == 1 ? lane.stream : at::cat(states)).to(at::kCPU).contiguous();
  }

  // Nothing writes into a stream: the queue shares the tensors until they are on disk.
  void keep(const std::vector<Lane>& lanes, int layers_done, int first, int last) {
    std::vector<at::Tensor> streams;
    std::int64_t bytes = 0;
    for (int r = first; r < last; ++r) {
      streams.push_back(kept_state(lanes[static_cast<std::size_t>(r - first)]));
      bytes += static_cast<std::int64_t>(streams.back().nbytes());
    }
    queue_.push(bytes, [streams, layers_done, first](CaptureWriter& out) {
      std::vector<StreamBytes> states;
      for (const at::Tensor& x : streams)
        states.emplace_back(static_cast<const std::byte*>(x.const_data_ptr()), x.nbytes());
      out.keep_streams(layers_done, first, states);
    });
  }

  // Puts the lanes where a killed recording left them; the first block still to run.
  int go_on(std::vector<Lane>& lanes) {
    if (resume_->streams.empty()) return 0;
    if (!model_.spec().kv_source.empty())
      throw Error(ErrorKind::unsupported,
                  "a model whose layers share keys cannot be taken up in the "
                  "middle: record it "
                  "again with --force");
    if (resume_->streams.size() != lanes.size())
      throw Error(ErrorKind::corrupt, fmt::format("the kept state has {} runs, expected {}",
                                                  resume_->streams.size(), lanes.size()));
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      at::Tensor& stream = lanes[i].stream;
      const std::vector<std::byte>& kept = resume_->streams[i];
      const int n_states = 1 + model_.spec().n_block_states(resume_->layers_done);
      at::Tensor host =
          at::empty({n_states, stream.size(1), stream.size(2)}, stream.options().device(at::kCPU));
      if (kept.size() != host.nbytes())
        throw Error(ErrorKind::corrupt, fmt::format("the kept state of run {} has {} bytes, "
                                                    "expected {}",
                                                    i, kept.size(), host.nbytes()));
      std::memcpy(host.mutable_data_ptr(), kept.data(), kept.size());
      for (int n = 0; n + 1 < n_states; ++n)
        lanes[i].state->block_states.push_back(host.narrow(0, n, 1).to(device_));
      stream = host.narrow(0, n_states - 1, 1).to(device_);
      lanes[i].listener->on_resume(stream);
      job_.progress.done += pass_.layer_work() * stream.size(1) * resume_->layers_done;
    }
    return resume_->layers_done;
  }

  Lane start(int r) {
    const RunInput& input = request_.runs[static_cast<std::size_t>(r)];
    WhatIfPass* what_if = input.edit_of >= 0 ? what_ifs_.at(input.what_if).get() : nullptr;
    return pass_.start(
        input.token_ids,
        std::make_unique<RunRecorder>(layout_, r, queue_, pool_, body_of(request_, device_),
                                      recorded_, job_.stop),
        what_if);
  }

  Lane start_silent(const RunInput& input) {
    return pass_.start(input.token_ids,
                       std::make_unique<SilentListener>(job_.stop, device_.is_cpu()), nullptr);
  }

  // A baseline that is not among the runs: at the final norm it is known, or was run again.
  at::Tensor baseline_norm(int r, std::vector<at::Tensor>& run_again) {
    const auto run = static_cast<std::size_t>(r);
    if (is_run_again(request_, run)) {
      at::Tensor normed = std::move(run_again.front());
      run_again.erase(run_again.begin());
      const at::Tensor kept = normed.to(at::kCPU, at::kFloat).contiguous();
      const float* values = kept.const_data_ptr<float>();
      summary_.baseline_final_norms[run].assign(values, values + kept.numel());
      return normed;
    }
    const std::vector<float>& known = request_.baseline_final_norms[run];
    const std::int64_t T = request_.runs[run].seq_len(), D = model_.spec().d_model;
    if (static_cast<std::int64_t>(known.size()) != T * D)
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("run{}: the baseline's final norm: expected {} x {} values, found {}",
                              r, T, D, known.size()));
    return at::from_blob(const_cast<float*>(known.data()), {T, D}, at::kFloat)
        .to(device_)
        .to(scalar_type(request_.dtype));
  }

  bool finish_group(std::vector<Lane>& lanes, int first, int last) {
    std::vector<at::Tensor> normed = pass_.final_norms(lanes);
    if (!model_.spec().has_head) return true;
    const std::ptrdiff_t n = last - first;
    std::vector<at::Tensor> run_again(normed.begin() + n, normed.end());
    std::vector<HeadRun> heads;
    auto next_other = static_cast<int>(n);
    for (int r = first; r < last; ++r) {
      const RunInput& input = request_.runs[static_cast<std::size_t>(r)];
      HeadRun head;
      head.run = r;
      head.normed = std::move(normed[static_cast<std::size_t>(r - first)]);
      head.token_ids = input.token_ids;
      head.baseline = input.edit_of < 0 ? -1 : input.edit_of - first;
      if (has_other_baseline(request_, static_cast<std::size_t>(r))) head.baseline = next_other++;
      heads.push_back(std::move(head));
    }
    for (int r = first; r < last; ++r) {
      const RunInput& input = request_.runs[static_cast<std::size_t>(r)];
      if (!has_other_baseline(request_, static_cast<std::size_t>(r))) continue;
      HeadRun head;
      head.run = kUnrecorded;
      head.normed = baseline_norm(r, run_again);
      head.token_ids = input.token_ids;
      heads.push_back(std::move(head));
    }
    const HeadOptions options{layout_.top_k, layout_.logits_full};
    if (!run_head(pass_.head_rows(), heads, options, &queue_, job_)) return false;
    compare(heads);
    for (HeadRun& head : heads)
      if (head.run != kUnrecorded) write_head(std::move(head));
    return true;
  }

  void compare(const std::vector<HeadRun>& heads) {
    for (const HeadRun& head : heads) {
      std::vector<float>& losses = head.baseline < 0 ? loss_ : edited_loss_;
      losses.insert(losses.end(), head.loss.begin(), head.loss.end());
      if (head.baseline < 0) continue;
      // KL over the positions that have a next token.
      summary_.kl.insert(summary_.kl.end(), head.kl.begin(),
                         head.kl.begin() + static_cast<std::ptrdiff_t>(head.loss.size()));
      const std::vector<float>& before = heads[static_cast<std::size_t>(head.baseline)].loss;
      std::vector<float> delta(head.loss.size());
      for (std::size_t t = 0; t < delta.size(); ++t) delta[t] = head.loss[t] - before[t];
      queue_.push(0, [run = head.run, kl = head.kl, delta](CaptureWriter& out) {
        const auto T = static_cast<std::int64_t>(kl.size());
        out.write(run, "compare/kl", {0}, {T}, kl.data());
        if (T > 1) out.write(run, "compare/loss_delta", {0}, {T - 1}, delta.data());
      });
    }
  }

  void write_head(HeadRun head) {
    head.normed = at::Tensor();
    queue_.push(0, [head = std::move(head), k = layout_.top_k](CaptureWriter& out) {
      const auto T = static_cast<std::int64_t>(head.token_ids.size());
      if (T > 1) out.write(head.run, "logits/loss", {0}, {T - 1}, head.loss.data());
      out.write(head.run, "logits/top_ids", {0, 0}, {T, k}, head.top_ids.data());
      out.write(head.run, "logits/top_logprob", {0, 0}, {T, k}, head.top_logprob.data());
    });
  }

  std::optional<CaptureSummary> finish_canceled() {
    queue_.drain();
    return std::nullopt;
  }

  const ModelFiles& model_;
  const CaptureRequest& request_;
  const CaptureLayout& layout_;
  JobContext job_;
  const at::Device device_;
  const RecordingState* const resume_;  // of the writer; nullptr = from the start
  const std::vector<std::pair<int, int>> groups_;
  ModelPass pass_;
  WhatIfs what_ifs_;
  BufferPool pool_;
  RecordSeconds recorded_;
  std::vector<float> loss_, edited_loss_;
  CaptureSummary summary_;
  WriteQueue queue_;  // last: its thread ends before what its jobs use
};

}  // namespace

WhatIfs what_ifs_of(const CaptureRequest& request, const ModelFiles& model, at::Device device) {
  WhatIfs what_ifs;
  std::vector<std::vector<int>> calibration;
  for (const RunInput& prompt : request.calibration) calibration.push_back(prompt.token_ids);
  for (const RunInput& run : request.runs) {
    if (run.edit_of < 0 || what_ifs.contains(run.what_if)) continue;
    what_ifs[run.what_if] = std::make_unique<WhatIfPass>(parse_what_if(run.what_if), model, device);
    what_ifs[run.what_if]->calibrate_with(calibration);
  }
  return what_ifs;
}

AttentionBody body_of(const CaptureRequest& request, at::Device device) {
  const bool fused = request.kernel != "reference" && device.is_cpu();
  return fused ? AttentionBody::fused : AttentionBody::reference;
}

std::optional<CaptureSummary> capture_runs(const ModelFiles& model, const CaptureRequest& request,
                                           CaptureWriter& writer, JobContext job) {
  return Run(model, request, writer, job).run();
}

}  // namespace sinkscope
