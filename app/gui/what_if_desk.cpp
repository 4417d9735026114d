// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/what_if_desk.h"

#include <utility>

#include "app/what_if_plan.h"
#include "core/error.h"

namespace sinkscope {

WhatIfDesk::WhatIfDesk(Session& session, QWidget* panel) : RunDesk(session, panel) {
  listenTo(absorb_job_);
  connect(&absorb_job_, &BackgroundJob::failed, this,
          [this](const QString& message) { fail(message.toStdString()); });
  follow();
}

void WhatIfDesk::apply(EditList edits) {
  history_.apply(std::move(edits));
  edited();
}

void WhatIfDesk::append(const std::string& json) {
  try {
    EditList edits = history_.current();
    for (Edit& edit : parse_what_if(json)) edits.push_back({std::move(edit), true});
    apply(std::move(edits));
  } catch (const Error& error) {
    fail(error.what());
  }
}

void WhatIfDesk::fail(const std::string& message) {
  state_.failure = message;
  publish();
}

void WhatIfDesk::undo() {
  history_.undo();
  edited();
}

void WhatIfDesk::redo() {
  history_.redo();
  edited();
}

void WhatIfDesk::edited() {
  state_.failure.clear();
  state_.note.clear();
  preview(history_.current(), preview_selected_);
  if (runs_always_)
    run();
  else
    publish();
}

void WhatIfDesk::cancel() {
  job_.cancel();
  absorb_job_.cancel();
}

void WhatIfDesk::setRunsAlways(bool always) {
  runs_always_ = always;
  if (always && !state_.is_current) run();
}

void WhatIfDesk::setMaps(MapKind kind) {
  if (state_.maps_request.kind == kind) return;
  state_.maps_request.kind = kind;
  readMaps();
}

// A result belongs to the run it was made from.
void WhatIfDesk::forget() {
  job_.cancel();
  state_.result = nullptr;
  state_.saved.clear();
  state_.maps = nullptr;
  state_.failure.clear();
  state_.maps_failure.clear();
  state_.preview = nullptr;
  state_.preview_failure.clear();
  preview_input_ = nullptr;
}

void WhatIfDesk::follow() {
  const auto run = session_.run();
  const bool is_other = run != run_;  // also one that was recorded anew
  if (is_other) {
    forget();
    run_ = run;
    baseline_ = run == nullptr ? KnownBaseline{} : KnownBaseline{run->path, run->run, {}, {}};
    readCommand();
  }
  const CellRef& cell = session_.selection().cell;
  const BeforeAfterRequest before = state_.maps_request;
  state_.maps_request.layer = cell.layer;
  state_.maps_request.head = cell.head;
  publish();
  if (is_other || state_.maps_request != before) is_looked_at_ = false;
  if (isSeen()) look();
}

void WhatIfDesk::readCommand() {
  recorded_.clear();
  recorded_failure_.clear();
  if (run_ == nullptr) return;
  worker_->submit(
      "command",
      [this, files = files_, run = run_](const std::stop_token&) -> Worker::Deliver {
        files->close(run->path);
        const std::string command =
            files->reader(run->path).read_text(run->run, "provenance/command");
        check_recorded(command);
        return [this, run, command] {
          if (run_ != run) return;
          recorded_ = command;
          publish();
        };
      },
      [this, run = run_](const std::string& message) {
        if (run_ != run) return;
        recorded_failure_ = message;
        fail(message);
      });
}

std::string WhatIfDesk::obstacle() const {
  if (const std::string why = RunDesk::obstacle(); !why.empty()) return why;
  if (!recorded_failure_.empty()) return recorded_failure_;
  return recorded_.empty() ? "reading how the run was recorded" : "";
}

void WhatIfDesk::publish() {
  state_.edits = history_.current();
  state_.reaches.clear();
  if (run_ != nullptr) {
    const ModelFacts& model = run_->model;
    const EditSpace space{run_->input.token_ids, model.n_layers, model.n_heads, model.state_width(),
                          run_->complete ? run_->attention_layers : std::vector<int>()};
    for (const SwitchedEdit& one : state_.edits)
      state_.reaches.push_back(reach_text(one.edit, space));
  }
  state_.can_undo = history_.can_undo();
  state_.can_redo = history_.can_redo();
  state_.subject = run_ == nullptr ? "" : run_title(*run_);
  state_.obstacle = obstacle();
  state_.is_running = job_.isRunning();
  state_.is_absorbing = absorb_job_.isRunning();
  state_.is_current = state_.result != nullptr && result_edits_ == switched_on(state_.edits);
  emit changed();
}

std::string WhatIfDesk::commandOf(const WhatIf& edits) const {
  const auto open = model();
  if (open == nullptr || recorded_.empty()) return {};
  return what_if_command({open->card.path, open->files->arch_file()}, run_->input, recorded_, edits,
                         kWhatIfFile);
}

std::string WhatIfDesk::command() const { return commandOf(switched_on(history_.current())); }

}  // namespace sinkscope
