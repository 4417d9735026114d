// SPDX-License-Identifier: GPL-3.0-or-later
// What a session asks its worker for, and what it does with the answer.
#include <fmt/format.h>

#include <stop_token>
#include <utility>

#include "app/gui/session.h"

namespace sinkscope {
namespace {

const char* tag_of(Picture picture) {
  switch (picture) {
    case Picture::overview:
      return "overview";
    case Picture::attention:
      return "attention";
    case Picture::thumbnails:
      return "thumbnails";
    case Picture::residual:
      return "residual";
    case Picture::norms:
      return "norms";
    case Picture::compare:
      return "compare";
    case Picture::pins:
      return "pins";
  }
  return "";
}

template <class Snapshot>
Shown<Snapshot> shown(Snapshot snapshot) {
  auto prepared = Preparation<Snapshot>::of(snapshot);
  return {std::make_shared<const Snapshot>(std::move(snapshot)), std::move(prepared)};
}

// Whether what a slot shows belongs to another run than what is asked for now.
template <class Snapshot, class Request>
bool is_other_run(const Slot<Snapshot, Request>& slot, const std::string& path,
                  const Request& request) {
  return !slot.request || slot.path != path || slot.request->run != request.run;
}

// Pins are of all runs.
bool is_other_run(const Slot<PinnedValues, PinsRequest>& /*slot*/, const std::string& /*path*/,
                  const PinsRequest& /*request*/) {
  return false;
}

// A comparison names the runs of its sides itself.
bool is_other_run(const Slot<CompareSnapshot, CompareRequest>& /*slot*/,
                  const std::string& /*path*/, const CompareRequest& /*request*/) {
  return false;
}

}  // namespace

template <class Snapshot, class Request, class Read>
void Session::refresh(Picture picture, Slot<Snapshot, Request>& slot, const std::string& path,
                      const std::optional<Request>& request, Read read) {
  if (!slot.wanted) return;
  const bool is_empty = !slot.shown.snapshot && slot.failure.empty();
  if (slot.path == path && slot.request == request && (request || is_empty)) return;
  const bool clears = !is_empty && (!request || is_other_run(slot, path, *request));
  slot.path = path;
  slot.request = request;
  if (clears) {
    slot.shown = {};
    slot.failure.clear();
  }
  if (!request) {
    worker_->stop(tag_of(picture));
    if (clears) emit snapshotChanged(picture);
    return;
  }
  const auto answer = [this, picture, &slot, path, request](Shown<Snapshot> result,
                                                            const std::string& failure) {
    if (slot.path != path || slot.request != request) return;
    slot.shown = std::move(result);
    slot.failure = failure;
    emit snapshotChanged(picture);
  };
  worker_->submit(
      tag_of(picture),
      [files = files_, request = *request, read, answer](const std::stop_token& stop) {
        Shown<Snapshot> result = shown(read(*files, request, stop));
        return [answer, result] { answer(result, ""); };
      },
      [answer](const std::string& message) { answer({}, message); });
  if (clears) emit snapshotChanged(picture);  // last: whoever hears it may ask for something else
}

std::optional<AttentionRequest> Session::attentionRequest() const {
  const auto facts = run();
  if (facts == nullptr || !facts->has_attention) return std::nullopt;
  AttentionRequest request;
  request.run = facts->run;
  request.combine = options_.combine;
  request.view = options_.attention_view;
  request.source = options_.attention_source;
  if (options_.combine == Combine::single || !options_.all_layers)
    request.layers = {selection_.cell.layer};
  if (options_.combine == Combine::single || (options_.all_layers && options_.one_head))
    request.heads = {selection_.cell.head};
  return request;
}

std::optional<ResidualRequest> Session::residualRequest() const {
  const auto facts = run();
  if (facts == nullptr || !facts->has_residual) return std::nullopt;
  ResidualRequest request;
  request.run = facts->run;
  if (!options_.averaged_residual)
    request.site = fmt::format("blocks.{}.{}", selection_.cell.layer, options_.residual_hook);
  request.order = options_.order;
  request.given_order = options_.given_order;
  if (options_.is_corner) request.n_dims = request.n_tokens = kCornerCells;
  return request;
}

void Session::changed() {
  const auto facts = run();
  const std::string path = facts == nullptr ? "" : facts->path;
  const auto whole = [&]<class Request>(bool has) -> std::optional<Request> {
    if (facts == nullptr || !has) return std::nullopt;
    Request request;
    request.run = facts->run;
    return request;
  };
  refresh(Picture::overview, overview_, path, whole.operator()<OverviewRequest>(true),
          [path](OpenFiles& files, const OverviewRequest& request, const std::stop_token&) {
            return read_overview(files.reader(path), request);
          });
  refresh(Picture::attention, attention_, path, attentionRequest(),
          [path](OpenFiles& files, const AttentionRequest& request, const std::stop_token& stop) {
            return read_attention(files.reader(path), request, stop);
          });
  refresh(Picture::thumbnails, thumbnails_, path,
          whole.operator()<ThumbnailRequest>(facts != nullptr && facts->has_thumbnail),
          [path](OpenFiles& files, const ThumbnailRequest& request, const std::stop_token&) {
            return read_thumbnails(files.reader(path), request);
          });
  refresh(Picture::residual, residual_, path, residualRequest(),
          [path](OpenFiles& files, const ResidualRequest& request, const std::stop_token&) {
            return read_residual(files.reader(path), request);
          });
  refreshNorms();
  refreshCompare();
  refreshPins();
}

void Session::refreshPins() {
  std::optional<PinsRequest> request;
  if (!pinned_.empty()) request = PinsRequest{pinned_, pin_columns(runs_, models_)};
  refresh(
      Picture::pins, pins_, "", request,
      [models = models_](OpenFiles& files, const PinsRequest& wanted, const std::stop_token& stop) {
        return read_pins(files, models, wanted, stop);
      });
}

// Of the selected capture; without one of the open model, whose gains are in memory.
void Session::refreshNorms() {
  const auto facts = run();
  std::optional<NormsRequest> request;
  if (facts != nullptr ? facts->has_norms : model() != nullptr) {
    request.emplace();
    request->view = options_.gain_view;
    if (facts != nullptr) request->run = facts->run;
  }
  const std::string path = facts != nullptr ? facts->path : "";
  refresh(Picture::norms, norms_, path, request,
          [path, model = model()](OpenFiles& files, const NormsRequest& wanted,
                                  const std::stop_token&) {
            if (!path.empty()) return read_norms_snapshot(files.reader(path), wanted);
            const ArchSpec& spec = model->card.spec;
            return norms_snapshot(model->norms, spec.name, spec.n_layers, wanted);
          });
}

void Session::refreshCompare() {
  std::optional<CompareRequest> request;
  if (compare_items_.size() >= 2)
    request = CompareRequest{compare_items_,
                             {options_.attention_view, options_.residual_hook, options_.gain_view}};
  refresh(Picture::compare, compare_, "", request,
          [models = models_](OpenFiles& files, const CompareRequest& wanted,
                             const std::stop_token& stop) {
            return read_comparison(files, models, wanted, stop);
          });
}

}  // namespace sinkscope
