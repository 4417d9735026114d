// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/run/evaluate.h"

#include <algorithm>

#include "capture/prediction.h"
#include "capture/run/device.h"
#include "capture/run/model_pass.h"
#include "capture/run/prompt_groups.h"
#include "capture/run/silent_listener.h"
#include "core/error.h"

namespace sinkscope {
namespace {

// All variants, as many at a time as the budget holds beside the model as it is. That one runs with
// the first batch; of later ones only its final norms take part.
class Evaluator {
 public:
  Evaluator(const ModelFiles& model, const EvaluateRequest& request, JobContext job)
      : model_(model),
        request_(request),
        job_(job),
        device_(resolve_device(request.device)),
        batch_(batch_size()),
        pass_(model, device_, scalar_type(request.dtype),
              request.variants.size() > batch_ ? kept_bytes() : 0) {
    for (const WhatIf& variant : request.variants)
      what_ifs_.push_back(std::make_unique<WhatIfPass>(variant, model, device_));
  }

  std::optional<Evaluation> run() {
    pass_.warm_up();
    count_work();
    const std::size_t n = request_.variants.size();
    for (std::size_t begin = 0; begin == 0 || begin < n; begin += batch_)
      if (!run_batch(begin, std::min(n, begin + batch_))) return std::nullopt;
    return std::move(result_);
  }

 private:
  std::size_t n_runs() const { return request_.runs.size(); }

  std::size_t batch_size() const {
    std::int64_t bytes = 0;
    for (const RunInput& run : request_.runs) bytes += state_bytes(run.seq_len(), model_.spec());
    const std::int64_t sets = request_.activation_budget / std::max<std::int64_t>(1, bytes);
    if (sets < (request_.variants.empty() ? 1 : 2)) refuse_groups(request_.activation_budget);
    return static_cast<std::size_t>(std::max<std::int64_t>(1, sets - 1));
  }

  // Weights that are kept between batches.
  std::int64_t kept_bytes() const {
    std::int64_t tokens = 0;
    for (const RunInput& run : request_.runs) tokens += run.seq_len();
    return kept_weight_bytes(model_, request_.weight_budget, request_.dtype,
                             tokens * static_cast<std::int64_t>(batch_ + 1));
  }

  void count_work() {
    std::int64_t tokens = 0;
    for (const RunInput& run : request_.runs) tokens += run.seq_len();
    const auto n = static_cast<std::int64_t>(request_.variants.size());
    const std::int64_t batches = std::max<std::int64_t>(
        1, (n + static_cast<std::int64_t>(batch_) - 1) / static_cast<std::int64_t>(batch_));
    job_.progress.done = 0;  // the same progress may have seen another evaluation
    job_.progress.total = tokens * ((n + 1) * pass_.layer_work() * pass_.spec().n_layers +
                                    (n + batches) * pass_.spec().head_rows());
  }

  void start_lanes(std::vector<Lane>& lanes, WhatIfPass* what_if) {
    for (const RunInput& run : request_.runs)
      lanes.push_back(pass_.start(
          run.token_ids, std::make_unique<SilentListener>(job_.stop, device_.is_cpu()), what_if));
  }

  bool run_batch(std::size_t begin, std::size_t end) {
    job_.progress.stage = Stage::reading;
    std::vector<Lane> lanes;  // all runs as they are, then all runs of each variant
    if (begin == 0) start_lanes(lanes, nullptr);
    for (std::size_t v = begin; v < end; ++v) {
      start_lanes(lanes, what_ifs_[v].get());
      what_ifs_[v]->check_tokens();
    }
    job_.progress.stage = Stage::running;
    if (!pass_.run_blocks(lanes, job_, 0, [](int) {})) return false;

    job_.progress.stage = Stage::head;
    std::vector<at::Tensor> normed = pass_.final_norms(lanes);
    if (begin == 0)
      baseline_.assign(normed.begin(), normed.begin() + static_cast<std::ptrdiff_t>(n_runs()));
    else
      normed.insert(normed.begin(), baseline_.begin(), baseline_.end());
    std::vector<HeadRun> heads(normed.size());
    for (std::size_t i = 0; i < heads.size(); ++i) {
      heads[i].run = kUnrecorded;
      heads[i].normed = std::move(normed[i]);
      heads[i].token_ids = request_.runs[i % n_runs()].token_ids;
      heads[i].baseline = i < n_runs() ? -1 : static_cast<int>(i % n_runs());
    }
    if (!run_head(pass_.head_rows(), heads, HeadOptions{0, false}, nullptr, job_)) return false;
    take(heads, begin == 0);
    return true;
  }

  void take(std::vector<HeadRun>& heads, bool is_first) {
    for (std::size_t set = is_first ? 0 : 1; set < heads.size() / n_runs(); ++set) {
      result_.loss.emplace_back();
      if (set > 0) result_.kl.emplace_back();
      for (std::size_t r = 0; r < n_runs(); ++r) {
        HeadRun& head = heads[set * n_runs() + r];
        result_.loss.back().push_back(std::move(head.loss));
        if (set > 0) result_.kl.back().push_back(std::move(head.kl));
      }
    }
  }

  const ModelFiles& model_;
  const EvaluateRequest& request_;
  JobContext job_;
  const at::Device device_;
  const std::size_t batch_;  // variants
  ModelPass pass_;
  std::vector<std::unique_ptr<WhatIfPass>> what_ifs_;
  std::vector<at::Tensor> baseline_;  // final norms of the model as it is
  Evaluation result_;
};

}  // namespace

std::optional<Evaluation> evaluate_what_ifs(const ModelFiles& model, const EvaluateRequest& request,
                                            JobContext job) {
  if (!model.spec().has_head)
    throw Error(ErrorKind::unsupported, model.path() + ": this model has no head, so no loss");
  if (request.runs.empty()) throw Error(ErrorKind::invalid_argument, "nothing to run: no prompt");
  return Evaluator(model, request, job).run();
}

}  // namespace sinkscope
