// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <chrono>
#include <numeric>

#include "capture/model/attention_products.h"
#include "capture/prediction.h"
#include "capture/record/block_size.h"

namespace sinkscope {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Σ over queries of the keys they see.
double seen_pairs(const ArchSpec& spec, int layer, double seq_len) {
  if (spec.mixer(layer) == Mixer::delta) return 0;
  if (spec.bidirectional) return seq_len * seq_len;
  const int window = spec.window.empty() ? 0 : spec.window[static_cast<std::size_t>(layer)];
  const double w = window > 0 ? std::min<double>(window, seq_len) : seq_len;
  return w * (w + 1) / 2 + (seq_len - w) * w;
}

// The largest tensor that can be decoded, or -1.
int largest_tensor(const Checkpoint& checkpoint) {
  int largest = -1;
  const auto& tensors = checkpoint.tensors();
  for (int i = 0; i < static_cast<int>(tensors.size()); ++i) {
    const TensorInfo& tensor = tensors[static_cast<std::size_t>(i)];
    if (tensor.readable && tensor.n_elements() > 0 &&
        (largest < 0 || tensor.n_bytes > tensors[static_cast<std::size_t>(largest)].n_bytes))
      largest = i;
  }
  return largest;
}

double bytes_read_a_second(const ModelFiles& model) {
  constexpr std::int64_t kValues = std::int64_t{2} << 20;
  const Checkpoint& checkpoint = model.checkpoint();
  const int index = largest_tensor(checkpoint);
  if (index < 0) return 1e9;
  const TensorInfo& tensor = checkpoint.tensors()[static_cast<std::size_t>(index)];
  const std::int64_t rows =
      std::clamp<std::int64_t>(kValues / tensor.row_size(), 1, tensor.n_rows());
  std::vector<float> values(static_cast<std::size_t>(rows * tensor.row_size()));
  const std::int64_t before = model.bytes_read();
  const Clock::time_point begin = Clock::now();
  // From the middle: the beginning may lie in memory from looking at the file.
  const std::int64_t first = (tensor.n_rows() - rows) / 2;
  checkpoint.read_rows(index, first, first + rows, values.data());
  return static_cast<double>(model.bytes_read() - before) / std::max(seconds_since(begin), 1e-6);
}

// Of one thread: products of 64 queries with 1,024 keys.
double operations_a_second() {
  constexpr int kRows = 64, kKeys = 1024, kWidth = 64, kTimes = 20;
  std::vector<float> q(kRows * kWidth, 0.5f), keys(kKeys * kWidth, 0.25f), scores(kRows * kKeys);
  std::vector<float> panels(static_cast<std::size_t>(panel_floats(kKeys, kWidth)));
  pack_keys(keys.data(), kWidth, kKeys, kWidth, panels.data());
  double best = 1;  // seconds
  for (int i = 0; i < kTimes; ++i) {
    const Clock::time_point begin = Clock::now();
    score_rows(q.data(), kWidth, kRows, kWidth, 1, panels.data(), kKeys, scores.data(), kKeys);
    best = std::min(best, seconds_since(begin));
  }
  return 2.0 * kRows * kKeys * kWidth / std::max(best, 1e-6);
}

}  // namespace

PredictedWork predicted_work(const ModelFiles& model, const CaptureRequest& request) {
  const ArchSpec& spec = model.spec();
  const std::vector<BlockSize> blocks = block_sizes(model);
  const double experts_a_token = spec.moe.n_used;
  PredictedWork work;
  for (std::size_t r = 0; r < request.runs.size(); ++r) {
    const double T = request.runs[r].seq_len();
    for (int layer = 0; layer < spec.n_layers; ++layer) {
      const BlockSize& block = blocks[static_cast<std::size_t>(layer)];
      work.operations += 2 * T *
                         (static_cast<double>(block.values) +
                          experts_a_token * static_cast<double>(block.expert_values));
      // q·k and p·v; their statistics take half as long again.
      work.operations += 1.5 * 2 * seen_pairs(spec, layer, T) * spec.n_heads *
                         (spec.head_dim_of(layer) + spec.d_value_of(layer));
    }
    if (spec.has_head)
      work.operations += 2 * T * spec.d_model * static_cast<double>(spec.vocab_size);
  }
  const auto n_groups = static_cast<std::int64_t>(prompt_groups(request, spec).size());
  const WeightUse use =
      weight_use(model, request.weight_budget, request.dtype, largest_group(request, spec));
  for (const BlockUse& block : use.blocks) {
    // Later groups find in memory what is kept.
    const std::int64_t again = block.kept > 0 ? 0 : block.stored;
    const double expert_share =
        block.expert_values > 0
            ? 1 - static_cast<double>(block.kept_experts) / static_cast<double>(block.expert_values)
            : 0;
    work.read_bytes +=
        block.stored + block.expert_stored +
        (n_groups - 1) * (again + static_cast<std::int64_t>(
                                      expert_share * static_cast<double>(block.expert_stored)));
  }
  if (spec.has_head) work.read_bytes += head_stored_bytes(model) * n_groups;
  return work;
}

MachineRates measured_rates(const ModelFiles& model, int threads) {
  return {bytes_read_a_second(model), operations_a_second() * threads};
}

double predicted_seconds(const PredictedWork& work, const MachineRates& rates) {
  // LibTorch, the file's structure, norms and statistics of other sites beside the products.
  constexpr double kStart = 0.5, kEfficiency = 0.75;
  return kStart + std::max(static_cast<double>(work.read_bytes) / rates.read_bytes,
                           work.operations / (kEfficiency * rates.operations));
}

}  // namespace sinkscope
