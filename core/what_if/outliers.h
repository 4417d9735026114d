// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/json_numbers.h"
#include "core/sink_report.h"

namespace sinkscope {

// Where the outliers of several runs are, of all runs together, so that two sides can be laid
// beside each other. A run is named by its number in the file: 3 is run3, and its twins.

struct RunPeak : Peak {
  int run = -1;  // −1 = no value in any run
};
struct RunSink : SinkToken {
  int run = 0;
  std::int64_t cells = 0;  // (layer, head) that were looked at
};
struct RunMassive : MassiveGroup {
  int run = 0;
  std::string text;  // of the token
};

// A score of the key that sinks are measured on (SinkOptions::gu_key).
struct KeyScore {
  double value = 0;
  int run = -1, layer = -1, head = -1;  // −1 = no head can be judged
};

struct Outliers {
  std::vector<std::string> sites;            // [S]
  std::vector<RunPeak> max_abs;              // [S] largest |x| of any run
  std::vector<RunMassive> massive;           // of every run; most sites first, then by value
  std::vector<ResidualSink> residual_sinks;  // over the positions of all runs together
  std::vector<RunSink> sink_tokens;          // of every run; most heads first, then by max_score
  bool has_attention = false;
  int key = 0;
  double epsilon = 0;
  KeyScore largest_score;                              // over all heads of all runs
  std::map<int, std::vector<std::string>> token_text;  // by run: labels, "" where unknown
};

Outliers outliers_of(const SinkReport& report);

// "25,804 at blocks.2.hook_resid_post, run 0, token 0 "<s>", dimension 507"; "not recorded".
std::string largest_text(const Outliers& outliers, bool names_run);
// "token 0 "<s>": 210 of 270 heads, 0.98 at most in layer 3, head 5"; or that there is none.
std::string sink_text(const Outliers& outliers, bool names_run);
// "507 (31.2 times the median at blocks.3.hook_resid_mid), 12 (…)"; "none".
std::string residual_sinks_text(const Outliers& outliers);
// "token 0 "<s>", dimension 507 (25,804 at blocks.2.hook_resid_post, massive at 50 sites)"; "none".
std::string massive_text(const Outliers& outliers, bool names_run);

// {max_abs, massive, residual_sinks, attention_sinks, largest_score}
nlohmann::ordered_json outliers_json(const Outliers& outliers, JsonNumbers& numbers);

}  // namespace sinkscope
