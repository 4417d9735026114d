// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/figure_of_panel.h"

#include <algorithm>

namespace sinkscope {
namespace {

constexpr int kMostLabels = 64;  // tokens beside a map that can be read

// A run of a capture; the first of its file needs no name.
std::string input_name(const Session& session, const std::string& path, const std::string& run) {
  for (const auto& facts : session.runs())
    if (facts->path == path && !run.empty()) return facts->run == run ? path : path + "::" + run;
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

const char* score_word(ScoreKind kind) {
  switch (kind) {
    case ScoreKind::with_row0:
      return "with-row0";
    case ScoreKind::without_row0:
      return "without-row0";
    case ScoreKind::gu:
      break;
  }
  return "gu";
}

std::string source_word(AttentionSource source) {
  switch (source) {
    case AttentionSource::pattern:
      return "pattern";
    case AttentionSource::window:
      return "window";
    case AttentionSource::thumbnail:
      return "thumbnail";
    default:
      return "automatic";
  }
}

void take_attention(const Session& session, FigureRequest& request) {
  const ViewOptions& options = session.options();
  const CellRef& cell = session.selection().cell;
  if (options.all_heads) {
    request.kind = "attention-grid";
    return;
  }
  request.removes_sink = options.attention_view == AttentionView::sink_removed;
  request.source = source_word(options.attention_source);
  if (options.combine == Combine::single) {
    request.kind = "attention-head";
    request.layer = cell.layer;
    request.head = cell.head;
    return;
  }
  request.kind = "attention-mean";
  request.takes_maximum = options.combine == Combine::max;
  if (!options.all_layers)
    request.layer = cell.layer;
  else if (options.one_head)
    request.head = cell.head;
}

void take_residual(const Session& session, FigureRequest& request) {
  const ViewOptions& options = session.options();
  request.kind = "residual-sorted";
  if (options.order == DimOrder::given)
    request.dim_list = options.given_order;
  else
    request.order = order_word(options.order);
  if (options.is_corner)
    request.n_dims = request.n_tokens = kCornerCells;
  else if (options.order == DimOrder::sorted || options.order == DimOrder::sorted_without_first)
    request.n_dims = 0;
  if (options.averaged_residual) return;
  request.layer = session.selection().cell.layer;
  request.keeps_sign = true;
}

// All sides have one place, which is that of the request; or each its own.
void take_places(const std::vector<CompareItem>& items, FigureRequest& request) {
  const auto take = [&](int CompareItem::*field, std::optional<int>& one, std::vector<int>& each) {
    const bool is_same = std::all_of(items.begin(), items.end(), [&](const CompareItem& item) {
      return item.*field == items.front().*field;
    });
    if (!is_same)
      for (const CompareItem& item : items) each.push_back(item.*field);
    else if (items.front().*field >= 0)
      one = items.front().*field;
  };
  take(&CompareItem::layer, request.layer, request.layers);
  take(&CompareItem::head, request.head, request.heads);
}

bool take_compare(const Session& session, FigureRequest& request) {
  const std::vector<CompareItem>& items = session.compareItems();
  if (items.size() < 2) return false;
  request.kind = "compare";
  request.inputs.clear();
  for (const CompareItem& item : items)
    request.inputs.push_back(input_name(session, item.path, item.run));
  const ViewOptions& options = session.options();
  switch (items.front().kind) {
    case MapKind::attention:
      request.of = "attention-mean";
      request.removes_sink = options.attention_view == AttentionView::sink_removed;
      break;
    case MapKind::residual:
      request.of = "residual-sorted";
      request.order = "natural";
      break;
    case MapKind::norms:
      request.of = "norm-gains";
      request.role = items.front().role;
      request.divides_by_median = options.gain_view == GainView::over_median;
      return true;
    case MapKind::scores:
      request.of = "sink-heads";
      return true;
  }
  take_places(items, request);
  return true;
}

// Gains have a scale and a center of their own, which the figure knows.
bool shows_gains(const FigureRequest& request) {
  return request.kind == "norm-gains" || (request.kind == "compare" && request.of == "norm-gains");
}

void take_view(const PanelView& view, FigureRequest& request) {
  if (view.range && (!shows_gains(request) || view.range->mode == RangeMode::fixed)) {
    request.range = view.range;
    request.range->center.reset();
    request.scale = view.range->scale;
  }
  request.range_each = view.range_each;
  if (!view.zoom || request.kind == "attention-grid") return;
  request.view = FigureView{static_cast<int>(view.zoom->top), static_cast<int>(view.zoom->bottom),
                            static_cast<int>(view.zoom->left), static_cast<int>(view.zoom->right)};
  const bool has_tokens =
      request.kind.starts_with("attention") || request.kind == "residual-sorted";
  request.labels_tokens = has_tokens && view.zoom->height() <= kMostLabels;
}

}  // namespace

std::vector<std::string> figure_inputs(const Session& session) {
  std::vector<std::string> inputs;
  for (const auto& facts : session.runs())
    inputs.push_back(input_name(session, facts->path, facts->run));
  for (const auto& model : session.models()) inputs.push_back(model->card.path);
  return inputs;
}

ModelArchs figure_models(const Session& session) {
  ModelArchs models;
  for (const auto& model : session.models()) models[model->card.path] = model->files->arch_file();
  return models;
}

std::optional<FigureRequest> figure_of_panel(const std::string& panel_id, const Session& session,
                                             const PanelView& view) {
  FigureRequest request;
  const auto facts = session.run();
  if (facts != nullptr)
    request.inputs = {input_name(session, facts->path, facts->run)};
  else if (session.model() != nullptr)
    request.inputs = {session.model()->card.path};
  else
    return std::nullopt;
  if (panel_id == "overview") {
    request.kind = "sink-heads";
    request.score = score_word(session.options().score);
  } else if (panel_id == "attention") {
    take_attention(session, request);
  } else if (panel_id == "residual") {
    take_residual(session, request);
  } else if (panel_id == "norms") {
    request.kind = "norm-gains";
    request.divides_by_median = session.options().gain_view == GainView::over_median;
  } else if (panel_id != "compare" || !take_compare(session, request)) {
    return std::nullopt;
  }
  request.archs = archs_for(request.inputs, figure_models(session));
  take_view(view, request);
  return request;
}

}  // namespace sinkscope
