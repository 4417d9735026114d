// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/capture_layout.h"
#include "core/recording_state.h"

namespace sinkscope {

// Writes one capture file, safe against being killed: all groups and datasets are created first in
// NAME.part.tmp, which is renamed to NAME.part; each layer's data are flushed before the counter
// `@layers_done` says so; finish() sets @complete and renames to NAME.
//
// One thread at a time. Throws Error{io} on any failure (disk full included): what was flushed
// stays readable in NAME.part, and nothing is written after the failure. Dropping a writer without
// finish() leaves NAME.part, which can be read and, with the state beside it, resumed.
class CaptureWriter {
 public:
  // resume: goes on with NAME.part where its last whole layer ends, if it is there; else as refuse.
  enum class Existing { refuse, overwrite, resume };

  // Completes the provenance, which is asked for last: who runs the model may still be starting.
  using CompleteProvenance = std::function<void(Provenance&)>;

  // Throws Error{invalid_argument} when `path` or an unfinished NAME.part exists and is to be
  // refused, or when the layout contradicts itself, or naming the first field in which it differs
  // from the recording that is to be resumed; Error{corrupt} when NAME.part, or every state beside
  // it, is damaged; Error{io} otherwise; what `complete` throws.
  static std::unique_ptr<CaptureWriter> create(const std::string& path, const CaptureLayout& layout,
                                               Existing existing,
                                               const CompleteProvenance& complete = {});

  virtual ~CaptureWriter() = default;

  virtual const CaptureLayout& layout() const = 0;

  // Where a resumed recording goes on: the streams of the runs from `first_run` on after
  // `layers_done` blocks; no streams = those runs have not begun. nullptr in a new one.
  virtual const RecordingState* resume_point() const { return nullptr; }

  // Before the layer_done() it belongs to: the streams of the runs from `first_run` on, so that the
  // recording can go on from there.
  virtual void keep_streams(int /*layers_done*/, int /*first_run*/,
                            const std::vector<StreamBytes>& /*streams*/) {}

  // Writes a box of dataset `path` (below the run's group): `start` and `count` have its rank.
  // float and double values are converted to what the dataset holds.
  // Throws Error{invalid_argument} for a dataset that is not there, a box outside it, integers for
  // a dataset of floats or the reverse.
  virtual void write(int run, const std::string& path, const std::vector<std::int64_t>& start,
                     const std::vector<std::int64_t>& count, const float* values) = 0;
  virtual void write(int run, const std::string& path, const std::vector<std::int64_t>& start,
                     const std::vector<std::int64_t>& count, const double* values) = 0;
  virtual void write(int run, const std::string& path, const std::vector<std::int64_t>& start,
                     const std::vector<std::int64_t>& count, const std::int32_t* values) = 0;

  // Rows of attention maps: values [n_heads, n_rows, T] for pattern slot `layer_slot`, head slots
  // head_begin…, row slots row_begin…. Chunks without any of the columns [key_begin, key_end) are
  // not written; of the others all columns are, so those beside the range must be zero. Row ranges
  // that begin on a chunk boundary and end on one (or at the last row) go straight to disk, past
  // HDF5's selection and cache code.
  virtual void write_pattern(int run, int layer_slot, int head_begin, int n_heads, int row_begin,
                             int n_rows, int key_begin, int key_end, const float* values) = 0;

  // All data of `layers_done` layers of the runs now at work, and of the runs before `runs_done`,
  // are in: flush, say so (and which runs have begun: those up to the last that was written),
  // flush.
  virtual void layer_done(int layers_done, int runs_done) = 0;

  // Sets @complete, closes, renames. The writer cannot be used afterwards. Throws
  // Error{invalid_argument} when NAME came into being meanwhile and was to be refused.
  virtual void finish() = 0;
};

}  // namespace sinkscope
