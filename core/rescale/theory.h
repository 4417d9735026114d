// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>

namespace sinkscope {

// How an outlier rescales everything else that goes through an RMSNorm with it. Notation: h [D] the
// norm's input, u = h/‖h‖₂, r = |u_d| of one dimension d, λ the effective gain, y the output.

// α = y_i with the outlier / y_i with the outlier set to 0, the same for every i ≠ d:
//   α = √((m²/D + ε) / ((m² + h_d²)/D + ε)),  m² = ‖h_{−d}‖²;  without ε: √(1 − r²).
double rescale_factor(double r2, double mean_square, double eps);

// By how much every other output grows when |h_d| is clipped to c ≤ |h_d|:
//   √((m² + h_d²) / (m² + c²)),  m² = Σ_{i≠d} h_i² (+ D ε for a norm with ε).
double clip_growth(double others_square, double outlier, double c);

// Upper bound (1) of 2601.22966, A.1: ‖y‖_rms ≤ ‖λ‖_∞ √((1 − r²) + e² r²), where |λ_d| ≤ e ‖λ‖_∞.
// u is l2-normalized; the paper's text says rms, with which the bound would not hold.
double upper_bound_1(double r2, double gain_max, double gain_ratio);

// Upper bound (5), as ‖y‖_rms: √(max_{i≠d} λ_i² (1 − r²) + λ_d² r²).
double upper_bound_5(double r2, double gain_max_others, double gain_d);

// Lower bound: √(λ_d² r² + min_{i≠d} λ_i² (1 − r²)); holds without ε.
double lower_bound(double r2, double gain_min_others, double gain_d);

// d ln‖y_{−d}‖ / d ln‖h_{−d}‖, how much of a change of the others passes through:
//   (r² m + ε) / (m + ε),  m = mean(h²);  without ε: r².
double elasticity(double r2, double mean_square, double eps);

// Σ_{d∈S} h_d² / ‖h‖², the r² of several outliers together.
double joint_r2(std::span<const float> h, std::span<const int> dims);

// λ_d² h_d² / Σ λ_i² h_i² = λ_d² r² m / ‖y‖_rms² with m = mean(h²) / (mean(h²) + ε).
double share_after(double r2, double gain_d, double mean_square, double eps, double output_rms);

// The gap that softmax needs to put 1 − share on one of n keys, the others equal:
// ln((n − 1)(1 − share)/share).
double sink_gap(int n, double share);

}  // namespace sinkscope
