// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/rescale/head_evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sinkscope {
namespace {

class HeadReporter {
 public:
  HeadReporter(const HeadSource& source, RescaleReport& report)
      : source_(source), report_(report) {}

  void add_heads() {
    if (!source_.reader.has(source_.run, "attention/window")) {
      report_.not_computed["attention"] = "attention statistics, which this capture lacks";
      return;
    }
    const bool maps = has_whole_maps();
    const std::vector<int> layers = source_.reader.read_i32(source_.run, "attention/layers");
    const std::vector<int> recorded =
        maps ? source_.reader.read_i32(source_.run, "attention/pattern_layers")
             : std::vector<int>{};
    const std::int64_t T = report_.n_tokens, H = source_.model.n_heads,
                       G = source_.model.n_kv_heads;
    const auto W = std::min<std::int64_t>(T, 64);
    report_.queries = maps ? "all queries behind the key, from the recorded maps"
                           : fmt::format("queries {} to {}, from the recorded 64 x 64 window",
                                         report_.options.key + 1, W - 1);
    const bool through_o = source_.weights &&
                           source_.reader.has(source_.run, "taps/attn.hook_z/values") &&
                           source_.reader.has(source_.run, "taps/attn.hook_v/values");
    if (source_.weights && !through_o)
      report_.not_computed["share through W_o"] = "recorded z and v: capture --record all";
    for (std::size_t a = 0; a < layers.size(); ++a) {
      if (layers[a] >= source_.reader.whole_layers(source_.run)) continue;
      const auto slot = std::find(recorded.begin(), recorded.end(), layers[a]);
      const int n = static_cast<int>((slot != recorded.end() ? T : W) - report_.options.key - 1);
      if (n < 1) continue;
      const auto row = static_cast<std::int64_t>(a);
      const auto sums =
          source_.reader.read_f64(source_.run, "attention/out_norm_sum", {row, 0, 0}, {1, H, T});
      const auto norms = source_.reader.read_f64(source_.run, "attention/value_norm",
                                                 {row, 0, report_.options.key}, {1, G, 1});
      for (int h = 0; h < H; ++h) {
        HeadEvidence e;
        e.layer = layers[a];
        e.head = h;
        e.p = attention_on_key(
            slot != recorded.end() ? static_cast<int>(slot - recorded.begin()) : -1,
            static_cast<int>(a), h, n);
        for (int i = 0; i < n; ++i) {
          const int q = report_.options.key + 1 + i;
          e.query.push_back(q);
          e.share_after.push_back(e.p[static_cast<std::size_t>(i)] *
                                  norms[static_cast<std::size_t>(h / (H / G))] /
                                  sums[static_cast<std::size_t>(h * T + q)]);
        }
        report_.heads.push_back(std::move(e));
      }
      if (through_o) add_through_o(layers[a]);
    }
  }

 private:
  // Attention on the key by every known query behind it, [n queries].
  std::vector<double> attention_on_key(int slot, int row, int head, int n) const {
    const std::int64_t first = report_.options.key + 1;
    if (slot >= 0)
      return source_.reader.read_f64(source_.run, "attention/pattern",
                                     {slot, head, first, report_.options.key}, {1, 1, n, 1});
    return source_.reader.read_f64(source_.run, "attention/window",
                                   {row, head, first, report_.options.key}, {1, 1, n, 1});
  }

  bool has_whole_maps() const {
    if (!source_.reader.has(source_.run, "attention/pattern")) return false;
    const auto dims = source_.reader.dims(source_.run, "attention/pattern");
    return dims[1] == source_.model.n_heads && dims[2] == report_.n_tokens;
  }

  // ‖p W v_key‖ / ‖W z‖ with the head's own columns of W_o, for the heads just added.
  void add_through_o(int layer) {
    const std::vector<int> taps = source_.reader.read_i32(source_.run, "taps/attn.hook_z/layers");
    const auto place = std::find(taps.begin(), taps.end(), layer);
    if (place == taps.end()) return;
    const std::int64_t slot = place - taps.begin(), T = report_.n_tokens, H = source_.model.n_heads,
                       G = source_.model.n_kv_heads, d = source_.model.head_dim;
    const auto z = source_.reader.read_f32(source_.run, "taps/attn.hook_z/values", {slot, 0, 0, 0},
                                           {1, H, T, d});
    const auto v = source_.reader.read_f32(source_.run, "taps/attn.hook_v/values",
                                           {slot, 0, report_.options.key, 0}, {1, G, 1, d});
    MatrixF whole(H, T);
    VectorD alone = VectorD::Zero(H);
    whole.setZero();
    source_.weights("o", layer, [&](const MatrixF& w) {  // [rows, H·d]
      for (std::int64_t h = 0; h < H; ++h) {
        const MatrixF part = w.middleCols(h * d, d);
        const ConstMapF zh(z.data() + h * T * d, T, d);
        const Eigen::Map<const VectorF> vh(v.data() + (h / (H / G)) * d, d);
        whole.row(h) += (zh * part.transpose()).rowwise().squaredNorm().transpose();
        alone(h) += static_cast<double>((part * vh).squaredNorm());
      }
    });
    for (std::int64_t h = 0; h < H; ++h) {
      HeadEvidence& e = report_.heads[report_.heads.size() - static_cast<std::size_t>(H - h)];
      for (std::size_t i = 0; i < e.p.size(); ++i)
        e.through_o.push_back(e.p[i] * std::sqrt(alone(h) / whole(h, e.query[i])));
    }
  }

  const HeadSource& source_;
  RescaleReport& report_;
};

}  // namespace

void add_head_evidence(const HeadSource& source, RescaleReport& report) {
  HeadReporter(source, report).add_heads();
}

}  // namespace sinkscope
