// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sink_conventions.h"

#include <fmt/format.h>

#include "core/mechanism_report.h"

namespace sinkscope {

using Kind = PositionFilter::Kind;

std::string describe_positions(const PositionFilter& at) {
  switch (at.kind) {
    case Kind::all:
      return "all positions";
    case Kind::first:
      return "the first token";
    case Kind::rest:
      return "all positions but the first";
    case Kind::ids:
      return fmt::format("tokens with ids {} to {}", at.id_lo, at.id_hi);
  }
  return "";
}

std::string sink_token_criterion(const SinkOptions& options) {
  const std::string queries =
      options.gu_length ? fmt::format("the first {} positions", *options.gu_length) : "all queries";
  return fmt::format(
      "score > {:g} over {}, keys with at least {} later queries; Gu et al. 2410.10781",
      options.epsilon, queries, options.min_later_queries);
}

std::string massive_criterion(const SinkOptions& options, MassiveMode mode) {
  const MassiveCriterion& c = options.massive;
  switch (mode) {
    case MassiveMode::ratio:
      return fmt::format(
          "|h| >= {:g} x median |h| of that state alone, as nothing exceeds {:g}; "
          "ours, after Sun et al. 2402.17762",
          c.min_ratio, c.min_abs);
    case MassiveMode::zscore:
      return fmt::format("|h| >= {:g} standard deviations of that state; ours", c.min_zscore);
    case MassiveMode::absolute:
    case MassiveMode::automatic:
      return fmt::format("|h| > {:g} and >= {:g} x median |h| of that state; Sun et al. 2402.17762",
                         c.min_abs, c.min_ratio);
  }
  return "";
}

std::string residual_sink_criterion(const SinkOptions& options) {
  const PositionFilter rest{.kind = Kind::rest};
  const bool narrowed = options.at.kind == Kind::first || options.at.kind == Kind::ids;
  return fmt::format(
      "mean |h| >= {:g} x the median dimension's over {}; no peer-reviewed threshold "
      "exists",
      options.min_m2, describe_positions(narrowed ? options.at : rest));
}

std::vector<std::pair<std::string, std::string>> sink_conventions(const SinkReport& report) {
  const SinkOptions& o = report.options;
  const std::string at = describe_positions(o.at);
  const bool up = o.permille == PermilleRounding::up;
  std::vector<std::pair<std::string, std::string>> out = {
      {"indices", "layers, heads, tokens and dimensions count from 0; layers are block indices"},
      {"per_head_arrays", "[layer with softmax attention][head], in the order of attention.layers"},
      {"first_token_score.with_row0", "mean over queries 0..T-1 of A[q,0] (2601.22966)"},
      {"first_token_score.without_row0", "mean over queries 1..T-1 of A[q,0]"},
      {"first_token_score.mean_map", "the same of the map averaged over layers and heads"},
      {"gu.score",
       "mean attention that the key receives from the queries that can see it, its own "
       "included (2410.10781)"},
      {"gu.queries",
       o.gu_length
           ? fmt::format("cut to the first {} positions, as published with 64", *o.gu_length)
           : std::string("all T queries; the published form cuts to 64")},
      {"gu.sink_ratio", "share, 0 to 1, of (layer, head) cells with score > epsilon"},
      {"sink_tokens", sink_token_criterion(o)},
      {"sink_tokens.special", "a BOS position, or a token spelled like <...>"},
      {"sites",
       "the 2L+1 residual states before the final norm; block states are the L+1 that are "
       "no hook_resid_mid"},
      {"positions", at + (o.at.kind == Kind::all ? "" : " (--at " + o.at.text() + ")")},
      {"max_abs", "largest |h| over these positions and all dimensions; never negative"},
      {"median_abs",
       "element (n-1)//2 of the sorted |h| of the whole state [T,D], whatever the "
       "positions"},
      {"kurtosis.*_tensor", "these positions x all dimensions as one list, in double"},
      {"kurtosis.pearson", "m4/m2^2, population moments; a Gaussian gives 3"},
      {"kurtosis.excess", "pearson - 3"},
      {"kurtosis.qualcomm", fmt::format("m4/(s^4 + {:g}), s with n-1", o.qualcomm_eps)},
      {"kurtosis.uncentered", "E x^4 / (E x^2)^2"},
      {"kurtosis.*_channel_*",
       "over these positions, one value a dimension; mean and largest over "
       "the dimensions"},
      {"kurtosis.*_token_mean",
       "over the dimensions, one value a position; mean over these "
       "positions (needs the recorded stream)"},
      {"massive",
       massive_criterion(
           o, report.runs.empty() ? o.massive.mode : report.runs.front().residual.massive_mode)},
      {"massive.listed",
       fmt::format("the {} largest of each site that the statistics know exactly: "
                   "all dimensions of the first token, the largest dimension of "
                   "every token, the largest token of every dimension",
                   o.massive_per_site)},
      {"m2", "largest / median over the dimensions of mean |h|, median = element (n-1)//2"},
      {"sink_dims", residual_sink_criterion(o) + "; at one site or more, most sites first"},
      {"argmax_hit", "share of these tokens whose largest |h| lies in the dimension"},
      {"sorted_dims",
       fmt::format("by mean |h| over these positions and the L+1 block states, ties in "
                   "index order; the first {}",
                   o.n_sorted_dims)},
      {"sorted_dims_without_first", "the same without position 0"},
      {"first_permille_ratio",
       fmt::format("per mille; sum of mean |h| over the first n sorted dimensions / over all, n = "
                   "{}(0.001 d), at least 1",
                   up ? "ceil" : "round")},
      {"outlier_tensors",
       "output of the final norm and, per block, block output, MLP output, second "
       "norm, o_proj output, first norm: 5L+1 tensors; kurtosis.qualcomm over "
       "T*d values of one run (2605.17887)"},
      {"outlier_features",
       fmt::format("dimensions with |h| >= {:g} somewhere in >= {:g} of the block states and in >= "
                   "{:g} of all (state, position) pairs (LLM.int8, Dettmers et al. 2022)",
                   o.outlier_features.min_abs, o.outlier_features.layer_share,
                   o.outlier_features.position_share)},
      {"all",
       "mean, sd (divided by the number of runs), min and max over the runs that have a value; "
       "m2, argmax_hit, sink_dims, sorted_dims and ratios are pooled over all positions of "
       "all runs"},
  };
  if (!report.runs.empty()) {
    const Mechanisms& mechanisms = report.runs.front().mechanisms;
    if (!mechanisms.block_layers.empty())
      out.emplace_back("stream",
                       "attention over depth: the residual states are the running sum, which "
                       "restarts at the blocks of mechanisms.depth.block_layers");
    for (auto& convention : mechanism_conventions(mechanisms)) out.push_back(std::move(convention));
  }
  out.emplace_back("non_finite_values", "NaN and infinity are null here; this counts them");
  return out;
}

}  // namespace sinkscope
