// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/rescale/norm_evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "core/capture_norms.h"
#include "core/error.h"
#include "core/rescale/norm_output.h"
#include "core/rescale/theory.h"
#include "core/stream_blocks.h"

namespace sinkscope {
namespace {

// Rounding of recorded float32 values; a true violation is far larger.
constexpr double kSlack = 1e-5;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Row = Eigen::RowVectorXf;

struct Gains {
  double max = 0, max_others = 0, min_others = std::numeric_limits<double>::infinity(), dim = 0;
};

// Of the chosen dimensions `dims`: the largest |λ| among them, and the extremes of the others.
Gains gains_of(const Row& gain, const std::vector<int>& dims) {
  Gains g;
  for (Eigen::Index i = 0; i < gain.size(); ++i) {
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

// Norms of what a half of a block puts out, before it is added.
bool is_behind_a_half(const std::string& role) { return role == "ln1_post" || role == "ln2_post"; }

bool is_of_the_stream(const std::string& role) {
  return role == "ln1" || role == "ln2" || role == "ln_final" || is_behind_a_half(role);
}

// Why a norm of heads or latents has no evidence.
std::string missing_input(const std::string& role) {
  const bool is_of_heads = role == "q_norm" || role == "k_norm";
  return is_of_heads ? fmt::format(
                           "its input: {} before the norm, which no capture keeps (attn.hook_{} is "
                           "behind it)",
                           role[0] == 'q' ? "queries" : "keys", role[0])
                     : std::string("its input, which no capture keeps");
}

// One norm of one block, as it is read.
struct NormInput {
  Row gain, pre;                   // [D]; pre: what the norm's input is multiplied by, or ones
  std::vector<double> rms;         // [T] of the input
  std::vector<double> share_gain;  // [T] |λ_d|; of several dimensions √(Σ λ_d² h_d² / Σ h_d²)
  std::vector<double> clipped_part;  // [T] Σ_d min(h_d², c_d²) / Σ_d h_d²
  NormChange change = NormChange::none;
};

class NormReporter {
 public:
  NormReporter(const NormSource& source, RescaleReport& report)
      : source_(source), reader_(source.reader), run_(source.run), report_(report) {
    const std::string what_if = reader_.input(run_).what_if;
    if (!what_if.empty()) what_if_ = parse_what_if(what_if);
    has_stream_ = reader_.has(run_, "residual/stream") && norms_read_stream(reader_, run_);
  }

  void add_norms() {
    for (const NormFacts& norm : read_norms(reader_, run_)) {
      if (!is_of_the_stream(norm.role))
        report_.not_computed["the norm " + norm.role] = missing_input(norm.role);
      else if (norm.kind == "rms")
        add_norms(norm);
      else
        report_.not_computed["the bound at " + norm.role] = "it is no RMS norm: " + norm.kind;
    }
    if (!source_.weights)
      report_.not_computed["contribution into the next linear layer"] = "no model: --model M";
  }

 private:
  void add_norms(const NormFacts& norm) {
    const std::string at = fmt::format("stats/{}.hook_out", norm.role);
    if (!reader_.has(run_, at + "/token/input_r2")) {
      if (is_behind_a_half(norm.role))
        report_.not_computed["the norm " + norm.role] =
            "statistics of its input, which this capture lacks: record it again";
      return;
    }
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
      NormEvidence e;
      e.role = norm.role;
      e.layer = layers[n];
      e.eps = norm.eps;
      e.output_rms = read("rms");
      e.r2 = read("input_r2");
      for (double d : read("input_max_dim")) e.dim.push_back(static_cast<int>(d));
      check_dims(e.dim, norm);
      NormInput input = input_of(norm, place - norm.layers.begin(), e);
      input.rms = read("input_rms");
      input.change = norm_change(reader_, run_, what_if_, e.role, e.layer);
      if (!choose_dims(e, input)) continue;
      fill(e, input);
      if (!take_recorded_shares(e) && input.change != NormChange::none)
        note_change(e, input, "share after");
      if (source_.weights && !is_behind_a_half(e.role)) next_linear(e, input);
      report_.norms.push_back(std::move(e));
    }
  }

  // A capture may be a stranger's: indices and widths lead into memory.
  void check_dims(const std::vector<int>& dims, const NormFacts& norm) const {
    const auto is_bad = [&](int d) { return d < -1 || d >= source_.model.d_model; };
    if (norm.width != source_.model.d_model || std::any_of(dims.begin(), dims.end(), is_bad))
      throw Error(ErrorKind::corrupt,
                  fmt::format("{}: norm/{} and its statistics: expected width {}, found others",
                              reader_.path(), norm.role, source_.model.d_model));
  }

  NormInput input_of(const NormFacts& norm, std::ptrdiff_t row, const NormEvidence& e) const {
    const auto width = static_cast<Eigen::Index>(norm.width);
    NormInput input;
    input.gain = Eigen::Map<const Row>(norm.gain.data() + row * width, width);
    input.pre = norm.pre_gain.size() == norm.gain.size()
                    ? Row(Eigen::Map<const Row>(norm.pre_gain.data() + row * width, width))
                    : Row(Row::Ones(width));
    input.share_gain.resize(e.r2.size());
    input.clipped_part.resize(e.r2.size());
    return input;
  }

  std::vector<int> dims_at(const NormEvidence& e, std::size_t t) const {
    return report_.options.dims.empty() ? std::vector<int>{e.dim[t]} : report_.options.dims;
  }

  // Row of residual/sites that the norm reads. Parallel blocks have no state between their halves.
  int input_site(const NormEvidence& e) const {
    const int L = report_.n_layers;
    if (reader_.dims(run_, "residual/stream").at(0) == L + 1) return e.layer < 0 ? L : e.layer;
    if (e.role == "ln_final") return 2 * L;
    return e.role == "ln1" ? 2 * e.layer : 2 * e.layer + 1;
  }

  // What each token's dimension, or the chosen ones together, are to the norm. False = what the
  // chosen ones are is not known; said in not_computed.
  bool choose_dims(NormEvidence& e, NormInput& input) {
    if (report_.options.dims.empty()) {
      take_largest(e, input);
      return true;
    }
    const auto visit = [&](int first, const ConstMapF& rows) {
      for (Eigen::Index r = 0; r < rows.rows(); ++r)
        take_chosen(e, input, static_cast<std::size_t>(first + r),
                    rows.row(r).cwiseProduct(input.pre));
    };
    if (!is_behind_a_half(e.role))
      for_each_stream_block(reader_, run_, input_site(e), source_.model.d_model, visit);
    else if (!take_chosen_of_output(e, input))
      return false;
    std::fill(e.dim.begin(), e.dim.end(), report_.options.dims.front());
    return true;
  }

  void take_largest(NormEvidence& e, NormInput& input) const {
    const double clip = report_.options.clip;
    for (std::size_t t = 0; t < e.r2.size(); ++t) {
      const int d = e.dim[t];  // −1: a token without any finite value
      const double square = e.r2[t] * input.rms[t] * input.rms[t] * source_.model.d_model;
      const double limit = d < 0 ? kNaN : clip * static_cast<double>(input.pre[d]);
      input.share_gain[t] = d < 0 ? kNaN : std::abs(static_cast<double>(input.gain[d]));
      input.clipped_part[t] = std::min(1.0, limit * limit / square);
    }
  }

  // Of one token's norm input.
  void take_chosen(NormEvidence& e, NormInput& input, std::size_t t, const Row& seen) const {
    const std::vector<int>& dims = report_.options.dims;
    e.r2[t] = joint_r2({seen.data(), static_cast<std::size_t>(seen.size())}, dims);
    double square = 0, after = 0, clipped = 0;
    for (int d : dims) {
      const double h = seen[d], limit = report_.options.clip * static_cast<double>(input.pre[d]);
      square += h * h;
      after += std::pow(h * static_cast<double>(input.gain[d]), 2);
      clipped += std::min(h * h, limit * limit);
    }
    input.share_gain[t] = square > 0 ? std::sqrt(after / square) : 0;
    input.clipped_part[t] = square > 0 ? clipped / square : 1;
  }

  // What a norm behind a half has read is in no capture, but its output over its gain is that over
  // its root mean square.
  bool take_chosen_of_output(NormEvidence& e, NormInput& input) {
    std::string needs;
    if (input.change != NormChange::none)
      needs = "the norm as it is, which this what-if edits";
    else if ((input.gain.array() == 0).any())
      needs = "gains other than 0: those hide part of its input";
    const auto visit = [&](int first, const ConstMapF& rows) {
      for (Eigen::Index r = 0; r < rows.rows(); ++r) {
        const auto t = static_cast<std::size_t>(first + r);
        const auto rms = static_cast<float>(std::sqrt(input.rms[t] * input.rms[t] + e.eps));
        take_chosen(e, input, t, (rows.row(r).array() / input.gain.array() * rms).matrix());
      }
    };
    if (needs.empty() &&
        !for_each_output_block(reader_, run_, e.role, e.layer, source_.model.d_model, visit))
      needs = "its recorded output: --record all";
    if (!needs.empty()) report_.not_computed["chosen dimensions at " + e.role] = needs;
    return needs.empty();
  }

  void fill(NormEvidence& e, const NormInput& input) {
    const bool is_own = input.change != NormChange::edited;  // its factors are those of the norm
    if (!is_own)
      report_.not_computed["rescale factors at " + e.role] =
          "the norm as it is, which this what-if edits";
    std::map<int, Gains> known;
    for (std::size_t t = 0; t < e.r2.size(); ++t) {
      const std::vector<int> dims = dims_at(e, t);
      const auto [g, is_new] = known.emplace(dims.front(), Gains{});
      if (is_new) g->second = gains_of(input.gain, dims);
      const Gains& gains = g->second;
      const double square = input.rms[t] * input.rms[t], r2 = e.r2[t];
      const auto D = static_cast<double>(input.gain.size());
      e.alpha.push_back(is_own ? rescale_factor(r2, square, e.eps) : kNaN);
      e.elasticity.push_back(is_own ? elasticity(r2, square, e.eps) : kNaN);
      if (report_.options.clip > 0) {
        const double outlier = std::sqrt(r2 * square * D);
        const double others = ((1 - r2) * square + e.eps) * D;
        const double clipped = outlier * std::sqrt(input.clipped_part[t]);
        e.clip_growth.push_back(is_own ? clip_growth(others, outlier, clipped) : kNaN);
      }
      e.bound_1.push_back(upper_bound_1(r2, gains.max, gains.dim / gains.max));
      e.bound_5.push_back(upper_bound_5(r2, gains.max_others, gains.dim));
      e.gain_max = gains.max;
      e.gain_dim.push_back(gains.dim);
      e.lower.push_back(lower_bound(r2, gains.min_others, gains.dim));
      e.share_after.push_back(
          input.change == NormChange::none
              ? share_after(r2, input.share_gain[t], square, e.eps, e.output_rms[t])
              : kNaN);
      const double bound = std::min(e.bound_1.back(), e.bound_5.back());
      if (!std::isfinite(e.output_rms[t]) || !std::isfinite(bound))
        ++e.n_not_finite;
      else if (e.output_rms[t] > bound * (1 + kSlack))
        ++e.n_above;
    }
  }

  void note_change(const NormEvidence& e, const NormInput& input, const char* quantity) {
    report_.not_computed[fmt::format("{} {}", quantity, e.role)] =
        fmt::format("the recorded output of {} norms: --record all",
                    input.change == NormChange::gated ? "gated" : "edited");
  }

  // y_d² / ‖y‖² of the rows themselves, which hold whatever the model is.
  bool take_recorded_shares(NormEvidence& e) const {
    const auto visit = [&](int first, const ConstMapF& rows) {
      for (Eigen::Index r = 0; r < rows.rows(); ++r) {
        const auto t = static_cast<std::size_t>(first + r);
        const Row y = rows.row(r);
        const std::vector<int> dims = dims_at(e, t);
        e.share_after[t] = dims.front() < 0
                               ? kNaN
                               : joint_r2({y.data(), static_cast<std::size_t>(y.size())}, dims);
      }
    };
    return for_each_output_block(reader_, run_, e.role, e.layer, source_.model.d_model, visit);
  }

  // The norm's output [T, D]: as recorded, or from the stream where it is that of an RMS norm.
  // False = neither.
  bool output_rows(const NormEvidence& e, const NormInput& input, MatrixF& y) const {
    const auto take = [&](int first, const ConstMapF& rows) {
      y.middleRows(first, rows.rows()) = rows;
    };
    if (for_each_output_block(reader_, run_, e.role, e.layer, source_.model.d_model, take))
      return true;
    if (!has_stream_ || input.change != NormChange::none) return false;
    const auto norm = [&](int first, const ConstMapF& rows) {
      for (Eigen::Index r = 0; r < rows.rows(); ++r) {
        const double rms = input.rms[static_cast<std::size_t>(first + r)];
        const auto scale = static_cast<float>(1 / std::sqrt(rms * rms + e.eps));
        y.row(first + r) = rows.row(r).array() * input.pre.array() * scale * input.gain.array();
      }
    };
    for_each_stream_block(reader_, run_, input_site(e), source_.model.d_model, norm);
    return true;
  }

  // |y_d| ‖W[:,d]‖ / ‖W y‖, summed over the rows of W as they come.
  void next_linear(NormEvidence& e, const NormInput& input) {
    const int T = report_.n_tokens, D = source_.model.d_model;
    MatrixF y(T, D);
    if (!output_rows(e, input, y)) {
      if (input.change != NormChange::none)
        note_change(e, input, "contribution into the next linear layer after");
      else
        report_.not_computed["contribution into the next linear layer"] =
            norms_read_stream(reader_, run_)
                ? "the recorded stream: capture --record stream"
                : "the norms' outputs, as they read mixes over depth: capture --record all";
      return;
    }
    VectorD whole = VectorD::Zero(T), columns = VectorD::Zero(D);
    source_.weights(e.role, e.layer, [&](const MatrixF& w) {
      whole += (y * w.transpose()).rowwise().squaredNorm().cast<double>();
      columns += w.colwise().squaredNorm().transpose().cast<double>();
    });
    for (int t = 0; t < T; ++t) {
      double some = 0;  // several dimensions: the root of the summed squares
      for (int d : dims_at(e, static_cast<std::size_t>(t)))
        some += d < 0 ? kNaN : static_cast<double>(y(t, d)) * y(t, d) * columns(d);
      e.next_linear.push_back(std::sqrt(some / whole(t)));
    }
  }

  const NormSource& source_;
  const CaptureReader& reader_;
  const std::string& run_;
  RescaleReport& report_;
  WhatIf what_if_;
  bool has_stream_ = false;
};

}  // namespace

void add_norm_evidence(const NormSource& source, RescaleReport& report) {
  NormReporter(source, report).add_norms();
}

}  // namespace sinkscope
