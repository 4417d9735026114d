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
#include <cstring>
#include <limits>
#include <map>
#include <new>

#include "capture/model/attention_rows.h"
#include "capture/model/isa.h"
#include "capture/record/recorder.h"
#include "capture/run/device.h"
#include "capture/run/evaluate.h"
#include "capture/run/make_engine.h"
#include "capture/run/model_pass.h"
#include "capture/run/prompt_groups.h"
#include "core/error.h"

namespace sinkscope {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

constexpr std::int64_t kQueueBytes = std::int64_t{64} << 20;

double mean_of(const std::vector<float>& values) {
  double sum = 0;
  for (float value : values) sum += value;
  return values.empty() ? std::numeric_limits<double>::quiet_NaN()
                        : sum / static_cast<double>(values.size());
}

// The what-ifs of the edited runs, by their text.
using WhatIfs = std::map<std::string, std::unique_ptr<WhatIfPass>>;

WhatIfs what_ifs_of(const std::vector<RunInput>& runs, const ModelFiles& model, at::Device device) {
  WhatIfs what_ifs;
  for (const RunInput& run : runs)
    if (run.edit_of >= 0 && !what_ifs.contains(run.what_if))
      what_ifs[run.what_if] =
          std::make_unique<WhatIfPass>(parse_what_if(run.what_if), model, device);
  return what_ifs;
}

AttentionBody body_of(const CaptureRequest& request, at::Device device) {
  const bool fused = request.kernel != "reference" && device.is_cpu();
  return fused ? AttentionBody::fused : AttentionBody::reference;
}

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::avx512:
      return "avx512";
    case Isa::avx2:
      return "avx2";
    case Isa::base:
      break;
  }
  return "baseline";
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
        groups_(resume_ != nullptr ? resumed_groups(request, model.spec().d_model, *resume_)
                                   : prompt_groups(request, model.spec().d_model)),
        pass_(model, device_, scalar_type(request.dtype),
              groups_.size() > 1 ? request.weight_budget : 0),
        what_ifs_(what_ifs_of(request.runs, model, device_)),
        queue_(writer, kQueueBytes) {
    if (!what_ifs_.empty() && groups_.size() > 1) refuse_groups(request.activation_budget);
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
    summary_.write_seconds = queue_.seconds();
    summary_.mean_loss = mean_of(loss_);
    summary_.edited_mean_loss = mean_of(edited_loss_);
    summary_.device = device_.str();
    return summary_;
  }

 private:
  void count_work() {
    job_.progress.done = 0;  // the same progress may have seen another recording
    std::int64_t tokens = 0;
    for (const RunInput& run : request_.runs) tokens += run.seq_len();
    const ArchSpec& spec = model_.spec();
    job_.progress.total =
        tokens * (pass_.layer_work() * spec.n_layers + (spec.has_head ? spec.vocab_size : 0));
    summary_.n_tokens = tokens;
  }

  void skip(int first, int last) {
    std::int64_t tokens = 0;
    for (int r = first; r < last; ++r)
      tokens += request_.runs[static_cast<std::size_t>(r)].seq_len();
    const ArchSpec& spec = model_.spec();
    job_.progress.done +=
        tokens * (pass_.layer_work() * spec.n_layers + (spec.has_head ? spec.vocab_size : 0));
  }

  bool run_group(int first, int last) {
    std::vector<Lane> lanes;
    job_.progress.stage = Stage::reading;
    for (int r = first; r < last; ++r) lanes.push_back(start(r));
    for (const auto& [text, what_if] : what_ifs_) what_if->check_tokens();
    const int first_layer = resume_ != nullptr && resume_->first_run == first ? go_on(lanes) : 0;
    job_.progress.stage = Stage::running;
    const bool is_whole = pass_.run_blocks(lanes, job_, first_layer, [&](int layer) {
      keep(lanes, layer + 1, first);
      queue_.push(0, [layer, first](CaptureWriter& out) { out.layer_done(layer + 1, first); });
    });
    if (!is_whole) return false;
    job_.progress.stage = Stage::head;
    if (!finish_group(lanes, first)) return false;
    queue_.push(0, [n_layers = model_.spec().n_layers, last](CaptureWriter& out) {
      out.layer_done(n_layers, last);
    });
    return true;
  }

  // Nothing writes into a stream: the queue shares the tensors until they are on disk.
  void keep(const std::vector<Lane>& lanes, int layers_done, int first) {
    std::vector<at::Tensor> streams;
    std::int64_t bytes = 0;
    for (const Lane& lane : lanes) {
      streams.push_back(lane.stream.to(at::kCPU).contiguous());
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
    if (resume_->streams.size() != lanes.size())
      throw Error(ErrorKind::corrupt, fmt::format("the kept state has {} runs, expected {}",
                                                  resume_->streams.size(), lanes.size()));
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      at::Tensor& stream = lanes[i].stream;
      const std::vector<std::byte>& kept = resume_->streams[i];
      if (kept.size() != stream.nbytes())
        throw Error(ErrorKind::corrupt, fmt::format("the kept state of run {} has {} bytes, "
                                                    "expected {}",
                                                    i, kept.size(), stream.nbytes()));
      at::Tensor host = at::empty(stream.sizes(), stream.options().device(at::kCPU));
      std::memcpy(host.mutable_data_ptr(), kept.data(), kept.size());
      stream = host.to(device_);
      lanes[i].listener->on_resume(stream);
      job_.progress.done += pass_.layer_work() * stream.size(1) * resume_->layers_done;
    }
    return resume_->layers_done;
  }

  Lane start(int r) {
    const RunInput& input = request_.runs[static_cast<std::size_t>(r)];
    WhatIfPass* what_if = input.edit_of >= 0 ? what_ifs_.at(input.what_if).get() : nullptr;
    return pass_.start(input.token_ids,
                       std::make_unique<RunRecorder>(layout_, r, queue_, pool_,
                                                     body_of(request_, device_), job_.stop),
                       what_if);
  }

  bool finish_group(std::vector<Lane>& lanes, int first) {
    std::vector<at::Tensor> normed = pass_.final_norms(lanes);
    if (!model_.spec().has_head) return true;
    std::vector<HeadRun> heads(lanes.size());
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      heads[i].run = first + static_cast<int>(i);
      heads[i].normed = std::move(normed[i]);
      heads[i].token_ids = *lanes[i].token_ids;
      const int base = request_.runs[static_cast<std::size_t>(heads[i].run)].edit_of;
      heads[i].baseline = base < 0 ? -1 : base - first;
    }
    const HeadOptions options{layout_.top_k, layout_.logits_full};
    if (!run_head(pass_.head_rows(), heads, options, &queue_, job_)) return false;
    compare(heads);
    for (HeadRun& head : heads) write_head(std::move(head));
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
  std::vector<float> loss_, edited_loss_;
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

  void check_edits(const ModelFiles& model, const CaptureRequest& request) override {
    const c10::InferenceMode inference;
    translated([&] {
      WhatIfs what_ifs =
          what_ifs_of(request.runs, model, sinkscope::resolve_device(request.device));
      if (prompt_groups(request, model.spec().d_model).size() > 1)
        refuse_groups(request.activation_budget);
      for (const RunInput& run : request.runs)
        if (run.edit_of >= 0) what_ifs.at(run.what_if)->lane(run.token_ids);
      for (const auto& [text, what_if] : what_ifs) what_if->check_tokens();
    });
  }

  std::optional<Evaluation> evaluate(const ModelFiles& model, const EvaluateRequest& request,
                                     JobContext job) override {
    const c10::InferenceMode inference;
    CaptureRequest threads;
    threads.threads = request.threads;
    at::set_num_threads(resolved_threads(threads));
    return translated([&] { return evaluate_what_ifs(model, request, job); });
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
