// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/draw/grid.h"
#include "core/residual_metrics.h"
#include "core/site_stats.h"
#include "core/snapshot/run_facts.h"

namespace sinkscope {

// The order of the dimensions, descending by mean |x| over the L+1 block states and over all tokens
// (2601.22966), or over all but the first (ours, which finds residual sinks); given: as asked for,
// e.g. the order of another capture.
enum class DimOrder { natural, sorted, sorted_without_first, given };
// window: the first min(T,64) tokens, in every capture. stream: all of them, if recorded.
enum class ResidualSource { automatic, window, stream };

struct ResidualRequest {
  std::string run;
  // "blocks.11.hook_resid_post", a member of residual/sites; nullopt = mean of |x| over the L+1
  // block states.
  std::optional<std::string> site;
  DimOrder order = DimOrder::sorted;
  std::vector<int> given_order;  // dimensions, for DimOrder::given
  int n_dims = 0;                // only the first columns of the order; 0 = all
  int n_tokens = 0;              // only the first tokens; 0 = all
  ResidualSource source = ResidualSource::automatic;
  PermilleRounding permille = PermilleRounding::nearest;
  bool operator==(const ResidualRequest&) const = default;
};

// A residual map as it is drawn: tokens downwards, dimensions to the right.
struct ResidualSnapshot {
  ResidualRequest request;
  RunFacts facts;
  ResidualSource source = ResidualSource::window;  // which was used
  std::string source_text;                         // "first 64 of 512 tokens", "all tokens", …
  std::string title;               // "blocks.11.hook_resid_post", "mean |x| over 31 block states"
  std::string order_text;          // "dimensions by mean |x| over all tokens and block states"
  std::vector<std::string> sites;  // all there are
  Grid map;                        // [rows, cols]: signed for a site, |x| for the average
  std::vector<int> tokens;         // [rows] first position behind each row
  int tokens_per_row = 1;          // more: the value of largest magnitude, with its sign
  std::vector<std::string> token_labels;  // [rows]
  std::vector<int> dims;                  // [cols] original indices
  std::vector<int> full_order;            // [D] the whole order, to be given to another request
  // Largest |x| over raw (site, token, dimension): of the shown site, or of all block states. Over
  // all tokens of the run, not only those shown.
  Peak max_abs;
  std::string max_site;
  // First 1‰ activation ratio in ‰ over the mean |x| of all tokens and block states; the other
  // without the first token.
  double first_permille_ratio = 0, first_permille_ratio_without_first = 0;
  int first_permille_count = 0;
};

// Reads only the box that is drawn. automatic: the stream where it is recorded (for the average:
// where all states together are not more than 256 MiB), else the window.
// Throws Error: not_found for a run, site or source that is not there; invalid_argument for an
// order that is not of this width.
ResidualSnapshot read_residual(const CaptureReader& reader, const ResidualRequest& request);

}  // namespace sinkscope
