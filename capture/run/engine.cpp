// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/engine.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <malloc.h>
#include <torch/version.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <new>

#include "capture/model/attention_rows.h"
#include "capture/model/forward.h"
#include "capture/model/isa.h"
#include "capture/model/weights.h"
#include "capture/record/recorder.h"
#include "capture/run/device.h"
#include "capture/run/head.h"
#include "capture/run/make_engine.h"
#include "core/error.h"

namespace sinkscope {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

constexpr std::int64_t kQueueBytes = std::int64_t{64} << 20;

// Between layers a prompt is this and nothing else.
struct PromptState {
  int run = 0;
  at::Tensor stream;  // [1, T, D]
  RotaryTable rotary;
  std::unique_ptr<RunRecorder> recorder;
};

// Consecutive prompts whose states fit the budget together; at least one.
std::vector<std::pair<int, int>> prompt_groups(const CaptureRequest& request, int d_model) {
  std::vector<std::pair<int, int>> groups;
  const auto n = static_cast<int>(request.runs.size());
  for (int begin = 0; begin < n;) {
    std::int64_t bytes = 0;
    int end = begin;
    while (end < n) {
      // The stream, its successor while a block runs, and the head's copy.
      bytes += std::int64_t{12} * request.runs[static_cast<std::size_t>(end)].seq_len() * d_model;
      if (end > begin && bytes > request.activation_budget) break;
      ++end;
    }
    groups.emplace_back(begin, end);
    begin = end;
  }
  return groups;
}

AttentionBody body_of(const CaptureRequest& request, at::Device device) {
  const bool fused = request.kernel != "reference" && device.is_cpu();
  return fused ? AttentionBody::fused : AttentionBody::reference;
}

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::avx512: return "avx512";
    case Isa::avx2: return "avx2";
    case Isa::base: break;
  }
  return "baseline";
}

// One capture from start to end; the engine keeps nothing between captures.
class Run {
 public:
  Run(const ModelFiles& model, const CaptureRequest& request, CaptureWriter& writer,
      JobContext job)
      : model_(model), spec_(model.spec()), request_(request), layout_(writer.layout()), job_(job),
        device_(resolve_device(request.device)),
        dtype_(request.dtype == RunDtype::bfloat16 ? at::kBFloat16 : at::kFloat),
        groups_(prompt_groups(request, spec_.d_model)),
        weights_(model, device_, dtype_, groups_.size() > 1 ? request.weight_budget : 0),
        queue_(writer, kQueueBytes) {
    if (spec_.has_head) head_rows_.emplace(model, device_, dtype_);
  }

  std::optional<CaptureSummary> run() {
    const Clock::time_point begin = Clock::now();
    weights_.prefetch(0);
    read_shared_parts();
    count_work();
    for (const auto& [first, last] : groups_)
      if (!run_group(first, last)) return finish_canceled();
    job_.progress.stage = Stage::closing;
    queue_.drain();
    summary_.load_seconds = weights_.seconds_waited();
    summary_.forward_seconds = seconds_since(begin);
    summary_.write_seconds = queue_.seconds();
    summary_.mean_loss = scored_ > 0 ? loss_sum_ / static_cast<double>(scored_)
                                     : std::numeric_limits<double>::quiet_NaN();
    summary_.device = device_.str();
    return summary_;
  }

 private:
  void read_shared_parts() {
    const std::vector<float> gain = model_.norm_gain(Role::ln_final, kNoLayer).effective;
    final_gain_ = at::tensor(gain, at::kFloat).to(device_);
    if (spec_.rope.has_divisors) divisors_ = model_.read_vector(Role::rope_divisors, kNoLayer);
  }

  // Work is counted in multiply-adds of weights, so that the bar runs evenly through blocks and head.
  void count_work() {
    layer_work_ = std::int64_t{spec_.d_model} *
                  (2 * spec_.q_width() + 2 * spec_.kv_width() + 3 * spec_.d_mlp) / spec_.d_model;
    std::int64_t tokens = 0;
    for (const RunInput& run : request_.runs) tokens += run.seq_len();
    job_.progress.total = tokens * (layer_work_ * spec_.n_layers +
                                    (spec_.has_head ? spec_.vocab_size : 0));
    summary_.n_tokens = tokens;
  }

  bool run_group(int first, int last) {
    std::vector<PromptState> prompts;
    job_.progress.stage = Stage::reading;
    for (int r = first; r < last; ++r) prompts.push_back(start(r));
    job_.progress.stage = Stage::running;
    for (int layer = 0; layer < spec_.n_layers; ++layer) {
      job_.progress.layer = layer;
      if (layer + 1 == spec_.n_layers && head_rows_) head_rows_->prefetch();
      const std::shared_ptr<const LayerWeights> w = weights_.layer(layer);
      for (PromptState& p : prompts) {
        if (job_.stop.stop_requested()) return false;
        p.stream = run_block(spec_, *w, layer, p.rotary, p.stream, *p.recorder);
        if (!p.stream.defined()) return false;
        job_.progress.done += layer_work_ * p.stream.size(1);
      }
      queue_.push(0, [layer, first](CaptureWriter& out) { out.layer_done(layer + 1, first); });
    }
    job_.progress.stage = Stage::head;
    if (!finish_group(prompts)) return false;
    queue_.push(0, [this, last](CaptureWriter& out) { out.layer_done(spec_.n_layers, last); });
    return true;
  }

  PromptState start(int r) {
    const RunInput& input = request_.runs[static_cast<std::size_t>(r)];
    PromptState p;
    p.run = r;
    p.stream = embed(model_, input.token_ids, device_, dtype_);
    p.rotary = rotary_table(
        rope_frequencies(spec_.rope, spec_.n_ctx, input.seq_len(), divisors_), input.seq_len(),
        device_);
    p.recorder = std::make_unique<RunRecorder>(layout_, r, queue_, pool_,
                                               body_of(request_, device_), job_.stop);
    return p;
  }

  bool finish_group(std::vector<PromptState>& prompts) {
    std::vector<HeadRun> heads;
    for (PromptState& p : prompts) {
      const at::Tensor normed = rms_norm(p.stream, final_gain_, spec_.norm_eps);
      p.recorder->on_tap(Site::ln_final_out, kNoLayer, normed);
      p.stream = at::Tensor();
      HeadRun head;
      head.run = p.run;
      head.normed = normed[0];
      head.token_ids = request_.runs[static_cast<std::size_t>(p.run)].token_ids;
      heads.push_back(std::move(head));
    }
    if (!spec_.has_head) return true;
    const HeadOptions options{layout_.top_k, layout_.logits_full};
    if (!run_head(*head_rows_, heads, options, queue_, job_)) return false;
    for (HeadRun& head : heads) write_head(std::move(head));
    return true;
  }

  void write_head(HeadRun head) {
    for (float loss : head.loss) loss_sum_ += loss;
    scored_ += static_cast<std::int64_t>(head.loss.size());
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
  const ArchSpec& spec_;
  const CaptureRequest& request_;
  const CaptureLayout& layout_;
  JobContext job_;
  const at::Device device_;
  const at::ScalarType dtype_;
  const std::vector<std::pair<int, int>> groups_;
  WeightStore weights_;
  std::optional<HeadRows> head_rows_;
  BufferPool pool_;
  at::Tensor final_gain_;
  std::vector<float> divisors_;
  std::int64_t layer_work_ = 0;
  double loss_sum_ = 0;
  std::int64_t scored_ = 0;
  CaptureSummary summary_;
  WriteQueue queue_;  // last: its thread ends before what its jobs use
};

class TorchEngine : public Engine {
 public:
  TorchEngine() {
    // Activations and weights of one size come and go in every layer. Kept in the heap they cost
    // nothing; given back to the system each time they cost a page fault every 4 KiB.
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  }

  std::string torch_version() const override { return TORCH_VERSION; }

  std::string resolve_device(const std::string& request) const override {
    return translated([&] { return sinkscope::resolve_device(request).str(); });
  }

  std::string kernel(const CaptureRequest& request) const override {
    return translated([&]() -> std::string {
      const at::Device device = sinkscope::resolve_device(request.device);
      if (body_of(request, device) == AttentionBody::reference) return "reference";
      return fmt::format("fused ({})", name_of(kernel_isa()));
    });
  }

  std::optional<CaptureSummary> capture(const ModelFiles& model, const CaptureRequest& request,
                                        CaptureWriter& writer, JobContext job) override {
    const c10::InferenceMode inference;
    at::set_num_threads(resolved_threads(request));
    return translated([&] { return Run(model, request, writer, job).run(); });
  }

 private:
  // LibTorch's exceptions become ours here and nowhere else.
  template <class F>
  static auto translated(const F& f) -> decltype(f()) {
    try {
      return f();
    } catch (const c10::OutOfMemoryError& e) {
      throw Error(ErrorKind::out_of_memory, e.what_without_backtrace());
    } catch (const c10::Error& e) {
      const std::string what = e.what_without_backtrace();
      throw Error(ErrorKind::device, "LibTorch: " + what.substr(0, what.find('\n')));
    } catch (const std::bad_alloc&) {
      throw Error(ErrorKind::out_of_memory, "out of memory: fewer tokens or a smaller budget?");
    }
  }
};

}  // namespace

std::unique_ptr<Engine> make_engine() { return std::make_unique<TorchEngine>(); }

}  // namespace sinkscope
