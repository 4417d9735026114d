// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/what_if/norm_preview.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/capture_norms.h"
#include "core/error.h"
#include "core/site_name.h"
#include "core/stream_blocks.h"

namespace sinkscope {
namespace {

using With = NormReplace::With;

[[noreturn]] void unsupported(const std::string& message) {
  throw Error(ErrorKind::unsupported, message);
}

// Σ x², in several sums at once so that they need not wait for each other.
double square_sum(const float* x, Eigen::Index n) {
  std::array<double, 8> sums{};
  Eigen::Index i = 0;
  for (; i + 8 <= n; i += 8)
    for (std::size_t k = 0; k < 8; ++k) {
      const double value = x[i + static_cast<Eigen::Index>(k)];
      sums[k] += value * value;
    }
  double sum = 0;
  for (; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  for (double part : sums) sum += part;
  return sum;
}

bool names_state(const NameList& names, const std::string& state) {
  const SiteName site = SiteName::parse(state);
  // Without names every state once: the stream in front of the first block, and after each half.
  if (names.empty()) return site.hook != "hook_resid_pre" || site.layer == 0;
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name == state || name == site.hook; });
}

template <class E>
bool is_at_state(const E& edit, const std::string& state) {
  return names_state(edit.sites, state) && edit.layers.contains(SiteName::parse(state).layer);
}

template <class E>
bool is_at_norm(const E& edit, const NormInput& input) {
  const std::string full =
      input.layer < 0 ? input.role : fmt::format("blocks.{}.{}", input.layer, input.role);
  const bool is_named = edit.norms.empty() ||
                        std::any_of(edit.norms.begin(), edit.norms.end(), [&](const auto& name) {
                          return name == input.role || name == full;
                        });
  // The final norm belongs to no layer: an edit of some layers reaches it by its name alone.
  const bool in_layers = input.layer < 0 ? edit.layers.is_all() || !edit.norms.empty()
                                         : edit.layers.contains(input.layer);
  return is_named && in_layers;
}

std::vector<bool> rows_of(const TokenSet& tokens, const std::vector<int>& token_ids) {
  std::vector<bool> rows(token_ids.size(), false);
  for (int t : tokens.of(token_ids)) rows[static_cast<std::size_t>(t)] = true;
  return rows;
}

// Mean over the chosen rows of the chosen columns.
std::vector<float> column_means(const MatrixF& x, const std::vector<bool>& rows,
                                const std::vector<int>& dims) {
  std::vector<double> sums(dims.size(), 0.0);
  double n = 0;
  for (Eigen::Index t = 0; t < x.rows(); ++t) {
    if (!rows[static_cast<std::size_t>(t)]) continue;
    ++n;
    for (std::size_t d = 0; d < dims.size(); ++d) sums[d] += x(t, dims[d]);
  }
  std::vector<float> means;
  for (double sum : sums) means.push_back(n > 0 ? static_cast<float>(sum / n) : 0.0F);
  return means;
}

// Whether the edit is made at the state of this name; it then was.
bool edit_state(const Edit& edit, const std::string& state, const std::vector<int>& token_ids,
                MatrixF& x) {
  if (const auto* clip = std::get_if<ResidualClip>(&edit)) {
    if (!is_at_state(*clip, state)) return false;
    const auto limit = static_cast<float>(clip->limit);
    for (int t : clip->tokens.of(token_ids)) x.row(t) = x.row(t).cwiseMax(-limit).cwiseMin(limit);
    return true;
  }
  if (const auto* set = std::get_if<ResidualSet>(&edit)) {
    if (!is_at_state(*set, state)) return false;
    const std::vector<int> dims =
        set->dims.within(static_cast<int>(x.cols()), "residual.set: dims");
    const std::vector<bool> rows = rows_of(set->tokens, token_ids);
    std::vector<float> means;
    if (set->how == ResidualSet::How::mean) means = column_means(x, rows, dims);
    for (int t : set->tokens.of(token_ids))
      for (std::size_t d = 0; d < dims.size(); ++d) {
        float& value = x(t, dims[d]);
        value = set->how == ResidualSet::How::mean    ? means[d]
                : set->how == ResidualSet::How::scale ? value * static_cast<float>(set->number)
                                                      : static_cast<float>(set->number);
      }
    return true;
  }
  return false;
}

// One probe, made ready for the rows.
struct Probe {
  const NormProbe* edit;
  std::vector<bool> rows;
  std::vector<int> dims;
  std::vector<float> means;  // of what its mode takes the mean of
};

bool sets_output(ProbeMode mode) {
  return mode == ProbeMode::direct_const || mode == ProbeMode::remove_const;
}

class Norm {
 public:
  Norm(const NormInput& input, const NormReplace* replacement)
      : input_(input), width_(static_cast<Eigen::Index>(input.gain.size())) {
    if (replacement == nullptr) return;
    with_ = replacement->with;
    if (!replacement->weights.empty())
      unsupported("norm.replace: weights of a file need a rerun of the model");
    if (with_ == With::dyt) unsupported("norm.replace: dyt's fitted α needs a rerun of the model");
    const bool is_gate = with_ == With::gatednorm || with_ == With::tensor_gate;
    // W_up = 0: the gate is σ(0) everywhere, doubled by the identity start.
    if (is_gate && replacement->start == "paper") factor_ = 0.5F;
    if (with_ == With::preaffine) set_pre_gain(*replacement);
  }

  // y [D] of one row.
  void apply(const float* x, float* y) const {
    if (with_ == With::none) {
      std::copy(x, x + width_, y);
      return;
    }
    double center = 0;
    if (with_ == With::layernorm) {
      for (Eigen::Index i = 0; i < width_; ++i) center += x[i];
      center /= static_cast<double>(width_);
    }
    if (!pre_gain_.empty()) {
      for (Eigen::Index i = 0; i < width_; ++i)
        y[i] = x[i] * pre_gain_[static_cast<std::size_t>(i)];
      x = y;
    }
    const auto n = static_cast<double>(width_);
    const double mean_square = square_sum(x, width_) / n - center * center;
    const auto scale =
        static_cast<float>(static_cast<double>(factor_) / std::sqrt(mean_square + input_.eps));
    const auto mean = static_cast<float>(center);
    const float* gain = input_.gain.data();
    if (with_ == With::rmsnorm_no_gain) {
      for (Eigen::Index i = 0; i < width_; ++i) y[i] = x[i] * scale;
    } else if (with_ == With::layernorm) {
      for (Eigen::Index i = 0; i < width_; ++i) y[i] = (x[i] - mean) * scale * gain[i];
    } else {
      for (Eigen::Index i = 0; i < width_; ++i) y[i] = x[i] * scale * gain[i];
    }
  }

 private:
  // λ₁ in place of the model's own, which the input holds already.
  void set_pre_gain(const NormReplace& replacement) {
    if (input_.pre_gain.empty() && replacement.lambda == 1) return;
    pre_gain_.assign(static_cast<std::size_t>(width_), 1.0F);
    for (int d : replacement.dims.within(static_cast<int>(width_), "norm.replace: dims"))
      pre_gain_[static_cast<std::size_t>(d)] = static_cast<float>(replacement.lambda);
    for (std::size_t i = 0; i < input_.pre_gain.size(); ++i) {
      if (input_.pre_gain[i] == 0)
        unsupported(
            "norm.replace: the model's own PreAffine gain holds zeros, which no other gain "
            "can undo");
      pre_gain_[i] /= input_.pre_gain[i];
    }
  }

  const NormInput& input_;
  Eigen::Index width_;
  With with_ = With::rmsnorm;
  float factor_ = 1;
  std::vector<float> pre_gain_;  // [D] empty = 1
};

// What a probe makes of the norm's input, in place.
void probe_input(const Probe& probe, float* x, Eigen::Index width) {
  switch (probe.edit->mode) {
    case ProbeMode::mean:
      for (std::size_t d = 0; d < probe.dims.size(); ++d) x[probe.dims[d]] = probe.means[d];
      break;
    case ProbeMode::zero:
    case ProbeMode::remove_const:
      for (int d : probe.dims) x[d] = 0;
      break;
    case ProbeMode::clamp: {
      double others = square_sum(x, width);
      for (int d : probe.dims) others -= static_cast<double>(x[d]) * x[d];
      const auto limit = static_cast<float>(
          probe.edit->tau * std::sqrt(std::max(0.0, others) / static_cast<double>(width)));
      for (int d : probe.dims) x[d] = std::clamp(x[d], -limit, limit);
      break;
    }
    case ProbeMode::direct:
    case ProbeMode::denominator:
    case ProbeMode::direct_const:
      break;
  }
}

// What a probe makes of the norm's output; `x` as the norm was given it before any probe.
void probe_output(const Probe& probe, const float* x, double eps, Eigen::Index width, float* y) {
  switch (probe.edit->mode) {
    case ProbeMode::direct:
      for (int d : probe.dims) y[d] = 0;
      break;
    case ProbeMode::direct_const:
    case ProbeMode::remove_const:
      for (std::size_t d = 0; d < probe.dims.size(); ++d) y[probe.dims[d]] = probe.means[d];
      break;
    case ProbeMode::denominator: {
      const double all = square_sum(x, width), n = static_cast<double>(width);
      double others = all;
      std::vector<float> kept;
      for (int d : probe.dims) {
        others -= static_cast<double>(x[d]) * x[d];
        kept.push_back(y[d]);
      }
      const auto factor =
          static_cast<float>(std::sqrt((all / n + eps) / (std::max(0.0, others) / n + eps)));
      for (Eigen::Index i = 0; i < width; ++i) y[i] *= factor;
      for (std::size_t d = 0; d < probe.dims.size(); ++d) y[probe.dims[d]] = kept[d];
      break;
    }
    case ProbeMode::mean:
    case ProbeMode::zero:
    case ProbeMode::clamp:
      break;
  }
}

std::vector<Probe> probes_of(const NormInput& input, const WhatIf& what_if, const MatrixF& seen,
                             const Norm& norm) {
  std::vector<Probe> probes;
  for (const Edit& edit : what_if) {
    const auto* probe = std::get_if<NormProbe>(&edit);
    if (probe == nullptr || !is_at_norm(*probe, input)) continue;
    Probe made{probe,
               rows_of(probe->tokens, input.token_ids),
               probe->dims.within(static_cast<int>(seen.cols()), "norm.probe: dims"),
               {}};
    if (sets_output(probe->mode)) {
      MatrixF y(seen.rows(), seen.cols());
      for (Eigen::Index t = 0; t < seen.rows(); ++t)
        if (made.rows[static_cast<std::size_t>(t)]) norm.apply(seen.row(t).data(), y.row(t).data());
      made.means = column_means(y, made.rows, made.dims);
    } else if (probe->mode == ProbeMode::mean) {
      made.means = column_means(seen, made.rows, made.dims);
    }
    probes.push_back(std::move(made));
  }
  return probes;
}

// Row of residual/sites in front of a norm, and the names that this state has.
int site_row(const std::string& role, int layer, int n_layers) {
  if (role == "ln1") return 2 * layer;
  return role == "ln2" ? 2 * layer + 1 : 2 * n_layers;
}

}  // namespace

NormInput read_norm_input(const CaptureReader& reader, const std::string& run,
                          const std::string& role, int layer) {
  const ModelFacts model = reader.model(run);
  NormInput input;
  input.role = role;
  input.layer = role == "ln_final" ? -1 : layer;
  if (role.ends_with("_post"))
    unsupported(role +
                ": what a norm behind a half of a block reads is not recorded; a rerun shows "
                "its edit");
  if (!reader.has(run, "residual/stream"))
    throw Error(
        ErrorKind::not_found,
        fmt::format("{}: the residual stream is not recorded (--record stream)", reader.path()));
  if (!norms_read_stream(reader, run))
    unsupported(
        fmt::format("{}: the norms of this model read mixes over depth, not the recorded "
                    "stream",
                    role));
  if (model.n_streams > 1)
    unsupported(fmt::format("{}: the norms of this model read a mix of {} residual streams",
                            reader.path(), model.n_streams));
  for (const NormFacts& facts : read_norms(reader, run)) {
    if (facts.role != role) continue;
    if (facts.kind != "rms")
      unsupported(fmt::format("{}: expected an RMSNorm, found {}", role, facts.kind));
    const auto place = std::find(facts.layers.begin(), facts.layers.end(), input.layer);
    if (place == facts.layers.end() || facts.width != model.d_model) continue;
    const auto first = (place - facts.layers.begin()) * facts.width;
    input.eps = facts.eps;
    input.gain.assign(facts.gain.begin() + first, facts.gain.begin() + first + facts.width);
    if (facts.pre_gain.size() == facts.gain.size())
      input.pre_gain.assign(facts.pre_gain.begin() + first,
                            facts.pre_gain.begin() + first + facts.width);
  }
  if (input.gain.empty())
    throw Error(ErrorKind::not_found,
                fmt::format("{}: no norm {} in layer {}", reader.path(), role, layer));
  const std::vector<std::string> sites = reader.read_texts(run, "residual/sites");
  if (static_cast<int>(sites.size()) != 2 * model.n_layers + 1)
    unsupported(fmt::format("{}: expected the states of sequential blocks", reader.path()));
  const int row = site_row(role, layer, model.n_layers);
  input.sites = {sites.at(static_cast<std::size_t>(row))};
  // The same state has a second name where the next block reads it.
  if (role == "ln1" && layer > 0)
    input.sites.push_back(fmt::format("blocks.{}.hook_resid_pre", layer));
  input.token_ids = reader.input(run).token_ids;
  input.x.resize(static_cast<Eigen::Index>(input.token_ids.size()), model.d_model);
  for_each_stream_block(reader, run, row, model.d_model, [&](int first, const ConstMapF& rows) {
    input.x.middleRows(first, rows.rows()) = rows;
  });
  return input;
}

bool touches_norm(const Edit& edit, const NormInput& input) {
  return std::visit(
      [&](const auto& e) {
        if constexpr (requires { e.sites; })
          return std::any_of(input.sites.begin(), input.sites.end(),
                             [&](const std::string& state) { return is_at_state(e, state); });
        else if constexpr (requires { e.norms; })
          return is_at_norm(e, input);
        else
          return false;
      },
      edit);
}

MatrixF norm_output(const NormInput& input) { return previewed_norm(input, {}); }

MatrixF previewed_norm(const NormInput& input, const WhatIf& what_if) {
  const Eigen::Index T = input.x.rows(), D = input.x.cols();
  const NormReplace* replacement = nullptr;
  bool edits_state = false;
  for (const Edit& edit : what_if) {
    if (!touches_norm(edit, input)) continue;
    if (const auto* by = std::get_if<NormReplace>(&edit)) replacement = by;
    edits_state = edits_state || std::holds_alternative<ResidualClip>(edit) ||
                  std::holds_alternative<ResidualSet>(edit);
  }
  MatrixF changed;  // only where it differs from the recording
  if (edits_state || !input.pre_gain.empty()) changed = input.x;
  // In the order of the edits, and once where an edit knows the state by two names.
  if (edits_state)
    for (const Edit& edit : what_if)
      for (const std::string& state : input.sites)
        if (edit_state(edit, state, input.token_ids, changed)) break;
  if (!input.pre_gain.empty())
    changed.array().rowwise() *=
        Eigen::Map<const Eigen::RowVectorXf>(input.pre_gain.data(), D).array();
  const MatrixF& seen = changed.size() > 0 ? changed : input.x;
  const Norm norm(input, replacement);
  const std::vector<Probe> probes = probes_of(input, what_if, seen, norm);

  MatrixF y(T, D);
  Eigen::RowVectorXf row(D);
  for (Eigen::Index t = 0; t < T; ++t) {
    const float* given = seen.row(t).data();
    const bool is_probed = std::any_of(probes.begin(), probes.end(), [&](const Probe& probe) {
      return probe.rows[static_cast<std::size_t>(t)];
    });
    if (!is_probed) {
      norm.apply(given, y.row(t).data());
      continue;
    }
    row = seen.row(t);
    for (const Probe& probe : probes)
      if (probe.rows[static_cast<std::size_t>(t)]) probe_input(probe, row.data(), D);
    norm.apply(row.data(), y.row(t).data());
    for (const Probe& probe : probes)
      if (probe.rows[static_cast<std::size_t>(t)])
        probe_output(probe, given, input.eps, D, y.row(t).data());
  }
  return y;
}

std::vector<double> row_rms(const MatrixF& y) {
  std::vector<double> rms;
  for (Eigen::Index t = 0; t < y.rows(); ++t)
    rms.push_back(std::sqrt(square_sum(y.row(t).data(), y.cols()) / static_cast<double>(y.cols())));
  return rms;
}

}  // namespace sinkscope
