// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/compare/array_difference.h"
#include "core/sink_report.h"

namespace sinkscope {

// Whole recordings against each other, number by number. A is always the first capture; B stands
// for each of the others in its turn.

// An array of indices or counts (where a maximum lies, most likely tokens): how many are others.
struct IndexDifference {
  std::string dataset;
  std::int64_t n_compared = 0, n_unequal = 0;
};

// A scalar of the sink report, before and after.
struct SinkShift {
  std::string name;  // "attention.gu.sink_ratio"
  double a = 0, b = 0;
};

// Where a list of the sink report gained and lost members: positions or dimensions.
struct MemberShift {
  std::vector<int> only_a, only_b;
};

struct RunComparison {
  std::string run_a, run_b;
  RunInput input_a, input_b;
  bool same_tokens = true;
  // Said before any number: what makes the runs differ in input, model or way of running.
  std::vector<std::string> notes;
  std::vector<std::string> only_a, only_b;  // arrays that one of them has
  std::vector<std::string> in_part;         // arrays of which one has more than the other
  std::vector<SiteDifference> sites;        // in the order of the file
  std::vector<IndexDifference> indices;
  std::vector<SinkShift> shifts;       // scalars that both have
  std::optional<SiteDifference> head;  // the head whose score of key 0 moved most
  MemberShift sink_tokens, sink_dims;
  std::optional<std::pair<Peak, Peak>> largest;  // of the stream, and its sites
  std::string largest_site_a, largest_site_b;
};

struct Comparison {
  std::string path_a, path_b;
  ModelFacts model_a, model_b;
  bool complete = true;  // both are
  std::vector<std::string> runs_only_a, runs_only_b;
  std::vector<RunComparison> runs;
};

// Runs to be compared: of each side its default, all (matched by name), or one by name.
// `run_a`, `run_b`: a run's name, or "" for all that both have.
// Throws Error: not_found (a run), corrupt.
Comparison compare_captures(const CaptureReader& a, const std::string& run_a,
                            const CaptureReader& b, const std::string& run_b);

// A replication check. Within: the same runs on the same tokens, both whole, the same arrays of the
// same blocks and shapes, no judged value with |B − A| > tolerance · max(1, |A|, |B|) or not finite
// in one only, and the same counts (visible, n_nan, n_inf). Sums of powers (m2, m3, m4) and indices
// are shown and not judged.
struct Verdict {
  double tolerance = 0;
  bool is_within = true;
  std::vector<std::string> reasons;  // why not, the worst first; empty when within
};
Verdict judge(const std::vector<Comparison>& comparisons, double tolerance);
bool is_judged(const SiteDifference& site);
bool is_judged(const IndexDifference& index);  // counts are: visible, n_nan, n_inf

// Schema "sinkscope.compare/1".
nlohmann::ordered_json comparison_json(const std::vector<Comparison>& comparisons,
                                       const std::optional<Verdict>& verdict);
// One row a site.
std::string comparison_csv(const std::vector<Comparison>& comparisons);
std::string comparison_text(const std::vector<Comparison>& comparisons,
                            const std::optional<Verdict>& verdict);

}  // namespace sinkscope
