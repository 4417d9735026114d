// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/help_texts.h"

#include <algorithm>

namespace sinkscope {

const std::vector<HelpText>& help_texts() {
  static const std::vector<HelpText> all = {
      {"attention probability",
       "How much of its attention a query gives to a key; each row of the map sums to 1.",
       "A[q,k] = softmax over k ≤ q of (q·k / √d + mask)", "Vaswani et al. 1706.03762",
       "sinkscope dump RUN.h5 attention/pattern -o F.npy"},
      {"sink score",
       "The mean attention that one key, mostly the first, receives from all queries that can see "
       "it.",
       "α_k = Σ_{q≥k} A[q,k] / (number of queries q ≥ k); a sink where α_k > 0.3",
       "Gu et al. 2410.10781", "sinkscope sinks RUN.h5"},
      {"first-token score",
       "The mean attention to the first key over all queries, its own row (which is 1) included.",
       "s = 1/T Σ_q A[q,0]", "Qiu et al. 2601.22966, Figure 1", "sinkscope sinks RUN.h5 --json"},
      {"key mass", "The attention that a key receives, summed over the queries.",
       "m_k = Σ_q A[q,k]", "ours; the sink score is m_k over the queries that see k",
       "sinkscope figure key-mass RUN.h5 -o F.pdf"},
      {"max |x|",
       "The largest magnitude in the residual stream after a block, over all tokens and "
       "dimensions.",
       "max over t, j of |x[t,j]|", "Sun et al. 2402.17762", "sinkscope sinks RUN.h5"},
      {"massive activation",
       "A single value of the stream that is far larger than the typical one of its state.",
       "|x| > 100 and |x| ≥ 1000 · median |x|", "Sun et al. 2402.17762", "sinkscope sinks RUN.h5"},
      {"residual sink",
       "A dimension of the stream that is large on nearly every token, not on the first alone.",
       "mean_t |x[t,j]| ≥ 10 · median_j mean_t |x[t,j]|, t ≥ 1", "Qiu et al. 2601.22966",
       "sinkscope sinks RUN.h5"},
      {"kurtosis",
       "How heavy the tails of the values are: 3 for a Gaussian, thousands where a few values "
       "dwarf all others.",
       "m4 / m2² over all values of the block state", "Pearson; population moments",
       "sinkscope sinks RUN.h5 --json"},
      {"norm gain",
       "What a norm multiplies each dimension with; near 0 it silences the dimension for what "
       "follows.",
       "y = x / rms(x) · gain; the map is on a log scale centered at 1",
       "Qiu et al. 2601.22966, Figures 5 to 7", "sinkscope norms MODEL"},
      {"first 1‰ ratio",
       "The share of all mean magnitudes that the largest thousandth of the dimensions holds.",
       "Σ of the round(0.001·d) largest mean |x| / Σ over all d, in ‰",
       "Qiu et al. 2601.22966; rounding ours", "sinkscope sinks RUN.h5 --json"},
      {"sink removed", "The map without the sink's column, each row divided by what is left of it.",
       "A[q,k] / Σ_{j≠sink} A[q,j]", "ours",
       "sinkscope figure attention-head RUN.h5 --layer L --head H -o F.pdf"},
      {"rescale factor",
       "By how much a norm shrinks every other dimension because the outlier is in its root mean "
       "square; the attention twin is what the sink leaves for the other keys.",
       "α = √(1 − r²) with r = |h_d| / ‖h‖ (with the norm's ε); 1 − p_s",
       "Qiu et al. 2601.22966, A.1; ε ours", "sinkscope rescale RUN.h5"},
      {"bound",
       "How large the output of an RMS norm can be at most where one dimension holds a share r² of "
       "its input; no token may lie above it.",
       "‖y‖_rms ≤ ‖λ‖_∞ √((1 − r²) + e² r²) with |λ_d| ≤ e ‖λ‖_∞",
       "Qiu et al. 2601.22966, A.1, (1)", "sinkscope figure bound RUN.h5 -o F.pdf"},
      {"share",
       "How much of the whole the outlier is in front of a norm and behind it; for a head, the "
       "sink's part of the attention, and of what the head adds up.",
       "r² = h_d² / ‖h‖² before, y_d² / ‖y‖² after; p_s before, p_s ‖v_s‖ / Σ p ‖v‖ after", "ours",
       "sinkscope figure shares RUN.h5 -o F.pdf"},
      {"causal probe",
       "What the loss costs when a dimension is changed only in what a norm sees: this tells a "
       "rescaler from a flag and from a constant bias channel.",
       "Δloss of zero, mean, clamp, denominator alone, output alone", "ours",
       "sinkscope probe MODEL"},
      {"what-if",
       "The model run again with parts of its forward pass changed; it was not trained for that.",
       "KL(before ‖ after) = Σ p ln(p / q) of the next token, nats", "ours",
       "sinkscope whatif MODEL --edit '{\"edit\":\"residual.clip\",\"limit\":100}' -o F.h5"},
      {"KL",
       "How far the distribution of the next token moved away from that of the model as it is: 0 "
       "where it stayed.",
       "KL(before ‖ after) = Σ p ln(p / q), nats; mean over positions with a next token", "ours",
       "sinkscope whatif MODEL --edit FILE -o F.h5 --json"},
      {"absorption",
       "The outlier moved out of the stream into a gain in front of each norm, by a factor k, the "
       "function unchanged.",
       "every writer of the dimension / k, λ₁ of every reader · k",
       "Qiu et al. 2601.22966, PreAffine", "sinkscope absorb MODEL -o FOLDER"},
      {"difference",
       "A later map minus the first, cell by cell where both stand for the same, on colors "
       "centered at 0.",
       "B[i,j] − A[i,j]", "ours", "sinkscope figure compare A.h5 B.h5 -o F.pdf"},
      {"color range",
       "Which values the ends of the color bar stand for; cells beyond them have colors of their "
       "own and are counted.",
       "percentile 1–99, smallest to largest, mean ± 3 sd, or fixed", "ours",
       "sinkscope figure KIND RUN.h5 --range percentile -o F.pdf"},
  };
  return all;
}

const HelpText* find_help(std::string_view term) {
  const std::vector<HelpText>& all = help_texts();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const HelpText& text) { return text.term == term; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace sinkscope
