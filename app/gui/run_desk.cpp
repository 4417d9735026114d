// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/run_desk.h"

#include <fmt/format.h>

#include <QEvent>
#include <QWidget>

namespace sinkscope {

const char* const RunDesk::kTwin = "a twin under edits is selected: choose the run itself";

RunDesk::RunDesk(Session& session, QWidget* panel)
    : QObject(panel),
      session_(session),
      files_(std::make_shared<OpenFiles>()),
      worker_(std::make_unique<Worker>(*this)),
      panel_(*panel) {
  panel->installEventFilter(this);
  connect(&session_, &Session::opened, this, [this] { follow(); });
  connect(&session_, &Session::selectionChanged, this, [this] { follow(); });
  listenTo(job_);
  connect(&job_, &BackgroundJob::failed, this, [this](const QString& message) {
    if (run_ == job_run_) jobFailed(message.toStdString());
    publish();
  });
}

RunDesk::~RunDesk() = default;

void RunDesk::listenTo(BackgroundJob& job) {
  connect(&job, &BackgroundJob::progressed, this, &RunDesk::progressed);
  connect(&job, &BackgroundJob::finished, this, [this] { publish(); });
  connect(&job, &BackgroundJob::canceled, this, [this] { publish(); });
}

bool RunDesk::eventFilter(QObject* watched, QEvent* event) {
  if (watched == &panel_ && event->type() == QEvent::Show) look();
  return QObject::eventFilter(watched, event);
}

bool RunDesk::isSeen() const { return panel_.isVisible(); }

std::shared_ptr<const OpenModel> RunDesk::model() const {
  return run_ == nullptr ? nullptr : session_.modelOf(*run_);
}

std::string RunDesk::obstacle() const {
  if (run_ == nullptr) return "no run is selected: record the model, or open a capture";
  if (run_->input.edit_of >= 0) return kTwin;
  const auto open = model();
  if (open == nullptr) return fmt::format("no model: open {} to rerun it", run_->model.name);
  return open->card.obstacles.empty() ? std::string() : open->card.obstacles.front();
}

std::shared_ptr<TemporaryFolder> RunDesk::folder() {
  if (folder_ == nullptr) folder_ = std::make_shared<TemporaryFolder>();
  return folder_;
}

}  // namespace sinkscope
