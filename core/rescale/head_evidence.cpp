// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/rescale/head_evidence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/what_if/what_if.h"

namespace sinkscope {
namespace {

constexpr int kWindow = 64;  // of attention/window
// Of values in bfloat16 between the statistics and the record; a gate is far more.
constexpr double kRounding = 0.02;

class HeadReporter {
 public:
  HeadReporter(const HeadSource& source, RescaleReport& report)
      : source_(source), report_(report) {}

  void add_heads() {
    const std::string what_if = source_.reader.input(source_.run).what_if;
    if (!what_if.empty()) what_if_ = parse_what_if(what_if);
    if (!source_.weights) report_.not_computed["share through W_o"] = "no model: --model M";
    if (!source_.reader.has(source_.run, "attention/window")) {
      report_.not_computed["attention"] = "attention statistics, which this capture lacks";
      return;
    }
    const bool maps = has_whole_maps();
    const std::vector<int> layers = source_.reader.read_i32(source_.run, "attention/layers");
    const std::vector<int> recorded =
        maps ? source_.reader.read_i32(source_.run, "attention/pattern_layers")
             : std::vector<int>{};
    const int key = report_.options.key, T = report_.n_tokens, W = std::min(T, kWindow);
    if (key + 1 >= T) {
      report_.not_computed["attention on the key"] =
          fmt::format("queries behind key {}, which is the last", key);
      return;
    }
    if (!maps && key + 1 >= W) {
      report_.not_computed["attention on the key"] = fmt::format(
          "queries behind key {}, which the recorded {} x {} window ends before: --record maps",
          key, W, W);
      return;
    }
    report_.queries =
        maps ? "all queries behind the key, from the recorded maps"
             : fmt::format("queries {} to {}, from the recorded 64 x 64 window", key + 1, W - 1);
    const bool through_o = source_.weights &&
                           source_.reader.has(source_.run, "taps/attn.hook_z/values") &&
                           source_.reader.has(source_.run, "taps/attn.hook_v/values");
    if (source_.weights && !through_o)
      report_.not_computed["share through W_o"] = "recorded z and v: capture --record all";
    for (std::size_t a = 0; a < layers.size(); ++a) {
      if (layers[a] >= source_.reader.whole_layers(source_.run)) continue;
      const auto slot = std::find(recorded.begin(), recorded.end(), layers[a]);
      const int n = (slot != recorded.end() ? T : W) - key - 1;
      if (n < 1) {
        report_.not_computed[fmt::format("attention on the key in block {}", layers[a])] =
            "its recorded maps: --record maps";
        continue;
      }
      add_layer(layers[a], static_cast<int>(a),
                slot != recorded.end() ? static_cast<int>(slot - recorded.begin()) : -1, n);
      if (through_o) add_through_o(layers[a], static_cast<int>(a));
    }
  }

 private:
  void add_layer(int layer, int row, int slot, int n) {
    const std::int64_t T = report_.n_tokens, H = source_.model.n_heads,
                       most = source_.model.n_kv_heads;
    const auto sums =
        source_.reader.read_f64(source_.run, "attention/out_norm_sum", {row, 0, 0}, {1, H, T});
    const auto norms =
        source_.reader.read_f64(source_.run, "attention/value_norm", {row, 0, 0}, {1, most, T});
    const std::int64_t G = value_heads(norms, most);
    for (int h = 0; h < H; ++h) {
      HeadEvidence e;
      e.layer = layer;
      e.head = h;
      e.p = attention_on_key(slot, row, h, n);
      for (int i = 0; i < n; ++i) {
        const int q = report_.options.key + 1 + i;
        e.query.push_back(q);
        e.share_after.push_back(
            e.p[static_cast<std::size_t>(i)] *
            norms[static_cast<std::size_t>(h / (H / G) * T + report_.options.key)] /
            sums[static_cast<std::size_t>(h * T + q)]);
      }
      report_.heads.push_back(std::move(e));
    }
  }

  // Value heads of a layer in rows [most, n]: beyond them a capture has NaN where layers differ.
  template <class T>
  std::int64_t value_heads(const std::vector<T>& rows, std::int64_t most) const {
    const auto width = static_cast<std::ptrdiff_t>(rows.size()) / most;
    std::int64_t n = most;
    const auto is_nan = [](T value) { return std::isnan(value); };
    while (n > 1 && std::all_of(rows.begin() + (n - 1) * width, rows.begin() + n * width, is_nan))
      --n;
    return source_.model.n_heads % n == 0 ? n : most;
  }

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

  // Why z of a head is not Σ p v under this run's what-if; "" = nothing is in the way.
  std::string edited(int layer, int head) const {
    for (const Edit& edit : what_if_) {
      if (const auto* value = std::get_if<AttentionValue>(&edit);
          value != nullptr && value->layers.contains(layer) && value->heads.contains(head))
        return "values as they are, which this what-if scales";
      if (const auto* gate = std::get_if<AttentionGate>(&edit);
          gate != nullptr && gate->layers.contains(layer) && gate->heads.contains(head))
        return "z without the gate that this what-if puts in";
    }
    return "";
  }

  // Row of a block in taps/<hook>; −1 = it is not recorded there.
  std::int64_t tap_row(const char* hook, int layer) const {
    const std::string path = fmt::format("taps/{}/layers", hook);
    if (!source_.reader.has(source_.run, path)) return -1;
    const std::vector<int> layers = source_.reader.read_i32(source_.run, path);
    const auto place = std::find(layers.begin(), layers.end(), layer);
    return place == layers.end() ? -1 : place - layers.begin();
  }

  std::int64_t last_dim(const char* hook) const {
    return source_.reader.dims(source_.run, fmt::format("taps/{}/values", hook)).back();
  }

  // taps/<hook>/values of one block, [heads, T, d].
  std::vector<float> tap(const char* hook, std::int64_t row, std::int64_t heads,
                         std::int64_t d) const {
    const std::string path = fmt::format("taps/{}/values", hook);
    const std::int64_t T = report_.n_tokens;
    const auto found = source_.reader.dims(source_.run, path);
    if (found.size() != 4 || row >= found[0] || found[1] != heads || found[2] != T || found[3] != d)
      throw Error(
          ErrorKind::corrupt,
          fmt::format("{}::{}/{}: expected [N > {}, {}, {}, {}], found [{}]", source_.reader.path(),
                      source_.run, path, row, heads, T, d, fmt::join(found, ", ")));
    return source_.reader.read_f32(source_.run, path, {row, 0, 0, 0}, {1, heads, T, d});
  }

  // ‖z‖ is ‖Σ p v‖ as the statistics have it: nothing stands between the two.
  bool is_plain_z(const MatrixF& z, int attention_row, int head) const {
    const std::int64_t T = report_.n_tokens;
    const auto norm = source_.reader.read_f64(source_.run, "attention/out_norm",
                                              {attention_row, head, 0}, {1, 1, T});
    for (std::int64_t t = 0; t < T; ++t) {
      const double found = static_cast<double>(z.row(t).norm());
      if (std::abs(found - norm[static_cast<std::size_t>(t)]) >
          kRounding * norm[static_cast<std::size_t>(t)])
        return false;
    }
    return true;
  }

  // ‖p W (g ⊙ v_key)‖ / ‖W z‖ with the head's own columns of W_o, for the heads just added. The
  // width of a value is that of W_o: with latents it is not head_dim, and a block's heads may be
  // narrower than the record's rows, which are as long as the widest.
  void add_through_o(int layer, int attention_row) {
    const std::int64_t z_row = tap_row("attn.hook_z", layer), v_row = tap_row("attn.hook_v", layer),
                       gate_row = tap_row("attn.hook_gate", layer);
    if (z_row < 0 || v_row < 0) return;
    const std::int64_t T = report_.n_tokens, H = source_.model.n_heads,
                       most = source_.model.n_kv_heads, stored = last_dim("attn.hook_z"),
                       gate_dim = gate_row < 0 ? 0 : last_dim("attn.hook_gate");
    const std::vector<float> z = tap("attn.hook_z", z_row, H, stored),
                             v = tap("attn.hook_v", v_row, most, stored),
                             gate = gate_row < 0 ? std::vector<float>()
                                                 : tap("attn.hook_gate", gate_row, H, gate_dim);
    if (gate_dim > 1 && gate_dim != stored)
      throw Error(ErrorKind::corrupt, fmt::format("{}: expected gates of width 1 or {}, found {}",
                                                  source_.reader.path(), stored, gate_dim));
    std::int64_t d = 0;
    const std::int64_t G = value_heads(v, most);
    MatrixD whole = MatrixD::Zero(H, T), alone = MatrixD::Zero(H, T);
    source_.weights("o", layer, [&](const MatrixF& w) {  // [rows, H·d]
      d = w.cols() / H;
      if (w.cols() != H * d || d > stored)
        throw Error(ErrorKind::corrupt,
                    fmt::format("{}: expected values of width {} for W_o, found {}",
                                source_.reader.path(), d, stored));
      for (std::int64_t h = 0; h < H; ++h) {
        const MatrixF part = w.middleCols(h * d, d);
        const MatrixF zh = ConstMapF(z.data() + h * T * stored, T, stored).leftCols(d);
        MatrixF key(T, d);
        key.rowwise() = Eigen::Map<const Eigen::RowVectorXf>(
            v.data() + (h / (H / G) * T + report_.options.key) * stored, d);
        if (gate_dim == 1)  // one for all of a head's channels
          key.array().colwise() *= Eigen::Map<const Eigen::ArrayXf>(gate.data() + h * T, T);
        else if (gate_dim > 1)
          key.array() *= ConstMapF(gate.data() + h * T * stored, T, stored).leftCols(d).array();
        whole.row(h) += (zh * part.transpose()).rowwise().squaredNorm().transpose().cast<double>();
        alone.row(h) += (key * part.transpose()).rowwise().squaredNorm().transpose().cast<double>();
      }
    });
    if (d == 0) {
      report_.not_computed["share through W_o"] =
          "one matrix behind z: here the output is narrowed";
      return;
    }
    for (std::int64_t h = 0; h < H; ++h) {
      HeadEvidence& e = report_.heads[report_.heads.size() - static_cast<std::size_t>(H - h)];
      std::string needs = edited(layer, e.head);
      if (needs.empty() && gate.empty() &&
          !is_plain_z(ConstMapF(z.data() + h * T * stored, T, stored).leftCols(d), attention_row,
                      e.head))
        needs = "the recorded gate of z: capture --record all";
      if (!needs.empty()) {
        report_.not_computed[fmt::format("share through W_o in block {}", layer)] = needs;
        continue;
      }
      for (std::size_t i = 0; i < e.p.size(); ++i)
        e.through_o.push_back(e.p[i] * std::sqrt(alone(h, e.query[i]) / whole(h, e.query[i])));
    }
  }

  const HeadSource& source_;
  RescaleReport& report_;
  WhatIf what_if_;
};

}  // namespace

void add_head_evidence(const HeadSource& source, RescaleReport& report) {
  HeadReporter(source, report).add_heads();
}

}  // namespace sinkscope
