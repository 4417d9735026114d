// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/compare_item.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/error.h"

namespace sinkscope {
namespace {

const OpenModel* model_at(const OpenModels& models, const std::string& path) {
  for (const auto& model : models)
    if (model->card.path == path) return model.get();
  return nullptr;
}

std::string name_of(const CompareItem& item, const OpenModels& models) {
  const OpenModel* model = item.run.empty() ? model_at(models, item.path) : nullptr;
  if (model != nullptr && !model->card.spec.name.empty()) return model->card.spec.name;
  return item.path.substr(item.path.rfind('/') + 1);
}

CompareSide attention_side(const CaptureReader& reader, const CompareItem& item,
                           const CompareView& view, const std::string& title,
                           const std::stop_token& stop) {
  AttentionRequest request;
  request.run = item.run;
  request.view = view.attention;
  if (item.layer >= 0) request.layers = {item.layer};
  if (item.head >= 0) request.heads = {item.head};
  if (item.layer < 0 || item.head < 0) request.combine = Combine::mean;
  return compare_side(read_attention(reader, request, stop), title);
}

CompareSide residual_side(const CaptureReader& reader, const CompareItem& item,
                          const CompareView& view, const std::string& title) {
  ResidualRequest request;
  request.run = item.run;
  if (item.layer >= 0) request.site = fmt::format("blocks.{}.{}", item.layer, view.residual_hook);
  request.order = DimOrder::natural;
  return compare_side(read_residual(reader, request), title);
}

CompareSide gains_side(OpenFiles& files, const OpenModels& models, const CompareItem& item,
                       const CompareView& view, const std::string& title) {
  NormsRequest request;
  request.run = item.run;
  request.roles = {item.role};
  request.view = view.gain;
  NormsSnapshot norms;
  if (!item.run.empty()) {
    norms = read_norms_snapshot(files.reader(item.path), request);
  } else {
    const OpenModel* model = model_at(models, item.path);
    if (model == nullptr)
      throw Error(ErrorKind::not_found, fmt::format("{}: is not open", item.path));
    const ArchSpec& spec = model->card.spec;
    norms = norms_snapshot(model->norms, spec.name, spec.n_layers, request);
  }
  return compare_side(norms, norms.strips.front(), title);
}

CompareSide side_of(OpenFiles& files, const OpenModels& models, const CompareItem& item,
                    const CompareRequest& request, const std::stop_token& stop) {
  const std::string title = title_of(item, request.items, models);
  if (item.kind == MapKind::norms) return gains_side(files, models, item, request.view, title);
  const CaptureReader& reader = files.reader(item.path);
  if (item.kind == MapKind::attention)
    return attention_side(reader, item, request.view, title, stop);
  if (item.kind == MapKind::residual) return residual_side(reader, item, request.view, title);
  OverviewRequest overview;
  overview.run = item.run;
  return compare_side(read_overview(reader, overview), ScoreKind::gu, title);
}

}  // namespace

std::string place_of(const CompareItem& item) {
  switch (item.kind) {
    case MapKind::attention:
      if (item.layer < 0 && item.head < 0) return "all layers and heads";
      if (item.layer < 0) return fmt::format("H{}, mean over layers", item.head);
      return item.head < 0 ? fmt::format("L{}, mean over heads", item.layer)
                           : fmt::format("L{}H{}", item.layer, item.head);
    case MapKind::residual:
      return item.layer < 0 ? "mean |x|" : fmt::format("L{} residual", item.layer);
    case MapKind::norms: {
      const std::size_t slash = item.role.find('/');
      const std::string title = norm_role_title(item.role.substr(0, slash));
      return slash == std::string::npos ? title : title + ", in front";
    }
    case MapKind::scores:
      break;
  }
  return "sink scores";
}

std::string title_of(const CompareItem& item, const std::vector<CompareItem>& all,
                     const OpenModels& models) {
  std::set<std::string> names, paths, runs;
  for (const CompareItem& other : all) {
    names.insert(name_of(other, models));
    paths.insert(other.path);
    runs.insert(other.run);
  }
  std::vector<std::string> parts;
  // Files of one name in several folders are told apart by their whole path.
  if (paths.size() > 1)
    parts.push_back(names.size() < paths.size() ? item.path : name_of(item, models));
  if (runs.size() > 1 && !item.run.empty()) parts.push_back(item.run);
  parts.push_back(place_of(item));
  std::string title;
  for (const std::string& part : parts) title += (title.empty() ? "" : " · ") + part;
  return title;
}

CompareSnapshot read_comparison(OpenFiles& files, const OpenModels& models,
                                const CompareRequest& request, const std::stop_token& stop) {
  std::vector<CompareSide> sides;
  for (const CompareItem& item : request.items)
    sides.push_back(side_of(files, models, item, request, stop));
  return compare(std::move(sides));
}

}  // namespace sinkscope
