// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/capture_layout.h"

namespace sinkscope {

// What the norm weights of a model say by themselves, without a forward pass (2601.22966, Figures
// 5 to 7). "Gain" is the effective gain: stored weight plus offset.

struct GainAt {
  int layer = -1, dim = -1;  // −1, −1: no finite gain
  double value = 0;          // effective
  double raw = 0;            // as stored
};

// One norm. Values that are NaN or infinite are left out and counted.
struct NormExtremes {
  int layer = -1;     // block index; −1 = after the last block
  GainAt min, max;    // signed
  double median = 0;  // element (n−1)//2 of the sorted gains
  int n_non_finite = 0, n_zero = 0;
  int width = 0;  // gains that it has: less than the role's where heads are narrower here
};

struct NormRoleGains {
  std::string role, kind;
  double eps = 0, offset = 0;
  int width = 0;                    // of the widest norm
  std::vector<NormExtremes> norms;  // one a layer
  // The dimensions whose gain deviates most from 1: largest max over layers of |ln|g||, a gain of 0
  // deviating without bound; ties keep index order. Each with its most deviating layer.
  std::vector<GainAt> starred;
  // The same against the median of each layer instead of 1: models whose gains sit elsewhere.
  std::vector<GainAt> starred_from_median;
};

struct NormGainOptions {
  int n_starred = 3;
};

// One entry per role, in the order given. Throws Error{invalid_argument} when gains are not
// [layers, width].
std::vector<NormRoleGains> norm_gains(const std::vector<NormFacts>& norms,
                                      const NormGainOptions& options = {});

// Schema "sinkscope.norms/1".
nlohmann::ordered_json norm_gains_json(const std::vector<NormRoleGains>& roles);
std::string norm_gains_text(const std::vector<NormRoleGains>& roles, int n_layers);
// role,layer,median,min,min_dim,min_raw,max,max_dim,max_raw: one row a norm.
std::string norm_gains_csv(const std::vector<NormRoleGains>& roles);

}  // namespace sinkscope
