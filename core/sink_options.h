// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>

#include "core/kurtosis.h"
#include "core/position_filter.h"
#include "core/residual_metrics.h"

namespace sinkscope {

// Every threshold and convention behind a sink report; the report names them.
struct SinkOptions {
  double epsilon = 0.3;                         // sink: score > epsilon (Gu et al. 2410.10781)
  int gu_key = 0;                               // the key whose scores and sink ratio are listed
  std::optional<int> gu_length = std::nullopt;  // cut to the first positions, as published with 64
  int min_later_queries = 8;  // sink tokens: keys with at least so many later queries
  PositionFilter at = {};     // positions of the residual numbers
  MassiveCriterion massive = {};
  int massive_per_site = 3;  // the largest ones that are listed
  double min_m2 = 10;        // residual sink: mean|h_j| ≥ this · median_j
  PermilleRounding permille = PermilleRounding::nearest;
  int n_sorted_dims = 32;
  double qualcomm_eps = kQualcommEps;
  OutlierFeatureCriterion outlier_features = {};
  bool use_stream = true;  // read residual/stream, if recorded, for what needs it
  bool operator==(const SinkOptions&) const = default;
};

}  // namespace sinkscope
