// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include "capture/model/isa.h"
#include "core/normalizer.h"

namespace sinkscope {

// Turns a block of attention scores into probabilities and, in the same sweep, into the statistics
// that every capture has. Plain C++ over float rows, no Torch; compiled for several instruction
// sets and chosen at run time. Lanes are summed in a fixed order, so the same input gives the same
// bits on the same machine, whatever the number of threads.

// A block of consecutive query rows of one head. Column c of `scores` is key `key_begin + c`.
struct AttentionBlock {
  float* scores = nullptr;  // [n_rows, stride]; in: scaled logits, out: probabilities, 0 unseen
  std::int64_t stride = 0;  // floats from row to row, ≥ n_keys
  int query_begin = 0;      // position of row 0
  int n_rows = 0;
  int key_begin = 0, n_keys = 0;      // columns in use; must reach the last row's own key
  int window = 0;                     // keys a query sees, its own included; 0 = all up to itself
  const float* value_norm = nullptr;  // [n_keys] ‖v_j‖₂ of key_begin + c
  Normalizer normalizer = {};         // what makes weights of scores
  const float* sink = nullptr;        // [n_rows] logit beside the scores; null: the normalizer's
  const bool* lost = nullptr;         // [n_keys] keys that no other query sees; null = none
  bool renormalize = true;            // the other keys share the mass of lost ones; else it is gone
  bool all_keys = false;              // every row sees all n_keys, later ones too
  const int* n_hidden = nullptr;  // [n_rows] visible keys whose score is −∞: no query sees them,
                                  // so that no statistic counts them; null = none
};

// One value per row; each array [n_rows].
//   lse            ln Σ exp(s)                    logit_max  max s
//   logit_gap      max s − median s, median = element (n−1)/2 of the n sorted visible logits
//   entropy        −Σ p ln p, nats                max_prob   max p
//   distance       Σ p |i − j|                    first4     Σ_{j<4} p
//   last8          Σ_{i−8<j≤i} p                  out_norm_sum  Σ p ‖v‖
//   null_mass      the share that goes to no key; not written for plain softmax, may be null then
// lse, logit_max and logit_gap are of all visible keys, lost ones too.
struct AttentionRowStats {
  float *lse, *entropy, *max_prob, *logit_max, *logit_gap, *distance, *first4, *last8,
      *out_norm_sum, *null_mass;
};

// The instruction set that the functions below run with on this machine.
Isa kernel_isa();

// Scores into weights, in place, plus statistics. `key_mass` [n_keys] receives the column sums of
// this block (added to what is there). Row r sees keys max(0, i − window + 1) … i, i = query_begin
// + r, but for all_keys.
void attention_rows(const AttentionBlock& block, const AttentionRowStats& stats, float* key_mass);

// Soft-cap in place: s <- cap·tanh(s / cap), over all columns in use.
void cap_scores(const AttentionBlock& block, float cap);

// Max-pools the block into lines of a thumbnail [bins, bins]: bin(i) = floor(i * bins / seq_len),
// for rows and keys alike; entries keep the larger of old and new. `thumbnail` is the line of
// `first_bin`, the bin of the block's first row, or of an earlier one.
void pool_thumbnail(const AttentionBlock& block, int seq_len, int bins, int first_bin,
                    float* thumbnail);

// Element k of the sorted values, 0 ≤ k < n, no NaN; −0 and +0 are equal.
float kth_smallest(const float* values, int n, int k);

// ln Σ exp(values), n ≥ 1.
double log_sum_exp(const float* values, std::int64_t n);

// The smallest index i in [from, n) with values[i] > bar, else n.
int first_above(const float* values, int n, int from, float bar);

}  // namespace sinkscope
