// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/rescale/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/capture_norms.h"
#include "core/error.h"
#include "core/rescale/head_evidence.h"
#include "core/rescale/theory.h"
#include "core/site_stats.h"

namespace sinkscope {
namespace {

// Rounding of recorded float32 values; a true violation is far larger.
constexpr double kSlack = 1e-5;

using Row = Eigen::RowVectorXf;

struct Gains {
  double max = 0, max_others = 0, min_others = std::numeric_limits<double>::infinity(), dim = 0;
};

// Of the chosen dimensions `dims`: the largest |λ| among them, and the extremes of the others.
Gains gains_of(std::span<const float> gain, const std::vector<int>& dims) {
  Gains g;
  for (std::size_t i = 0; i < gain.size(); ++i) {
    const double size = std::abs(static_cast<double>(gain[i]));
    g.max = std::max(g.max, size);
    if (std::find(dims.begin(), dims.end(), static_cast<int>(i)) != dims.end()) {
      g.dim = std::max(g.dim, size);
    } else {
      g.max_others = std::max(g.max_others, size);
      g.min_others = std::min(g.min_others, size);
    }
  }
  return g;
}

// Row of residual/sites that the norm reads.
int input_site(const std::string& role, int layer, int n_layers) {
  if (role == "ln1") return 2 * layer;
  return role == "ln2" ? 2 * layer + 1 : 2 * n_layers;
}

class Reporter {
 public:
  Reporter(const CaptureReader& reader, const std::string& run, const RescaleOptions& options,
           const WeightRows& weights)
      : reader_(reader),
        run_(run),
        options_(options),
        weights_(weights),
        model_(reader.model(run)) {
    const RunInput input = reader.input(run);
    report_.path = reader.path();
    report_.run = run;
    report_.model = model_.name;
    report_.n_layers = model_.n_layers;
    report_.n_tokens = input.seq_len();
    report_.options = options;
    report_.token_text = input.token_text;
    has_stream_ = reader.has(run, "residual/stream");
    check();
  }

  RescaleReport take() {
    for (const NormFacts& norm : read_norms(reader_, run_)) {
      if (norm.role != "ln1" && norm.role != "ln2" && norm.role != "ln_final") continue;
      if (norm.kind == "rms")
        add_norms(norm);
      else
        report_.not_computed["the bound at " + norm.role] = "it is no RMS norm: " + norm.kind;
    }
    add_head_evidence({reader_, run_, model_, weights_}, report_);
    if (!weights_) {
      report_.not_computed["contribution into the next linear layer"] = "no model: --model M";
      report_.not_computed["share through W_o"] = "no model: --model M";
    } else if (!has_stream_) {
      report_.not_computed["contribution into the next linear layer"] =
          "the recorded stream: capture --record stream";
    }
    return std::move(report_);
  }

 private:
  void check() const {
    if (model_.n_kv_heads < 1 || model_.n_heads % model_.n_kv_heads != 0)
      throw Error(ErrorKind::corrupt,
                  fmt::format("{}: expected n_heads a multiple of n_kv_heads, found {} and {}",
                              reader_.path(), model_.n_heads, model_.n_kv_heads));
    for (int d : options_.dims)
      if (d < 0 || d >= model_.d_model)
        refuse(fmt::format("dims: {} does not exist, expected 0 to {}", d, model_.d_model - 1));
    if (!options_.dims.empty() && !has_stream_)
      refuse(fmt::format("{}: chosen dimensions need the recorded stream (capture --record stream)",
                         reader_.path()));
    if (options_.key < 0 || options_.key >= report_.n_tokens)
      refuse(fmt::format("key: {} does not exist, expected 0 to {}", options_.key,
                         report_.n_tokens - 1));
  }
  [[noreturn]] static void refuse(const std::string& message) {
    throw Error(ErrorKind::invalid_argument, message);
  }

  void add_norms(const NormFacts& norm) {
    const std::string at = fmt::format("stats/{}.hook_out", norm.role);
    if (!reader_.has(run_, at + "/token/input_r2")) return;
    const std::vector<int> layers = reader_.read_i32(run_, at + "/layers");
    const std::int64_t T = report_.n_tokens;
    for (std::size_t n = 0; n < layers.size(); ++n) {
      const auto place = std::find(norm.layers.begin(), norm.layers.end(), layers[n]);
      if (place == norm.layers.end()) continue;
      if (layers[n] >= reader_.whole_layers(run_)) continue;
      const auto row = static_cast<std::int64_t>(n);
      const auto read = [&](const char* name) {
        return reader_.read_f64(run_, fmt::format("{}/token/{}", at, name), {row, 0}, {1, T});
      };
      NormEvidence evidence;
      evidence.role = norm.role;
      evidence.layer = layers[n];
      evidence.eps = norm.eps;
      evidence.output_rms = read("rms");
      evidence.r2 = read("input_r2");
      for (double d : read("input_max_dim")) evidence.dim.push_back(static_cast<int>(d));
      const std::vector<double> input_rms = read("input_rms");
      const std::span<const float> gain(
          norm.gain.data() + (place - norm.layers.begin()) * norm.width,
          static_cast<std::size_t>(norm.width));
      check_dims(evidence.dim, norm);
      const Row pre = pre_gain_of(norm, place - norm.layers.begin());
      if (!options_.dims.empty()) choose_dims(evidence, pre);
      fill(evidence, gain, input_rms);
      if (weights_ && has_stream_) next_linear(evidence, gain, pre, input_rms);
      report_.norms.push_back(std::move(evidence));
    }
  }

  // A capture may be a stranger's: indices and widths lead into memory.
  void check_dims(const std::vector<int>& dims, const NormFacts& norm) const {
    const auto is_bad = [&](int d) { return d < -1 || d >= model_.d_model; };
    if (norm.width != model_.d_model || std::any_of(dims.begin(), dims.end(), is_bad))
      throw Error(ErrorKind::corrupt,
                  fmt::format("{}: norm/{} and its statistics: expected width {}, found others",
                              reader_.path(), norm.role, model_.d_model));
  }

  // What the norm's input is multiplied by: ones where there is no such gain.
  Row pre_gain_of(const NormFacts& norm, std::ptrdiff_t row) const {
    const auto width = static_cast<Eigen::Index>(norm.width);
    if (norm.pre_gain.size() != norm.gain.size()) return Row::Ones(width);
    return Eigen::Map<const Row>(norm.pre_gain.data() + row * width, width);
  }

  // r_S² of the chosen dimensions, from the stream.
  void choose_dims(NormEvidence& e, const Row& pre) const {
    const int site = input_site(e.role, e.layer, model_.n_layers);
    for_each_stream_block(
        reader_, run_, site, model_.d_model, [&](int first, const ConstMapF& rows) {
          for (Eigen::Index r = 0; r < rows.rows(); ++r) {
            const Row seen = rows.row(r).cwiseProduct(pre);
            e.r2[static_cast<std::size_t>(first + r)] =
                joint_r2({seen.data(), static_cast<std::size_t>(seen.size())}, options_.dims);
          }
        });
    std::fill(e.dim.begin(), e.dim.end(), options_.dims.front());
  }

  void fill(NormEvidence& e, std::span<const float> gain, const std::vector<double>& rms) const {
    std::map<int, Gains> known;
    for (std::size_t t = 0; t < e.r2.size(); ++t) {
      const std::vector<int> dims =
          options_.dims.empty() ? std::vector<int>{e.dim[t]} : options_.dims;
      const auto [g, is_new] = known.emplace(dims.front(), Gains{});
      if (is_new) g->second = gains_of(gain, dims);
      const Gains& gains = g->second;
      const double square = rms[t] * rms[t];
      e.alpha.push_back(rescale_factor(e.r2[t], square, e.eps));
      e.bound_1.push_back(upper_bound_1(e.r2[t], gains.max, gains.dim / gains.max));
      e.bound_5.push_back(upper_bound_5(e.r2[t], gains.max_others, gains.dim));
      e.gain_max = gains.max;
      e.gain_dim.push_back(gains.dim);
      e.lower.push_back(lower_bound(e.r2[t], gains.min_others, gains.dim));
      // Of several dimensions an upper limit, with the largest of their gains.
      e.share_after.push_back(
          std::min(1.0, share_after(e.r2[t], gains.dim, square, e.eps, e.output_rms[t])));
      const double bound = std::min(e.bound_1.back(), e.bound_5.back());
      if (e.output_rms[t] > bound * (1 + kSlack)) ++e.n_above;
    }
  }

  // |y_d| ‖W[:,d]‖ / ‖W y‖, summed over the rows of W as they come.
  void next_linear(NormEvidence& e, std::span<const float> gain, const Row& pre,
                   const std::vector<double>& rms) const {
    const int T = report_.n_tokens, D = model_.d_model;
    MatrixF y(T, D);
    for_each_stream_block(
        reader_, run_, input_site(e.role, e.layer, model_.n_layers), D,
        [&](int first, const ConstMapF& rows) {
          for (Eigen::Index r = 0; r < rows.rows(); ++r) {
            const double square = rms[static_cast<std::size_t>(first + r)];
            const auto scale = static_cast<float>(1 / std::sqrt(square * square + e.eps));
            y.row(first + r) = rows.row(r).array() * pre.array() * scale *
                               Eigen::Map<const Eigen::RowVectorXf>(gain.data(), D).array();
          }
        });
    VectorD whole = VectorD::Zero(T), columns = VectorD::Zero(D);
    weights_(e.role, e.layer, [&](const MatrixF& w) {
      whole += (y * w.transpose()).rowwise().squaredNorm().cast<double>();
      columns += w.colwise().squaredNorm().transpose().cast<double>();
    });
    for (int t = 0; t < T; ++t) {
      double some = 0;  // several dimensions: the root of the summed squares
      const std::vector<int> dims = options_.dims.empty()
                                        ? std::vector<int>{e.dim[static_cast<std::size_t>(t)]}
                                        : options_.dims;
      for (int d : dims)  // −1: a token without any finite value
        some += d < 0 ? std::numeric_limits<double>::quiet_NaN()
                      : static_cast<double>(y(t, d)) * y(t, d) * columns(d);
      e.next_linear.push_back(std::sqrt(some / whole(t)));
    }
  }

  const CaptureReader& reader_;
  const std::string run_;
  const RescaleOptions& options_;
  const WeightRows& weights_;
  const ModelFacts model_;
  bool has_stream_ = false;
  RescaleReport report_;
};

}  // namespace

RescaleReport rescale_report(const CaptureReader& reader, const std::string& run,
                             const RescaleOptions& options, const WeightRows& weights) {
  return Reporter(reader, run, options, weights).take();
}

}  // namespace sinkscope
