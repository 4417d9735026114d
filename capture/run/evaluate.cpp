// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/run/evaluate.h"

#include "capture/run/device.h"
#include "capture/run/model_pass.h"
#include "capture/run/prompt_groups.h"
#include "core/error.h"

namespace sinkscope {
namespace {

// Runs attention and keeps nothing.
class SilentListener final : public TapListener {
 public:
  SilentListener(std::stop_token stop, bool is_cpu) : stop_(std::move(stop)), is_cpu_(is_cpu) {}
  void on_tap(Site /*site*/, int /*layer*/, const at::Tensor& /*value*/) override {}
  at::Tensor on_attention(int /*layer*/, const AttentionCall& call) override {
    const auto T = static_cast<int>(call.q.size(0)), H = static_cast<int>(call.q.size(1)),
               G = static_cast<int>(call.k.size(1));
    AttentionStats stats(H, G, T);
    const TileGeometry tile = tile_geometry(T, H, G);
    return is_cpu_ && !call.selected.defined()
               ? attend_fused(call, tile, stats, nullptr, stop_)
               : attend_reference(call, tile, stats, nullptr, stop_);
  }

 private:
  std::stop_token stop_;
  bool is_cpu_;
};

}  // namespace

std::optional<Evaluation> evaluate_what_ifs(const ModelFiles& model, const EvaluateRequest& request,
                                            JobContext job) {
  const ArchSpec& spec = model.spec();
  if (!spec.has_head)
    throw Error(ErrorKind::unsupported, model.path() + ": this model has no head, so no loss");
  const at::Device device = resolve_device(request.device);
  const std::size_t n_runs = request.runs.size(), n_variants = request.variants.size();
  std::int64_t bytes = 0, tokens = 0;
  for (const RunInput& run : request.runs) {
    bytes += state_bytes(run.seq_len(), spec.d_model);
    tokens += run.seq_len();
  }
  const auto n_sets = static_cast<std::int64_t>(n_variants + 1);
  if (bytes * n_sets > request.activation_budget) refuse_groups(request.activation_budget);

  ModelPass pass(model, device, scalar_type(request.dtype), 0);
  pass.warm_up();
  job.progress.total = tokens * n_sets * (pass.layer_work() * spec.n_layers + spec.vocab_size);
  std::vector<std::unique_ptr<WhatIfPass>> what_ifs;
  for (const WhatIf& variant : request.variants)
    what_ifs.push_back(std::make_unique<WhatIfPass>(variant, model, device));
  std::vector<Lane> lanes;  // all runs as they are, then all runs of each variant
  for (std::size_t set = 0; set <= n_variants; ++set)
    for (const RunInput& run : request.runs)
      lanes.push_back(pass.start(run.token_ids,
                                 std::make_unique<SilentListener>(job.stop, device.is_cpu()),
                                 set == 0 ? nullptr : what_ifs[set - 1].get()));
  for (const auto& what_if : what_ifs) what_if->check_tokens();
  job.progress.stage = Stage::running;
  if (!pass.run_blocks(lanes, job, 0, [](int) {})) return std::nullopt;

  job.progress.stage = Stage::head;
  std::vector<at::Tensor> normed = pass.final_norms(lanes);
  std::vector<HeadRun> heads(lanes.size());
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    heads[i].normed = std::move(normed[i]);
    heads[i].token_ids = *lanes[i].token_ids;
    heads[i].baseline = i < n_runs ? -1 : static_cast<int>(i % n_runs);
  }
  if (!run_head(pass.head_rows(), heads, HeadOptions{0, false}, nullptr, job)) return std::nullopt;

  Evaluation result;
  for (std::size_t set = 0; set <= n_variants; ++set) {
    result.loss.emplace_back();
    if (set > 0) result.kl.emplace_back();
    for (std::size_t r = 0; r < n_runs; ++r) {
      HeadRun& head = heads[set * n_runs + r];
      result.loss.back().push_back(std::move(head.loss));
      if (set > 0) result.kl.back().push_back(std::move(head.kl));
    }
  }
  return result;
}

}  // namespace sinkscope
