// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/session.h"

#include <algorithm>
#include <utility>

#include "app/cli/capture_runs.h"
#include "app/cli/parse_text.h"
#include "core/error.h"

namespace sinkscope {
namespace {

int clamped(int value, int n) { return n <= 0 ? -1 : std::clamp(value, 0, n - 1); }
int within(int value, int n) { return value < n ? value : -1; }

}  // namespace

Session::Session(QObject* parent)
    : QObject(parent),
      files_(std::make_shared<OpenFiles>()),
      worker_(std::make_unique<Worker>(*this)) {
  overview_.wanted = attention_.wanted = pins_.wanted = true;  // the side columns live on them
}

Session::~Session() { worker_.reset(); }

void Session::open(const QString& path, const QString& archFile) {
  const std::string text = path.toStdString(), arch = archFile.toStdString();
  worker_->submit(
      "open " + text,
      [this, files = files_, text, arch](const std::stop_token&) -> Worker::Deliver {
        const RunPath place = parse_run_path(text);
        if (looks_like_capture(place.path)) {
          auto runs = files->open(place.path);
          return [this, place, runs = std::move(runs)] { addRuns(place.path, place.run, runs); };
        }
        auto model = std::make_shared<OpenModel>(open_for_window(text, arch));
        return [this, model] { addModel(std::move(*model)); };
      },
      [this](const std::string& message) { emit failed(QString::fromStdString(message)); });
}

void Session::addRuns(const std::string& path, const std::string& run, std::vector<RunFacts> runs) {
  const bool has_run = run.empty() || std::any_of(runs.begin(), runs.end(), [&](const auto& facts) {
                         return facts.run == run;
                       });
  if (runs.empty() || !has_run) {
    emit failed(QString::fromStdString(path + ": " + (run.empty() ? "holds no run" : "no " + run)));
    return;
  }
  std::erase_if(runs_, [&](const auto& facts) { return facts->path == path; });
  const std::string chosen = run.empty() ? runs.front().run : run;
  for (RunFacts& facts : runs) runs_.push_back(std::make_shared<const RunFacts>(std::move(facts)));
  // A file that was open before may have other numbers now.
  overview_.request.reset();
  attention_.request.reset();
  thumbnails_.request.reset();
  residual_.request.reset();
  norms_.request.reset();
  compare_.request.reset();
  pins_.request.reset();
  emit opened();
  selection_.path.clear();
  selectRun(path, chosen);
}

void Session::addModel(OpenModel model) {
  std::erase_if(models_, [&](const auto& open) { return open->card.path == model.card.path; });
  models_.push_back(std::make_shared<const OpenModel>(std::move(model)));
  compare_.request.reset();  // it may have other numbers now
  pins_.request.reset();
  // The model of the run that is looked at comes to it; any other takes its place.
  const auto facts = run();
  if (facts == nullptr || facts->model.fingerprint != models_.back()->fingerprint) selection_ = {};
  showModel(models_.back());
}

void Session::selectModel(const std::string& path) {
  for (const auto& open : models_)
    if (open->card.path == path) {
      selection_ = {};
      return showModel(open);
    }
}

void Session::showModel(std::shared_ptr<const OpenModel> model) {
  model_ = std::move(model);
  norms_.request.reset();
  emit opened();
  emit selectionChanged();
  changed();
}

std::shared_ptr<const OpenModel> Session::modelOf(const RunFacts& facts) const {
  const auto found = std::find_if(models_.begin(), models_.end(), [&](const auto& open) {
    return open->fingerprint == facts.model.fingerprint;
  });
  return found == models_.end() ? nullptr : *found;
}

std::shared_ptr<const RunFacts> Session::run() const {
  for (const auto& facts : runs_)
    if (facts->path == selection_.path && facts->run == selection_.run) return facts;
  return nullptr;
}

FindSpace Session::findSpace() const {
  const auto facts = run();
  if (facts == nullptr) return {};
  return {facts->model.n_layers, facts->model.n_heads, facts->model.state_width(),
          facts->input.token_text};
}

void Session::selectRun(const std::string& path, const std::string& run) {
  if (selection_.path == path && selection_.run == run) return;
  selection_.path = path;
  selection_.run = run;
  clampSelection();
  emit selectionChanged();
  changed();
}

void Session::select(const CellRef& change) {
  const Selection before = selection_;
  selection_.cell = merged(selection_.cell, change);
  clampSelection();
  if (selection_ == before) return;
  emit selectionChanged();
  changed();
}

void Session::stepLayer(int by) {
  CellRef change;
  change.layer = std::max(0, selection_.cell.layer + by);
  select(change);
}

void Session::stepHead(int by) {
  CellRef change;
  change.head = std::max(0, selection_.cell.head + by);
  select(change);
}

void Session::clampSelection() {
  const auto facts = run();
  CellRef& cell = selection_.cell;
  if (facts == nullptr) {
    cell = {};
    return;
  }
  cell.layer = clamped(cell.layer, facts->model.n_layers);
  cell.head = clamped(cell.head, facts->model.n_heads);
  for (int CellRef::*position : {&CellRef::query, &CellRef::key, &CellRef::token})
    cell.*position = within(cell.*position, facts->seq_len());
  cell.dim = within(cell.dim, facts->model.state_width());
}

void Session::setOptions(const ViewOptions& options) {
  if (options == options_) return;
  options_ = options;
  emit selectionChanged();
  changed();
}

void Session::setCompareItems(std::vector<CompareItem> items) {
  if (items == compare_items_) return;
  compare_items_ = std::move(items);
  emit selectionChanged();
  changed();
}

void Session::setPinnedCells(std::vector<PinnedCell> cells) {
  if (cells == pinned_) return;
  pinned_ = std::move(cells);
  emit selectionChanged();
  changed();
}

void Session::setWanted(Picture picture, bool wanted) {
  switch (picture) {
    case Picture::thumbnails:
      thumbnails_.wanted = wanted;
      break;
    case Picture::residual:
      residual_.wanted = wanted;
      break;
    case Picture::norms:
      norms_.wanted = wanted;
      break;
    case Picture::compare:
      compare_.wanted = wanted;
      break;
    default:
      return;
  }
  if (wanted) changed();
}

QString Session::failureOf(Picture picture) const {
  const std::string* failures[] = {&overview_.failure, &attention_.failure, &thumbnails_.failure,
                                   &residual_.failure, &norms_.failure,     &compare_.failure,
                                   &pins_.failure};
  return QString::fromStdString(*failures[static_cast<int>(picture)]);
}

}  // namespace sinkscope
