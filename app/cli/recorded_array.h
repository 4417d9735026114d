// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/capture_reader.h"

namespace sinkscope {

// One recorded array of a run: a dataset, or the part of it behind fixed leading indices.
struct RecordedArray {
  std::string path;                 // below the run's group
  std::vector<std::int64_t> fixed;  // leading indices that are fixed, e.g. the site
  std::vector<std::int64_t> dims;   // what is left
  ElementType type = ElementType::f32;
  std::int64_t n_missing = 0;  // rows of the first axis that an unfinished run lacks: left out

  std::int64_t n_elements() const;
};

// Finds an array by its hook name, "blocks.3.attn.hook_pattern" [Q,R,T],
// "blocks.3.hook_resid_post" [T,D] (a later block's resid_pre is the post of the block before it),
// "ln_final.hook_out" [T,D], any recorded tap, with its block or for all blocks at once; or by the
// path of a dataset, "attention/key_mass". Text is no array. Of an unfinished run an array of many
// layers is cut after the last whole one.
// Throws Error{not_found} naming what is recorded instead, or how many layers are whole.
RecordedArray find_array(const CaptureReader& reader, const std::string& run,
                         const std::string& hook);

// Everything that find_array finds, one name each: sites of the stream, maps, taps, dataset paths.
std::vector<std::string> array_names(const CaptureReader& reader, const std::string& run);

// Over all values of an array. NaN and infinities are counted and left out of the others.
struct ArraySummary {
  std::int64_t n_nan = 0, n_inf = 0;
  double sum = 0;
  double min = 0, max = 0;  // NaN without a finite value
};

// Reads the array once, in blocks of at most `block_bytes` in C order, each handed to `take` as
// the bytes that a .npy file holds.
ArraySummary stream_array(const CaptureReader& reader, const std::string& run,
                          const RecordedArray& array, std::int64_t block_bytes,
                          const std::function<void(const char* bytes, std::int64_t n)>& take);

}  // namespace sinkscope
