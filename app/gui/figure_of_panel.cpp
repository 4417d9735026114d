// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/figure_of_panel.h"

#include <algorithm>

namespace sinkscope {
namespace {

// A run of a capture; the first of its file needs no name.
std::string input_name(const Session& session, const std::string& path, const std::string& run) {
  for (const auto& facts : session.runs())
    if (facts->path == path) return facts->run == run ? path : path + "::" + run;
  return path;
}

std::string order_word(DimOrder order) {
  switch (order) {
    case DimOrder::natural:
      return "natural";
    case DimOrder::sorted_without_first:
      return "sorted-without-first";
    default:
      return "sorted";
  }
}

void take_attention(const Session& session, FigureRequest& request) {
  const ViewOptions& options = session.options();
  const CellRef& cell = session.selection().cell;
  request.removes_sink = options.attention_view == AttentionView::sink_removed;
  if (options.combine == Combine::single) {
    request.kind = "attention-head";
    request.layer = cell.layer;
    request.head = cell.head;
    return;
  }
  request.kind = "attention-mean";
  request.takes_maximum = options.combine == Combine::max;
  if (!options.all_layers) request.layer = cell.layer;
}

bool take_compare(const Session& session, FigureRequest& request) {
  const std::vector<CompareItem>& items = session.compareItems();
  if (items.size() < 2) return false;
  // A figure compares one head of several runs; other comparisons have no command.
  for (const CompareItem& item : items)
    if (item.layer != items.front().layer || item.head != items.front().head) return false;
  request.kind = "compare";
  request.inputs.clear();
  for (const CompareItem& item : items)
    request.inputs.push_back(input_name(session, item.path, item.run));
  request.of = items.front().kind == MapKind::attention ? "attention-mean" : "residual-sorted";
  if (items.front().layer >= 0) request.layer = items.front().layer;
  if (items.front().kind == MapKind::attention) request.head = items.front().head;
  return true;
}

}  // namespace

std::vector<std::string> figure_inputs(const Session& session) {
  std::vector<std::string> inputs;
  for (const auto& facts : session.runs())
    inputs.push_back(input_name(session, facts->path, facts->run));
  if (session.model() != nullptr) inputs.push_back(session.model()->card.path);
  return inputs;
}

std::optional<FigureRequest> figure_of_panel(const std::string& panel_id, const Session& session,
                                             const std::optional<RangeRequest>& range) {
  FigureRequest request;
  const auto facts = session.run();
  if (facts != nullptr)
    request.inputs = {input_name(session, facts->path, facts->run)};
  else if (session.model() != nullptr)
    request.inputs = {session.model()->card.path};
  else
    return std::nullopt;
  const ViewOptions& options = session.options();
  if (panel_id == "overview") {
    request.kind = "sink-heads";
  } else if (panel_id == "attention") {
    take_attention(session, request);
  } else if (panel_id == "residual") {
    request.kind = "residual-sorted";
    request.order = order_word(options.order);
    if (!options.averaged_residual) request.layer = session.selection().cell.layer;
  } else if (panel_id == "norms") {
    request.kind = "norm-gains";
    request.divides_by_median = options.gain_view == GainView::over_median;
  } else if (panel_id != "compare" || !take_compare(session, request)) {
    return std::nullopt;
  }
  // Gains have a scale and a center of their own, which the figure knows.
  if (range && panel_id != "norms") {
    request.range = range;
    request.scale = range->scale;
  }
  return request;
}

}  // namespace sinkscope
