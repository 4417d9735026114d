// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/engine.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <new>

#include "capture/model/attention_rows.h"
#include "capture/model/isa.h"
#include "capture/model_comparison.h"
#include "capture/run/capture_run.h"
#include "capture/run/compare_models.h"
#include "capture/run/device.h"
#include "capture/run/evaluate.h"
#include "capture/run/make_engine.h"
#include "capture/run/prompt_groups.h"
#include "core/error.h"

namespace sinkscope {
namespace {

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

class TorchEngine : public Engine, public ModelComparison {
 public:
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
    return translated([&] { return capture_runs(model, request, writer, job); });
  }

  void check_edits(const ModelFiles& model, const CaptureRequest& request) override {
    const c10::InferenceMode inference;
    translated([&] {
      WhatIfs what_ifs = what_ifs_of(request, model, sinkscope::resolve_device(request.device));
      require_one_group(request, model.spec());
      for (const RunInput& run : request.runs)
        if (run.edit_of >= 0) what_ifs.at(run.what_if)->lane(run.token_ids);
      for (const auto& [text, what_if] : what_ifs) what_if->check_tokens();
    });
  }

  std::optional<Evaluation> evaluate(const ModelFiles& model, const EvaluateRequest& request,
                                     JobContext job) override {
    const c10::InferenceMode inference;
    set_threads(request);
    return translated([&] { return evaluate_what_ifs(model, request, job); });
  }

  std::optional<std::vector<RunDivergence>> compare_models(const ModelFiles& a, const ModelFiles& b,
                                                           const EvaluateRequest& request,
                                                           JobContext job) override {
    const c10::InferenceMode inference;
    set_threads(request);
    return translated([&] { return sinkscope::compare_models(a, b, request, job); });
  }

 private:
  static void set_threads(const EvaluateRequest& request) {
    CaptureRequest threads;
    threads.threads = request.threads;
    at::set_num_threads(resolved_threads(threads));
  }

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
