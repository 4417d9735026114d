// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/snapshot/attention_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "core/error.h"

namespace sinkscope {
namespace {

// More than this is not read to make one combined picture unless it is asked for.
constexpr std::int64_t kCombinedBytes = std::int64_t{256} << 20;

int slot_of(const std::vector<int>& list, int value) {
  const auto found = std::find(list.begin(), list.end(), value);
  return found == list.end() ? -1 : static_cast<int>(found - list.begin());
}

// One pair a map, or nothing when a map is missing.
std::vector<std::pair<int, int>> slots_of(const std::vector<int>& layers,
                                          const std::vector<int>& heads,
                                          const AttentionRequest& request) {
  std::vector<std::pair<int, int>> slots;
  for (const int layer : request.layers)
    for (const int head : request.heads) {
      slots.emplace_back(slot_of(layers, layer), slot_of(heads, head));
      if (slots.back().first < 0 || slots.back().second < 0) return {};
    }
  return slots;
}

std::vector<int> first_positions(int n) {
  std::vector<int> positions(static_cast<std::size_t>(n));
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

// bin(i) = ⌊i·B/T⌋: the first position of bin b is ⌈b·T/B⌉.
std::vector<int> bin_positions(int n_bins, int seq_len) {
  std::vector<int> positions;
  for (std::int64_t b = 0; b < n_bins; ++b)
    positions.push_back(static_cast<int>((b * seq_len + n_bins - 1) / n_bins));
  return positions;
}

[[noreturn]] void not_there(const RunFacts& facts, const std::string& what) {
  throw Error(ErrorKind::not_found, fmt::format("{}: {}: {}", facts.path, facts.run, what));
}

void fill_statistics_place(const CaptureReader& reader, const RunFacts& facts,
                           const AttentionRequest& request, AttentionPlace& place) {
  // Its dims first: only a dataset of that many heads makes the list below worth its memory.
  const int side = static_cast<int>(reader.dims(facts.run, place.dataset).back());
  const std::vector<int> heads = first_positions(facts.model.n_heads);
  place.slots = slots_of(facts.attention_layers, heads, request);
  if (place.slots.empty())
    not_there(facts, "no such layer with softmax attention, or no such head");
  const int n = facts.seq_len();
  if (place.source == AttentionSource::thumbnail) {
    place.queries = bin_positions(side, n);
    place.positions_per_cell = (n + side - 1) / side;
    place.text = side == n ? "exact map"
                           : fmt::format(
                                 "largest probability of each cell of {} tokens; "
                                 "--record maps keeps every one",
                                 fmt::format("about {}", place.positions_per_cell));
  } else {
    place.queries = first_positions(side);
    place.text = side == n ? "exact map" : fmt::format("first {} of {} tokens, exact", side, n);
  }
  place.keys = place.queries;
}

void fill_pattern_place(const CaptureReader& reader, const RunFacts& facts,
                        const AttentionRequest& request, AttentionPlace& place) {
  place.slots = slots_of(facts.pattern_layers, facts.pattern_heads, request);
  if (place.slots.empty()) not_there(facts, "the map asked for is not recorded");
  place.queries = reader.read_i32(facts.run, "attention/pattern_rows");
  place.keys = first_positions(facts.seq_len());
  const int n_rows = static_cast<int>(place.queries.size());
  place.text = n_rows == facts.seq_len()
                   ? "recorded map"
                   : fmt::format("recorded map, {} of {} queries", n_rows, facts.seq_len());
}

AttentionSource pick(const CaptureReader& reader, const RunFacts& facts,
                     const AttentionRequest& request) {
  if (facts.has_pattern) {
    const auto slots = slots_of(facts.pattern_layers, facts.pattern_heads, request);
    const std::vector<std::int64_t> dims = reader.dims(facts.run, "attention/pattern");
    const std::int64_t bytes = static_cast<std::int64_t>(slots.size()) * dims[2] * dims[3] * 4;
    if (slots.size() == 1 || (!slots.empty() && bytes <= kCombinedBytes))
      return AttentionSource::pattern;
  }
  const bool window_is_whole =
      facts.has_window && reader.dims(facts.run, "attention/window").back() == facts.seq_len();
  const bool wants_cells = request.view == AttentionView::sink_removed ||
                           request.combine == Combine::mean || !facts.has_thumbnail;
  return facts.has_window && (window_is_whole || wants_cells) ? AttentionSource::window
                                                              : AttentionSource::thumbnail;
}

}  // namespace

AttentionRequest resolved(AttentionRequest request, const RunFacts& facts) {
  if (!facts.has_attention) not_there(facts, "no softmax attention is recorded");
  if (request.combine == Combine::single) {
    if (request.layers.empty()) request.layers = {facts.attention_layers.front()};
    if (request.heads.empty()) request.heads = {0};
    if (request.layers.size() != 1 || request.heads.size() != 1)
      throw Error(ErrorKind::invalid_argument, "a single map is of one layer and one head");
  }
  if (request.layers.empty()) request.layers = facts.attention_layers;
  if (request.heads.empty()) request.heads = first_positions(facts.model.n_heads);
  if (request.sink_key < 0 || request.sink_key >= facts.seq_len())
    throw Error(ErrorKind::invalid_argument,
                fmt::format("key {}: expected 0 to {}", request.sink_key, facts.seq_len() - 1));
  return request;
}

AttentionPlace find_attention(const CaptureReader& reader, const RunFacts& facts,
                              const AttentionRequest& request) {
  AttentionPlace place;
  place.source =
      request.source == AttentionSource::automatic ? pick(reader, facts, request) : request.source;
  switch (place.source) {
    case AttentionSource::pattern:
      if (!facts.has_pattern) not_there(facts, "no maps are recorded (--record maps)");
      place.dataset = "attention/pattern";
      fill_pattern_place(reader, facts, request, place);
      return place;
    case AttentionSource::thumbnail:
      if (!facts.has_thumbnail) not_there(facts, "no thumbnails are recorded");
      if (request.view == AttentionView::sink_removed &&
          reader.dims(facts.run, "attention/thumbnail").back() != facts.seq_len())
        throw Error(ErrorKind::invalid_argument,
                    "a thumbnail's cells are maxima: its sink cannot be removed and the rest "
                    "renormalized; the first 64 tokens or a recorded map can");
      place.dataset = "attention/thumbnail";
      break;
    default:
      if (!facts.has_window) not_there(facts, "no exact window is recorded");
      place.source = AttentionSource::window;
      place.dataset = "attention/window";
      break;
  }
  fill_statistics_place(reader, facts, request, place);
  return place;
}

}  // namespace sinkscope
