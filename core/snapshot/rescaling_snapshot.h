// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/draw/grid.h"
#include "core/rescale/report.h"
#include "core/snapshot/run_facts.h"
#include "core/what_if/probe_table.h"

namespace sinkscope {

struct RescalingRequest {
  std::string run;
  std::vector<int> dims;  // empty = each token's own largest dimension
  int key = 0;            // the sink whose attention is looked at
  bool operator==(const RescalingRequest&) const = default;
};

// One token in front of one norm; or one head, whose fields t and dim are −1.
struct RescalingPoint {
  int layer = -1, token = -1, dim = -1, head = -1;
  double x = 0, y = 0;
};

// The norms of one kind: attention norms (ln1), FFN norms (ln2), behind a half, the final norm.
struct NormCloud {
  std::string role, name;
  // r against ‖y‖_rms / max|λ|: below bound (1), drawn for the largest gain ratio among the points.
  std::vector<RescalingPoint> bound_first, bound_rest;
  double gain_ratio = 0;  // max over points of |λ_d| / max|λ|
  // Share before (r²) against share after (y_d² / ‖y‖²).
  std::vector<RescalingPoint> shares;
  std::vector<int> layers;                      // [N]
  std::vector<double> alpha_first, alpha_rest;  // [N] of the first token; median of the others
  Grid alpha_counts;  // [N, 20] share of tokens by α, in twentieths of 0 … 1
  double share_before = 0, share_after = 0;  // of the first token, median over norms
  double next_linear = 0;  // |y_d| ‖W[:,d]‖ / ‖W y‖ of the first token, median; NaN = not computed
  std::int64_t n_points = 0, n_above = 0;  // tokens whose output lies above a bound: must be 0
};

struct RescalingSnapshot {
  RescalingRequest request;
  RunFacts facts;
  std::vector<NormCloud> norms;
  std::vector<int> attention_layers;
  std::vector<double> factor;  // 1 − p on the key, median over queries, of the strongest head
  std::vector<RescalingPoint> head_shares;  // median p against median share after, a point a head
  std::string queries;                      // which queries those are over
  // Sentences: the bound; what the shares suggest, which only probes can decide; what each quantity
  // needs that is not there.
  std::string bound_text, suggestion;
  std::string contribution;  // into the next linear layers; "" = not computed
  std::vector<std::string> not_computed;
};

// Off the window's thread: reads the statistics of every norm. `weights`: as rescale_report.
RescalingSnapshot rescaling_snapshot(const CaptureReader& reader, const RescalingRequest& request,
                                     const WeightRows& weights = {});

// The probes as they are drawn: a group of bars for each reader and place, its verdict beside it.
struct ProbeBars {
  std::string reader, at;
  std::vector<std::string> modes;
  std::vector<double> delta_loss;  // nats
  std::string role, sentence;      // of the verdict
};
struct ProbesSnapshot {
  ProbeTable table;
  std::vector<ProbeBars> groups;
  std::string path;     // of the table as JSON, for the figure; "" = not written
  std::string command;  // that writes it again, as kProbesFile
};
inline constexpr const char* kProbesFile = "probes.json";
ProbesSnapshot probes_snapshot(ProbeTable table);

// Everything the Rescaling panel shows.
struct RescalingState {
  std::shared_ptr<const RescalingSnapshot> snapshot;
  std::string failure;  // why there is none
  std::shared_ptr<const ProbesSnapshot> probes;
  std::string obstacle;  // why probes cannot be run; empty = they can
  bool is_running = false;
  std::string probes_failure;
};

}  // namespace sinkscope
