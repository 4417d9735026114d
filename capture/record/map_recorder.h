// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <vector>

#include "capture/model/attention.h"
#include "capture/record/buffer_pool.h"
#include "capture/record/write_queue.h"
#include "core/capture_layout.h"

namespace sinkscope {

// Takes the tiles of one layer of one run and queues what attention/pattern records of them: all
// heads and rows, some of them, or their mean or max over the recorded heads or layers.
class MapRecorder : public MapSink {
 public:
  MapRecorder(const PatternRecord& pattern, int run, int seq_len, WriteQueue& queue,
              BufferPool& pool);

  // The layer (slot in pattern_layers) that the next tiles belong to.
  void start_layer(int layer_slot) { layer_slot_ = layer_slot; }

  float* begin_tile(int head, int n_heads, int row, int n_rows) override;
  void end_tile(int key_end, int window) override;

 private:
  struct Span {  // recorded slots [begin, end) whose indices lie in the tile
    int begin, end;
    int count() const { return end - begin; }
  };
  static Span inside(const std::vector<int>& recorded, int first, int n);
  const float* line(int head_slot, int row_slot) const;
  // The recorded heads and rows of the tile, one behind the other.
  std::shared_ptr<float> selection() const;
  // Folds the tile into `reduced_`; true when the last recorded head is in.
  bool reduce();
  // Folds the tile into `total_`, which the tiles of the last recorded layer are written from.
  void reduce_layers(int window);
  // to <- to and one more of `n` maps, by their mean or max; seq_len values.
  void fold(const float* from, std::size_t n, float* to) const;
  void write(std::shared_ptr<float> values, int layer_slot, Span heads, int window);

  const PatternRecord& pattern_;
  const int run_, seq_len_, chunk_rows_;
  std::vector<int> rows_;  // recorded rows, explicit
  WriteQueue& queue_;
  BufferPool& pool_;
  int layer_slot_ = 0, head_ = 0, n_heads_ = 0, row_ = 0, n_rows_ = 0;
  Span heads_inside_{0, 0}, rows_inside_{0, 0};
  std::shared_ptr<float> tile_, reduced_;
  std::vector<float> total_;  // [heads, rows, T], over the layers so far
  int widest_window_ = -1;    // of those layers; 0 = all keys so far, -1 = none yet, or kAllKeys
};

}  // namespace sinkscope
