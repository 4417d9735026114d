// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>

#include "core/moments.h"

namespace sinkscope {

// "Kurtosis" means several things; a number is comparable only with one of its own flavor, over
// the same flattening (per token, per channel, per tensor) and the same count of values: the upper
// bound is about the number of elements.
enum class KurtosisFlavor {
  pearson,     // m4 / m2², population moments; a Gaussian gives 3
  excess,      // pearson − 3 (llama.cpp's imatrix)
  qualcomm,    // m4 / (s⁴ + eps), s with n − 1 (Bondarenko et al. 2023, OutEffHop, OASIS)
  uncentered,  // E x⁴ / (E x²)²
};

const char* to_string(KurtosisFlavor flavor);  // "pearson", …

// The flavor's own epsilon as published. Next to s⁴ it more than halves the result at s < 0.03.
inline constexpr double kQualcommEps = 1e-6;

// `eps` matters to qualcomm only. NaN where the quotient does not exist (no values, no spread).
double kurtosis(const Moments& m, KurtosisFlavor flavor, double eps = kQualcommEps);
double kurtosis(std::span<const float> x, KurtosisFlavor flavor, double eps = kQualcommEps);

}  // namespace sinkscope
