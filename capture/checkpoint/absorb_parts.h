// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "capture/checkpoint/model_files.h"

namespace sinkscope {

// The lossless PreAffine transfer as data: what each role of a model is to the residual stream, and
// so what becomes of its tensor when dimension j is divided by k in the stream.
enum class AbsorbPart {
  none,             // does not touch the stream, or reads it through a norm that is restored
  columns_divided,  // [n, D], rows of the stream: an embedding
  rows_divided,     // [n·D, in], a matrix that writes into it (experts one below the other)
  columns_times,    // [out, D], a matrix that reads it past no norm
  values_divided,   // [D], gain or bias of what writes into it
  values_times,     // [D], of the final norm in front of a head whose columns were divided with the
                    // embedding's
};
AbsorbPart absorb_part(const ModelFiles& model, Role role, int layer);

// Whether the half of a block reads the stream through a norm, whose input is then multiplied by k:
// ln1 for attention, ln2 for the MLP.
bool reads_through_norm(const ArchSpec& spec, Role norm);

// Why the transfer would not be lossless in models like this one; "" = it is.
std::string obstacle_to_absorbing(const ArchSpec& spec);

}  // namespace sinkscope
