// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/snapshot/preview_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "core/site_name.h"

namespace sinkscope {
namespace {

using Eigen::Index;

constexpr Index kMostRows = 128, kMostCols = 256;

Index step_of(Index n, Index most) { return std::max<Index>(1, (n + most - 1) / most); }

// The first position behind each row or column of a pooled map.
std::vector<int> first_positions(Index n, Index step) {
  std::vector<int> positions;
  for (Index i = 0; i < n; i += step) positions.push_back(static_cast<int>(i));
  return positions;
}

// Of every block of values the one of largest magnitude; `row_of(r, buffer)` gives row r.
template <class RowOf>
Grid pooled(Index rows, Index cols, RowOf row_of) {
  const Index step_r = step_of(rows, kMostRows), step_c = step_of(cols, kMostCols);
  const Index n_r = (rows + step_r - 1) / step_r, n_c = (cols + step_c - 1) / step_c;
  std::vector<float> cells(static_cast<std::size_t>(n_r * n_c), 0.0F);
  Eigen::RowVectorXf buffer(cols);
  for (Index r = 0; r < rows; ++r) {
    const float* values = row_of(r, buffer);
    float* to = cells.data() + (r / step_r) * n_c;
    for (Index c = 0; c < n_c; ++c) {
      float most = to[c];
      const Index end = std::min(cols, (c + 1) * step_c);
      for (Index i = c * step_c; i < end; ++i)
        if (std::abs(values[i]) > std::abs(most)) most = values[i];
      to[c] = most;
    }
  }
  return Grid(static_cast<int>(n_r), static_cast<int>(n_c), std::move(cells));
}

Grid pooled(const MatrixF& x) {
  return pooled(x.rows(), x.cols(),
                [&](Index r, Eigen::RowVectorXf&) -> const float* { return x.row(r).data(); });
}

Grid pooled_difference(const MatrixF& a, const MatrixF& b) {
  return pooled(a.rows(), a.cols(), [&](Index r, Eigen::RowVectorXf& buffer) -> const float* {
    buffer = b.row(r) - a.row(r);
    return buffer.data();
  });
}

// Cells of a causal map: keys up to the last query behind a row.
Grid causal(const Grid& map, Index n) {
  const Index step_r = step_of(n, kMostRows), step_c = step_of(n, kMostCols);
  std::vector<CellSpan> spans;
  for (int r = 0; r < map.rows(); ++r) {
    const Index last = std::min(n, (r + 1) * step_r) - 1;
    spans.push_back({0, static_cast<int>(last / step_c) + 1});
  }
  return map.with_spans(std::move(spans));
}

std::vector<std::string> labels_of(const RunFacts& facts, const std::vector<int>& positions) {
  std::vector<std::string> labels;
  for (int position : positions)
    labels.push_back(bare_token(facts.input.token_text.at(static_cast<std::size_t>(position))));
  return labels;
}

CompareSnapshot maps_of(const PreviewInput& input, const MatrixF& before, const MatrixF& after) {
  const bool is_head = std::holds_alternative<HeadInput>(input.input);
  CompareSnapshot maps;
  const auto shaped = [&](Grid map) { return is_head ? causal(map, before.rows()) : map; };
  CompareSide side;
  side.kind = is_head ? MapKind::attention : MapKind::residual;
  side.rows = first_positions(before.rows(), step_of(before.rows(), kMostRows));
  side.cols = first_positions(before.cols(), step_of(before.cols(), kMostCols));
  side.model = input.facts.model;
  side.input = input.facts.input;
  side.row_labels = labels_of(input.facts, side.rows);
  if (is_head) side.col_labels = labels_of(input.facts, side.cols);
  side.title = "before";
  side.map = shaped(pooled(before));
  maps.sides.push_back(side);
  side.title = "after";
  side.map = shaped(pooled(after));
  maps.sides.push_back(side);
  maps.differences.push_back({0, 1, shaped(pooled_difference(before, after)), maps.sides[0].rows,
                              maps.sides[0].cols, "after − before"});
  const Index cells = step_of(before.rows(), kMostRows) * step_of(before.cols(), kMostCols);
  if (cells > 1)
    maps.notes.push_back(fmt::format("Each cell shows the largest magnitude of {} × {} values.",
                                     step_of(before.rows(), kMostRows),
                                     step_of(before.cols(), kMostCols)));
  return maps;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value;
  return sum / static_cast<double>(std::max<std::size_t>(1, values.size()));
}

void fill_norm(const NormInput& norm, const PreviewInput& input, const WhatIf& what_if,
               PreviewSnapshot& out) {
  const MatrixF after = previewed_norm(norm, what_if);
  out.title =
      (norm.layer < 0 ? norm.role
                      : layer_label(norm.layer, input.facts.model.n_layers) + "." + norm.role) +
      ": norm output";
  out.line_title = "Output rms of each token";
  out.line_before = row_rms(input.before);
  out.line_after = row_rms(after);
  out.text = fmt::format("output rms: first token {} → {}, mean of the others {} → {}",
                         readable(out.line_before.front()), readable(out.line_after.front()),
                         readable(mean_of({out.line_before.begin() + 1, out.line_before.end()})),
                         readable(mean_of({out.line_after.begin() + 1, out.line_after.end()})));
  out.maps = maps_of(input, input.before, after);
}

// What the head adds up, where an edit changes that and not the weights alone.
void fill_addends(const HeadInput& head, const PreviewInput& input, const WhatIf& what_if,
                  const MatrixF& pattern, PreviewSnapshot& out) {
  const MatrixF before = addend_lengths(head, {}, input.before),
                after = addend_lengths(head, what_if, pattern);
  out.title += ", weight times length of the value";
  out.line_title = "Σ p·‖v‖ of each key";
  out.line_before = column_sums(before);
  out.line_after = column_sums(after);
  const auto share = [](const std::vector<double>& sums) {
    double all = 0;
    for (double one : sums) all += one;
    return all > 0 ? sums.front() / all : 0;
  };
  const double n = static_cast<double>(std::max<Index>(1, before.rows()));
  const auto size = static_cast<double>(std::max<std::size_t>(1, out.line_before.size()));
  out.text = fmt::format("mean Σ p·‖v‖ of a query: {} → {}; share of key 0: {} → {}",
                         readable(mean_of(out.line_before) * size / n),
                         readable(mean_of(out.line_after) * size / n),
                         readable(share(out.line_before)), readable(share(out.line_after)));
  out.maps = maps_of(input, before, after);
}

void fill_head(const HeadInput& head, const PreviewInput& input, const WhatIf& what_if,
               PreviewSnapshot& out) {
  const HeadPreview after = previewed_head(head, what_if);
  out.title = fmt::format("{}, head {}: attention",
                          layer_label(head.layer, input.facts.model.n_layers), head.head);
  const bool is_output = std::any_of(what_if.begin(), what_if.end(), [&](const Edit& edit) {
    return touches_output(edit, head.layer, head.head);
  });
  if (is_output) {
    fill_addends(head, input, what_if, after.pattern, out);
    return;
  }
  out.line_title = "Key mass of each token";
  out.line_before = column_sums(input.before);
  out.line_after = column_sums(after.pattern);
  const double n = static_cast<double>(std::max<Index>(1, input.before.rows()));
  out.text =
      fmt::format("mean attention to key 0: {} → {}; to no key: {} → {}",
                  readable(out.line_before.front() / n), readable(out.line_after.front() / n),
                  readable(mean_of(head.null)), readable(mean_of(after.null)));
  out.maps = maps_of(input, input.before, after.pattern);
}

}  // namespace

PreviewPlace preview_place(const Edit& edit, const std::string& run, int layer, int head) {
  const bool is_attention = std::visit(
      [](const auto& e) {
        return requires { e.heads; };
      },
      edit);
  PreviewPlace place{run, is_attention ? "" : "ln1", layer, is_attention ? head : 0};
  // A norm that the edit names, else the one behind the state that the block's MLP reads.
  const NameList* names = nullptr;
  if (const auto* probe = std::get_if<NormProbe>(&edit)) names = &probe->norms;
  if (const auto* replace = std::get_if<NormReplace>(&edit)) names = &replace->norms;
  if (is_attention) return place;
  place.role = "ln2";
  if (names == nullptr || names->empty()) return place;
  const std::string& name = names->front();
  place.role = name.substr(name.rfind('.') + 1);
  return place;
}

PreviewInput read_preview_input(const CaptureReader& reader, const PreviewPlace& place) {
  PreviewInput input;
  input.place = place;
  input.facts = read_run_facts(reader, place.run);
  if (place.role.empty()) {
    HeadInput head = read_head_input(reader, place.run, place.layer, place.head);
    input.before = head.pattern;
    input.input = std::move(head);
  } else {
    NormInput norm = read_norm_input(reader, place.run, place.role, place.layer);
    input.before = norm_output(norm);
    input.input = std::move(norm);
  }
  return input;
}

PreviewSnapshot preview(const PreviewInput& input, const WhatIf& what_if) {
  PreviewSnapshot out;
  out.place = input.place;
  const auto* norm = std::get_if<NormInput>(&input.input);
  const auto* head = std::get_if<HeadInput>(&input.input);
  std::string elsewhere;  // what a rerun would bring in through the input of this place
  for (const Edit& edit : what_if) {
    const bool is_here = norm != nullptr ? touches_norm(edit, *norm)
                                         : touches_head(edit, head->layer, head->head) ||
                                               touches_output(edit, head->layer, head->head);
    out.is_touched = out.is_touched || is_here;
    const std::string name = name_of(edit);
    if (!is_here && elsewhere.find(name) == std::string::npos)
      elsewhere += (elsewhere.empty() ? "" : ", ") + name;
  }
  if (norm != nullptr)
    fill_norm(*norm, input, what_if, out);
  else
    fill_head(*head, input, what_if, out);
  if (head != nullptr && input.before.rows() < head->seq_len)
    out.text += fmt::format("; first {} of {} tokens", input.before.rows(), head->seq_len);
  if (!out.is_touched) out.text = "none of the edits touches this place; " + out.text;
  if (!elsewhere.empty())
    out.text += fmt::format("; not in this preview, which keeps the recorded input: {}", elsewhere);
  return out;
}

}  // namespace sinkscope
