// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/capture_reader.h"
#include "core/non_finite.h"
#include "core/sink_options.h"
#include "core/site_stats.h"

namespace sinkscope {

// The residual half of a sink report. Sites are those of residual/sites: S = 2L+1 states before the
// final norm (first resid_pre, then resid_mid and resid_post of each block). Block states are the
// L+1 among them that are no resid_mid.

// One column over the sites (or the names of OutlierTensors), called by its flavor.
using NamedColumn = std::pair<std::string, std::vector<double>>;

struct MassiveActivation {
  std::string site;
  double value = 0;  // |h|
  int token = 0, dim = 0;
  double ratio = 0;  // |h| / median |h| of that state
};

// One (token, dim) over all the sites where it is massive.
struct MassiveGroup {
  int token = 0, dim = 0, n_sites = 0;
  std::string first_site, last_site;
  MassiveActivation peak;
};

// A dimension with mean |h| ≥ min_m2 · median at one site or more, over the detection positions.
struct ResidualSink {
  int dim = 0, n_sites = 0;
  std::string site;         // where the ratio is largest
  double ratio = 0;         // mean |h_dim| / median_j mean |h_j| there
  double argmax_hit = 0;    // there
  double mean = 0, sd = 0;  // of h_dim there, signed
};

// The 5L+1 tensors of 2605.17887 (after Bondarenko et al. 2023): output of the final norm, and per
// block its output, MLP output, second norm's output, o_proj output, first norm's output.
struct OutlierTensors {
  std::vector<std::string> names;
  std::vector<double> inf_norm, kurtosis;  // qualcomm flavor over T·d values
  double max_inf_norm = 0, max_ffn_inf_norm = 0, max_block_inf_norm = 0;
  double avg_kurtosis = 0, max_kurtosis = 0, max_block_kurtosis = 0;
};

struct ResidualReport {
  std::vector<std::string> sites;     // [S]
  std::vector<Peak> max_abs;          // [S]
  std::vector<double> median_abs;     // [S] whatever the positions
  std::vector<NamedColumn> kurtosis;  // [S] each
  MassiveMode massive_mode = MassiveMode::absolute;
  std::vector<MassiveActivation> massive;                   // the largest of each site
  std::vector<MassiveGroup> massive_groups;                 // by n_sites, then by value
  std::vector<double> m2;                                   // [S]
  std::vector<int> m2_dim;                                  // [S]
  std::vector<double> argmax_hit;                           // [S] of m2_dim
  std::vector<ResidualSink> sinks;                          // by n_sites, then by ratio
  std::vector<int> sorted_dims, sorted_dims_without_first;  // the first n_sorted_dims
  double first_permille_ratio = 0, first_permille_ratio_without_first = 0;  // ‰
  OutlierTensors outlier_tensors;     // empty when not computed
  std::vector<int> outlier_features;  // LLM.int8's, over the block states
  bool has_outlier_features = false;
  std::map<std::string, std::string> not_computed;  // quantity -> what it needs
  NonFinite non_finite;  // over the statistics of all sites, norms and taps included
};

// The first n dimensions by descending mean |h|; one without any finite value has no place.
std::vector<int> leading_dims(const std::vector<double>& mean_abs, int n);

// What is needed to pool several runs.
struct ResidualPool {
  std::vector<PartStats> detection;       // [S]
  std::vector<double> h_avg, h_avg_rest;  // [D] mean |h| over the block states
  double n_tokens = 0, n_rest = 0;        // positions behind them
};

struct ResidualRun {
  ResidualReport report;
  ResidualPool pool;
};

// Sites of blocks from `layers_end` on (not yet recorded) are left out. Massive activations come
// from what the statistics know exactly: all dimensions of the first token, the largest dimension
// of every token, the largest token of every dimension. Errors: those of RunStats.
ResidualRun residual_sinks(const CaptureReader& reader, const std::string& run,
                           const SinkOptions& options, int layers_end);

// The positions over which residual sinks are looked for: all those of the filter, but without the
// first token unless it was asked for by name or id: massive dimensions of token 0 would win.
PartStats detection_part(const SiteStats& site, const PositionFilter& filter);

// m2, m2_dim, argmax_hit and sinks of pooled detection parts [S].
void find_residual_sinks(const std::vector<PartStats>& detection, double min_m2,
                         ResidualReport& report);

void add_to_pool(ResidualPool& pool, const ResidualPool& run);

}  // namespace sinkscope
