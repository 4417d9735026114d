// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor.h"

namespace sinkscope {

// Element (n−1)//2 of the sorted values: the lower median, no averaging. NaN are left
// out; NaN when nothing is left.
double lower_median(std::span<const double> values);
// The same with infinities left out as well.
double finite_median(std::span<const double> values);

// ‖x‖∞ = max |x|. NaN values are passed over; 0 for no values.
double infinity_norm(std::span<const float> x);

// ---- Massive activations: few tokens × few dimensions.

enum class MassiveMode {
  automatic,  // absolute; ratio when nothing in the run exceeds min_abs (small models never do)
  absolute,   // |h| > min_abs and |h| ≥ min_ratio · median |h| of that hidden state
              // (Sun et al. 2402.17762, "loose" in their own words)
  ratio,      // |h| ≥ min_ratio · median |h| alone (ours)
  zscore,     // |h| ≥ min_zscore · standard deviation of that hidden state (ours)
};
const char* to_string(MassiveMode mode);

struct MassiveCriterion {
  MassiveMode mode = MassiveMode::automatic;
  double min_abs = 100, min_ratio = 1000, min_zscore = 10;
  bool operator==(const MassiveCriterion&) const = default;
};

// Scale of one hidden state [T,D]: median |h| and standard deviation over all its elements.
struct StateScale {
  double median_abs = 0, sd = 0;
};

// automatic → absolute or ratio, by the largest |h| of the run; other modes as they are.
MassiveMode resolve_mode(MassiveMode mode, double largest_abs, double min_abs);
// `mode` of the criterion must be resolved.
bool is_massive(double abs_value, const StateScale& scale, const MassiveCriterion& criterion);

// ---- Residual sinks: few dimensions × nearly all tokens.

// M2 = max_j mean|h_j| / median_j mean|h_j|, median as above, with the dimension that attains it.
struct M2 {
  double value = 0;  // NaN without values, infinite when the median is 0
  int dim = -1;
};
M2 m2_of(std::span<const double> mean_abs);

// Dimensions with mean|h_j| ≥ threshold · median_j mean|h_j|, largest first.
std::vector<int> dims_above_median(std::span<const double> mean_abs, double threshold);

// argmax-hit: share of tokens whose largest |h| lies in `dim`. counts [D]: tokens per dimension.
double argmax_hit(std::span<const double> argmax_counts, int dim);

// ---- The sorted-dimension map (2601.22966, Figure 1).

// Dimensions by descending value; equal values keep index order; NaN last.
std::vector<int> sorted_dims(std::span<const double> mean_abs);

// The paper prints a "First 1‰ Activation Ratio" without saying how n is rounded.
enum class PermilleRounding { nearest, up };

// n = round(0.001·d) or ceil, at least 1.
int first_permille_count(int d_model, PermilleRounding rounding);
// Σ of the n largest values / Σ of all, in per mille (62.2 ‰ = 6.22 %).
double first_permille_ratio(std::span<const double> mean_abs, PermilleRounding rounding);

// ---- Outlier features (Dettmers et al. 2022, LLM.int8).

struct OutlierFeatureCriterion {
  double min_abs = 6, layer_share = 0.25, position_share = 0.06;
  bool operator==(const OutlierFeatureCriterion&) const = default;
};
// Dimensions with |h| ≥ min_abs somewhere in ≥ layer_share of the states and in ≥ position_share
// of all (state, position) pairs. hits [states, D]: positions with |h| ≥ min_abs.
std::vector<int> outlier_features(const MatrixD& hits, double n_positions,
                                  const OutlierFeatureCriterion& criterion);

}  // namespace sinkscope
