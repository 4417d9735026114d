// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "capture/checkpoint/model_files.h"

namespace sinkscope {

// The lossless PreAffine transfer (2601.22966; the science reference's section 7): a dimension j of
// the residual stream is divided by k in every writer (embedding column j, row j of the last matrix
// of attention, MLP and experts and of their biases; where a norm stands behind them, its gain j
// and bias j instead) and multiplied by k in front of every norm that reads it, or in column j of
// the matrices of a half without one. A tied head reads the divided embedding, so gain j and bias j
// of the final norm are multiplied by k as well. absorb_parts.h has it role by role.
struct Absorption {
  std::vector<int> dims;
  std::vector<double> factors;  // k > 0, one a dimension; powers of two change no bit of a product
  bool describes_itself =
      false;  // of the Llama family, too, as a model that --arch describes has to
};

// Writes `folder`: model.safetensors (float32); for the Llama family and its nearest kin
// config.json with "pre_affine": true, for the others sinkscope_arch.json, the whole architecture
// as info --arch-json writes it; and the tokenizer: the files of a Hugging Face folder, or
// tokenizer.gguf, the metadata of a GGUF file. Sinkscope opens it again; other programs that do not
// know pre_affine would read it wrongly, or not at all.
// false: stopped between two pieces of a tensor, the folder is not whole.
// Throws Error: invalid_argument (a dimension that is not there, factors that are not above 0, a
// folder that exists and is not empty), unsupported (a model of which this would make another one,
// saying why; rotary positions that cannot be written), io.
bool write_absorbed(const ModelFiles& model, const Absorption& absorption,
                    const std::string& folder, const std::stop_token& stop = {});

// The factor that brings a dimension of size `outlier` down to `typical`: the nearest power of two,
// at least 1.
double absorbing_factor(double outlier, double typical);

}  // namespace sinkscope
