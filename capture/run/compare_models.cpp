// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/run/compare_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "capture/prediction.h"
#include "capture/run/device.h"
#include "capture/run/model_pass.h"
#include "capture/run/prompt_groups.h"
#include "capture/run/silent_listener.h"
#include "core/error.h"

namespace sinkscope {
namespace {

// As many prompts together as the budget holds: through one model's blocks, then through the
// other's, then through both heads side by side, tile by tile.
class ModelComparer {
 public:
  ModelComparer(const ModelFiles& a, const ModelFiles& b, const EvaluateRequest& request,
                JobContext job)
      : request_(request),
        job_(job),
        device_(resolve_device(request.device)),
        groups_(groups(a.spec(), b.spec())),
        a_(a, device_, scalar_type(request.dtype), kept_weights(a)),
        b_(b, device_, scalar_type(request.dtype), kept_weights(b)) {}

  std::optional<std::vector<RunDivergence>> run() {
    count_work();
    for (const auto& [first, last] : groups_)
      if (!run_group(first, last)) return std::nullopt;
    return std::move(result_);
  }

 private:
  std::vector<std::pair<int, int>> groups(const ArchSpec& a, const ArchSpec& b) const {
    CaptureRequest request;
    request.runs = request_.runs;
    request.activation_budget = request_.activation_budget;
    return prompt_groups(request, state_bytes(1, a) > state_bytes(1, b) ? a : b);
  }

  // Weights are read again only where there is a second group; both models have their share.
  std::int64_t kept_weights(const ModelFiles& model) const {
    if (groups_.size() < 2) return 0;
    std::int64_t largest = 0;
    for (const auto& [first, last] : groups_) {
      std::int64_t n = 0;
      for (int r = first; r < last; ++r) n += request_.runs[static_cast<std::size_t>(r)].seq_len();
      largest = std::max(largest, n);
    }
    return kept_weight_bytes(model, request_.weight_budget / 2, request_.dtype, largest);
  }

  void count_work() {
    std::int64_t tokens = 0;
    for (const RunInput& run : request_.runs) tokens += run.seq_len();
    job_.progress.done = 0;  // the same progress may have seen another job
    job_.progress.total = 0;
    for (const ModelPass* pass : {&a_, &b_})
      job_.progress.total +=
          tokens * (pass->layer_work() * pass->spec().n_layers + pass->spec().head_rows());
  }

  // The final norms of the group's prompts; none: canceled.
  std::vector<at::Tensor> through(ModelPass& pass, int first, int last) {
    job_.progress.stage = Stage::reading;
    pass.warm_up();
    std::vector<Lane> lanes;
    for (int r = first; r < last; ++r)
      lanes.push_back(pass.start(request_.runs[static_cast<std::size_t>(r)].token_ids,
                                 std::make_unique<SilentListener>(job_.stop, device_.is_cpu()),
                                 nullptr));
    job_.progress.stage = Stage::running;
    if (!pass.run_blocks(lanes, job_, 0, [](int) {})) return {};
    return pass.final_norms(lanes);
  }

  bool run_group(int first, int last) {
    std::vector<at::Tensor> normed = through(a_, first, last);
    const std::size_t n = normed.size();
    if (n == 0) return false;
    for (at::Tensor& tensor : through(b_, first, last)) normed.push_back(std::move(tensor));
    if (normed.size() != 2 * n) return false;

    job_.progress.stage = Stage::head;
    std::vector<HeadRun> heads(normed.size());
    for (std::size_t i = 0; i < heads.size(); ++i) {
      heads[i].run = kUnrecorded;
      heads[i].normed = std::move(normed[i]);
      heads[i].token_ids = request_.runs[static_cast<std::size_t>(first) + i % n].token_ids;
      heads[i].baseline = i < n ? -1 : static_cast<int>(i - n);
    }
    if (!run_head(a_.head_rows(), heads, HeadOptions{0, false}, nullptr, job_, &b_.head_rows()))
      return false;
    for (std::size_t i = 0; i < n; ++i) {
      HeadRun &a = heads[i], &b = heads[n + i];
      b.kl.pop_back();  // the last position has no next token
      result_.push_back({request_.runs[static_cast<std::size_t>(first) + i], std::move(a.loss),
                         std::move(b.loss), std::move(b.kl)});
    }
    return true;
  }

  const EvaluateRequest& request_;
  JobContext job_;
  const at::Device device_;
  const std::vector<std::pair<int, int>> groups_;
  ModelPass a_, b_;
  std::vector<RunDivergence> result_;
};

}  // namespace

std::optional<std::vector<RunDivergence>> compare_models(const ModelFiles& a, const ModelFiles& b,
                                                         const EvaluateRequest& request,
                                                         JobContext job) {
  for (const ModelFiles* model : {&a, &b})
    if (!model->spec().has_head)
      throw Error(ErrorKind::unsupported,
                  model->path() + ": this model has no head, so no distribution to compare");
  if (a.spec().head_rows() != b.spec().head_rows())
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} has logits for {} tokens, {} for {}: a divergence needs one "
                            "vocabulary",
                            a.path(), a.spec().head_rows(), b.path(), b.spec().head_rows()));
  if (request.runs.empty()) throw Error(ErrorKind::invalid_argument, "nothing to run: no prompt");
  return ModelComparer(a, b, request, job).run();
}

}  // namespace sinkscope
