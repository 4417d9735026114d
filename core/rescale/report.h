// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/capture_reader.h"
#include "core/tensor.h"

namespace sinkscope {

// Evidence for the claim that outliers rescale rather than contribute (2601.22966): per norm and
// token, and per attention head and query, what share of the input the outlier is, what share of
// the output, and by how much it scales everything else.

struct RescaleOptions {
  std::vector<int> dims;  // empty = each token's own largest dimension; else these together (r_S)
  int key = 0;            // the sink whose attention is looked at
  double clip = 0;        // > 0: clip_growth for |h_d| ≤ clip
};

// One norm of one block; arrays [T]. NaN = not computed, and not_computed says why.
struct NormEvidence {
  std::string role;  // "ln1", "ln2", "ln_final"; behind a half of a block "ln1_post", "ln2_post"
  int layer = -1;    // −1 = the final norm
  double eps = 0;
  std::vector<int> dim;             // of the largest |h|; the first of dims where those are given
  std::vector<double> r2;           // share before: h_d² / ‖h‖²
  std::vector<double> share_after;  // y_d² / ‖y‖², behind the gate of a gated norm
  std::vector<double> alpha;       // rescale factor of all other dimensions, with ε, before a gate
  std::vector<double> elasticity;  // what passes through of a change of the others, with ε
  std::vector<double> clip_growth;  // factor on the others with |h_d| ≤ clip; empty without a clip
  std::vector<double> output_rms;   // exact, as recorded
  double gain_max = 0;              // max |λ|
  std::vector<double> gain_dim;     // |λ_d|, of several dimensions the largest
  std::vector<double> bound_1, bound_5, lower;  // lower holds without ε only
  std::vector<double> next_linear;  // |y_d| ‖W[:,d]‖ / ‖W y‖; empty when not computed or not read
  int n_above = 0;                  // tokens whose output lies above bound (5) or (1): must be 0
  int n_not_finite = 0;  // tokens whose output or bound is not finite: neither above nor below
};

// One head; arrays over the queries behind the key that are known (all, or the first 64).
struct HeadEvidence {
  int layer = 0, head = 0;
  std::vector<int> query;
  std::vector<double> p;            // share before: attention on the key; 1 − p is the factor
  std::vector<double> share_after;  // p ‖v_key‖ / Σ p ‖v‖
  // ‖p W_o (g ⊙ v_key)‖ / ‖W_o z‖ with the head's columns of W_o, g the gate that z goes through
  // where the model has one; or empty.
  std::vector<double> through_o;
};

struct RescaleReport {
  std::string path, run, model;
  int n_layers = 0, n_tokens = 0;
  RescaleOptions options;
  std::vector<std::string> token_text;
  std::vector<NormEvidence> norms;
  std::vector<HeadEvidence> heads;
  std::string queries;                              // where the attention came from, in words
  std::map<std::string, std::string> not_computed;  // quantity → what it needs
};

// Weights of the linear layers behind a norm ("ln1": q, k, v; "ln2": gate, up; "ln_final": the
// head), or "o": rows [n, in] handed out a few at a time.
using WeightRows = std::function<void(const std::string& which, int layer,
                                      const std::function<void(const MatrixF& rows)>& visit)>;

// `weights` empty: what needs them is named in not_computed. Throws Error: not_found (run),
// invalid_argument (dims without a recorded stream, a dimension or key that is not there), corrupt.
RescaleReport rescale_report(const CaptureReader& reader, const std::string& run,
                             const RescaleOptions& options, const WeightRows& weights = {});

// Schema "sinkscope.rescale/1".
nlohmann::ordered_json rescale_json(const RescaleReport& report);
// What the figures need of such a report again: all but token_text and the counts.
// `name` is the file's, for messages. Throws Error{invalid_argument} for anything else.
RescaleReport parse_rescale_json(const std::string& text, const std::string& name);
std::string rescale_text(const RescaleReport& report);
// One row a norm and token: role,layer,token,dim,r2,share_after,alpha,output_rms,bound_1,bound_5,…
std::string rescale_csv(const RescaleReport& report);

}  // namespace sinkscope
