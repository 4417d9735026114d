// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/run/head.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <limits>

#include "capture/model/attention_rows.h"
#include "capture/model/linear.h"
#include "capture/model/row_math.h"
#include "capture/model/read_weights.h"
#include "capture/record/background.h"

namespace sinkscope {
namespace {

constexpr std::int64_t kTokens = 512, kVocabularyRows = 1536;

struct Candidate {
  float logit;
  std::int32_t id;
};

// Running state of one token: ln Σ exp over the rows so far, the target's logit, the best k.
struct TokenState {
  double lse = -std::numeric_limits<double>::infinity();
  // The next token's logit; one that has none, an id beyond the head, keeps p = 0.
  float target = -std::numeric_limits<float>::infinity();
  // Of a twin: the baseline's ln Σ exp so far, and Σ p_baseline (z_baseline − z) under it.
  double baseline_lse = -std::numeric_limits<double>::infinity(), mean_gap = 0;
  double tile_lse = 0;          // ln Σ exp over the rows that were folded last
  std::vector<Candidate> best;  // sorted: larger first, lower id first among equals
};

double log_add(double a, double b) {
  const double top = std::max(a, b);
  return std::isinf(top) ? top : top + std::log1p(std::exp(std::min(a, b) - top));
}

void take_best(TokenState& state, const float* logits, int n, int first_id, std::size_t k) {
  if (k == 0) return;
  int i = 0;
  while (true) {
    // Rows come in id order, so an equal logit later never displaces an earlier one.
    const float bar =
        state.best.size() < k ? -std::numeric_limits<float>::infinity() : state.best.back().logit;
    i = first_above(logits, n, i, bar);
    if (i >= n) return;
    const Candidate c{logits[i], first_id + i};
    const auto place =
        std::upper_bound(state.best.begin(), state.best.end(), c,
                         [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
    state.best.insert(place, c);
    if (state.best.size() > k) state.best.pop_back();
    ++i;
  }
}

// Folds logits [tokens, rows] of ids first_id… into the states of tokens first_token….
void fold(const at::Tensor& logits, const HeadRun& run, std::vector<TokenState>& states,
          std::int64_t first_token, int first_id, int top_k) {
  const int n = static_cast<int>(logits.size(1));
  const float* values = logits.const_data_ptr<float>();
  at::parallel_for(0, logits.size(0), 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const float* row = values + r * n;
      const auto t = static_cast<std::size_t>(first_token + r);
      TokenState& state = states[t];
      state.tile_lse = log_sum_exp(row, n);
      state.lse = log_add(state.lse, state.tile_lse);
      take_best(state, row, n, first_id, static_cast<std::size_t>(top_k));
      if (t + 1 < run.token_ids.size()) {
        const int target = run.token_ids[t + 1] - first_id;
        if (target >= 0 && target < n) state.target = row[target];
      }
    }
  });
}

// KL(baseline ‖ twin) = Σ p (z_b − z_e) − lse_b + lse_e, where the sum comes tile by tile; the
// baseline's tile is the one that `baselines` were folded last.
void fold_gap(const at::Tensor& baseline, const at::Tensor& twin,
              const std::vector<TokenState>& baselines, std::vector<TokenState>& states,
              std::int64_t first_token) {
  const std::int64_t n = baseline.size(0), width = baseline.size(1);
  at::parallel_for(0, n, 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const auto t = static_cast<std::size_t>(first_token + r);
      const double tile_lse = baselines[t].tile_lse;
      const double gap = mean_gap(baseline.const_data_ptr<float>() + r * width,
                                  twin.const_data_ptr<float>() + r * width, width, tile_lse);
      // As the baseline's own sum grew, to the bit: equal logits give a KL of 0.
      TokenState& s = states[t];
      const double both = log_add(s.baseline_lse, tile_lse);
      s.mean_gap = s.mean_gap * std::exp(s.baseline_lse - both) + gap * std::exp(tile_lse - both);
      s.baseline_lse = both;
    }
  });
}

void finish(HeadRun& run, const std::vector<TokenState>& states, int top_k) {
  for (std::size_t t = 0; t < states.size(); ++t) {
    const TokenState& s = states[t];
    if (t + 1 < states.size()) run.loss.push_back(static_cast<float>(s.lse - s.target));
    // Rounding may leave a hair below zero.
    if (run.baseline >= 0)
      run.kl.push_back(static_cast<float>(std::max(0.0, s.mean_gap - s.baseline_lse + s.lse)));
    for (int i = 0; i < top_k; ++i) {
      const bool there = static_cast<std::size_t>(i) < s.best.size();
      const Candidate c = there ? s.best[static_cast<std::size_t>(i)] : Candidate{0, -1};
      run.top_ids.push_back(c.id);
      run.top_logprob.push_back(there ? static_cast<float>(c.logit - s.lse)
                                      : std::numeric_limits<float>::quiet_NaN());
    }
  }
}

}  // namespace

HeadRows::HeadRows(const ModelFiles& model, at::Device device, at::ScalarType dtype)
    : model_(model),
      device_(device),
      dtype_(dtype),
      role_(model.has(Role::unembed, kNoLayer) ? Role::unembed : Role::embed),
      vocab_size_(model.spec().head_rows()) {}

void HeadRows::start(std::int64_t begin) {
  next_ = std::async(std::launch::async, [this, begin] {
    run_in_background();
    const c10::InferenceMode inference;
    return read_matrix(model_, role_, kNoLayer, begin,
                       std::min(vocab_size_, begin + kVocabularyRows), device_, dtype_);
  });
}

void HeadRows::prefetch() {
  if (!next_.valid()) start(0);
}

at::Tensor HeadRows::slice(std::int64_t begin) {
  prefetch();
  at::Tensor rows = next_.get();
  if (begin + kVocabularyRows < vocab_size_) start(begin + kVocabularyRows);
  return rows;
}

at::Tensor HeadRows::finished(const at::Tensor& products) const {
  const ArchSpec& spec = model_.spec();
  at::Tensor logits = products.to(at::kCPU, at::kFloat).contiguous();
  if (spec.logit_scale != 1) logits = logits.mul(spec.logit_scale);
  if (spec.logit_cap > 0) logits = logits.div(spec.logit_cap).tanh_().mul_(spec.logit_cap);
  return logits;
}

bool run_head(HeadRows& head_rows, std::vector<HeadRun>& runs, const HeadOptions& options,
              WriteQueue* queue, JobContext job, HeadRows* twin_rows) {
  const std::int64_t V = head_rows.vocab_size();
  std::vector<std::vector<TokenState>> states;
  for (const HeadRun& run : runs) states.emplace_back(run.token_ids.size());
  for (std::int64_t begin = 0; begin < V; begin += kVocabularyRows) {
    const at::Tensor own_rows = head_rows.slice(begin);
    const at::Tensor other_rows = twin_rows == nullptr ? own_rows : twin_rows->slice(begin);
    // One tile of one run; what a twin is compared with is at hand while its baseline is.
    const auto tile = [&](std::size_t r, std::int64_t t, std::int64_t n) {
      const bool is_other = runs[r].baseline >= 0 && twin_rows != nullptr;
      const at::Tensor& rows = is_other ? other_rows : own_rows;
      const at::Tensor logits = (is_other ? *twin_rows : head_rows)
                                    .finished(linear_layer(runs[r].normed.narrow(0, t, n), rows));
      const bool is_recorded = runs[r].run != kUnrecorded;
      fold(logits, runs[r], states[r], t, static_cast<int>(begin), is_recorded ? options.top_k : 0);
      if (options.logits_full && is_recorded && queue != nullptr)
        queue->push(logits.numel() * 4, [=, file_run = runs[r].run](CaptureWriter& writer) {
          writer.write(file_run, "logits/full", {t, begin}, {logits.size(0), logits.size(1)},
                       logits.const_data_ptr<float>());
        });
      job.progress.done += n * rows.size(0);
      return logits;
    };
    for (std::size_t r = 0; r < runs.size(); ++r) {
      if (runs[r].baseline >= 0) continue;
      for (std::int64_t t = 0; t < runs[r].normed.size(0); t += kTokens) {
        if (job.stop.stop_requested()) return false;
        const std::int64_t n = std::min(kTokens, runs[r].normed.size(0) - t);
        const at::Tensor logits = tile(r, t, n);
        for (std::size_t twin = 0; twin < runs.size(); ++twin)
          if (runs[twin].baseline == static_cast<int>(r))
            fold_gap(logits, tile(twin, t, n), states[r], states[twin], t);
      }
    }
  }
  for (std::size_t r = 0; r < runs.size(); ++r)
    finish(runs[r], states[r], runs[r].run == kUnrecorded ? 0 : options.top_k);
  return true;
}

}  // namespace sinkscope
