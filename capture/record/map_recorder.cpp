// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/record/map_recorder.h"

#include <algorithm>
#include <numeric>

namespace sinkscope {

MapRecorder::MapRecorder(const PatternRecord& pattern, int run, int seq_len, WriteQueue& queue,
                         BufferPool& pool)
    : pattern_(pattern),
      run_(run),
      seq_len_(seq_len),
      chunk_rows_(pattern_chunk_side(seq_len, pattern.reduces(ReduceOver::heads)
                                                  ? 1
                                                  : static_cast<int>(pattern.heads.size()))),
      rows_(pattern.rows),
      queue_(queue),
      pool_(pool) {
  if (rows_.empty()) {
    rows_.resize(static_cast<std::size_t>(seq_len));
    std::iota(rows_.begin(), rows_.end(), 0);
  }
}

MapRecorder::Span MapRecorder::inside(const std::vector<int>& recorded, int first, int n) {
  const auto begin = std::lower_bound(recorded.begin(), recorded.end(), first);
  const auto end = std::lower_bound(recorded.begin(), recorded.end(), first + n);
  return {static_cast<int>(begin - recorded.begin()), static_cast<int>(end - recorded.begin())};
}

float* MapRecorder::begin_tile(int head, int n_heads, int row, int n_rows) {
  heads_inside_ = inside(pattern_.heads, head, n_heads);
  rows_inside_ = inside(rows_, row, n_rows);
  if (heads_inside_.count() == 0 || rows_inside_.count() == 0) return nullptr;
  head_ = head;
  n_heads_ = n_heads;
  row_ = row;
  n_rows_ = n_rows;
  tile_ = pool_.take(static_cast<std::size_t>(n_heads) * static_cast<std::size_t>(n_rows) *
                     static_cast<std::size_t>(seq_len_));
  return tile_.get();
}

const float* MapRecorder::line(int head_slot, int row_slot) const {
  const int head = pattern_.heads[static_cast<std::size_t>(head_slot)] - head_;
  const int row = rows_[static_cast<std::size_t>(row_slot)] - row_;
  return tile_.get() + (std::int64_t{head} * n_rows_ + row) * seq_len_;
}

void MapRecorder::end_tile(int key_end, int window) {
  // What lies beyond the keys is written with the last chunk, and reduced with whole rows: zero.
  const int zero_end =
      pattern_.reduce == Reduce::none
          ? std::min(seq_len_, (key_end + chunk_rows_ - 1) / chunk_rows_ * chunk_rows_)
          : seq_len_;
  for (std::int64_t r = 0; r < std::int64_t{n_heads_} * n_rows_; ++r)
    std::fill(tile_.get() + r * seq_len_ + key_end, tile_.get() + r * seq_len_ + zero_end, 0.0f);
  if (pattern_.reduces(ReduceOver::layers)) {
    reduce_layers(window);
  } else if (pattern_.reduce == Reduce::none) {
    write(selection(), layer_slot_, heads_inside_, window);
  } else if (reduce()) {
    write(std::move(reduced_), layer_slot_, {0, 1}, window);
  }
  tile_ = nullptr;
}

std::shared_ptr<float> MapRecorder::selection() const {
  const Span heads = heads_inside_, rows = rows_inside_;
  if (heads.count() == n_heads_ && rows.count() == n_rows_) return tile_;
  std::shared_ptr<float> values =
      pool_.take(static_cast<std::size_t>(heads.count()) * static_cast<std::size_t>(rows.count()) *
                 static_cast<std::size_t>(seq_len_));
  float* to = values.get();
  for (int h = heads.begin; h < heads.end; ++h)
    for (int r = rows.begin; r < rows.end; ++r, to += seq_len_)
      std::copy_n(line(h, r), seq_len_, to);
  return values;
}

// All heads of a row tile arrive before the next rows: accumulate until the last recorded head.
bool MapRecorder::reduce() {
  const Span heads = heads_inside_, rows = rows_inside_;
  if (heads.begin == 0) {
    const std::int64_t n = std::int64_t{rows.count()} * seq_len_;
    reduced_ = pool_.take(static_cast<std::size_t>(n));
    std::fill_n(reduced_.get(), n, 0.0f);
  }
  for (int h = heads.begin; h < heads.end; ++h)
    for (int r = rows.begin; r < rows.end; ++r)
      fold(line(h, r), pattern_.heads.size(),
           reduced_.get() + std::int64_t{r - rows.begin} * seq_len_);
  return heads.end == static_cast<int>(pattern_.heads.size());
}

void MapRecorder::fold(const float* from, std::size_t n, float* to) const {
  const float share = 1.0f / static_cast<float>(n);
  if (pattern_.reduce == Reduce::mean) {
    for (int j = 0; j < seq_len_; ++j) to[j] += from[j] * share;
  } else {
    for (int j = 0; j < seq_len_; ++j) to[j] = std::max(to[j], from[j]);
  }
}

void MapRecorder::reduce_layers(int window) {
  const Span heads = heads_inside_, rows = rows_inside_;
  const std::size_t n = static_cast<std::size_t>(seq_len_) * rows_.size();
  total_.resize(pattern_.heads.size() * n);
  if (window == kAllKeys)
    widest_window_ = kAllKeys;
  else if (widest_window_ != 0)
    widest_window_ = window == 0 ? 0 : std::max(widest_window_, window);
  const bool is_last = layer_slot_ + 1 == static_cast<int>(pattern_.layers.size());
  std::shared_ptr<float> written;
  if (is_last)
    written =
        pool_.take(static_cast<std::size_t>(heads.count()) *
                   static_cast<std::size_t>(rows.count()) * static_cast<std::size_t>(seq_len_));
  float* to = written.get();
  for (int h = heads.begin; h < heads.end; ++h) {
    for (int r = rows.begin; r < rows.end; ++r) {
      float* sum = total_.data() + static_cast<std::size_t>(h) * n +
                   static_cast<std::size_t>(r) * static_cast<std::size_t>(seq_len_);
      fold(line(h, r), pattern_.layers.size(), sum);
      if (is_last) to = std::copy_n(sum, seq_len_, to);
    }
  }
  if (is_last) write(std::move(written), 0, heads, widest_window_);
}

// One job; inside it one piece for each row of chunks, so that chunks above the diagonal or outside
// the window are never written.
void MapRecorder::write(std::shared_ptr<float> values, int layer_slot, Span heads, int window) {
  const Span rows = rows_inside_;
  struct Piece {
    int row, n_rows, key_begin, key_end;
  };
  std::vector<Piece> pieces;
  for (int r = rows.begin; r < rows.end;) {
    const int end = std::min(rows.end, (r / chunk_rows_ + 1) * chunk_rows_);
    const int first_query = rows_[static_cast<std::size_t>(r)];
    const int last_query = rows_[static_cast<std::size_t>(end - 1)];
    pieces.push_back({r, end - r, window > 0 ? std::max(0, first_query - window + 1) : 0,
                      window == kAllKeys ? seq_len_ : last_query + 1});
    r = end;
  }
  const std::int64_t bytes = std::int64_t{4} * heads.count() * rows.count() * seq_len_;
  queue_.push(bytes, [=, run = run_, slot = layer_slot, T = seq_len_](CaptureWriter& writer) {
    for (const Piece& p : pieces) {
      // [heads, rows, T]: a piece of the rows is one block a head.
      if (p.n_rows == rows.count()) {
        writer.write_pattern(run, slot, heads.begin, heads.count(), p.row, p.n_rows, p.key_begin,
                             p.key_end, values.get());
        continue;
      }
      for (int h = 0; h < heads.count(); ++h)
        writer.write_pattern(
            run, slot, heads.begin + h, 1, p.row, p.n_rows, p.key_begin, p.key_end,
            values.get() + (std::int64_t{h} * rows.count() + p.row - rows.begin) * T);
    }
  });
}

}  // namespace sinkscope
