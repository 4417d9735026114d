// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/h5/dataset.h"

namespace sinkscope::h5 {

// Chunk shape of a dataset; empty = contiguous. Error{corrupt}.
Dims chunk_of(const Dataset& dataset);

}  // namespace sinkscope::h5
