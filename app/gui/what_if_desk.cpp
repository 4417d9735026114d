// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/what_if_desk.h"

#include <fmt/format.h>

#include <QEvent>
#include <QWidget>
#include <filesystem>
#include <utility>

#include "app/absorb_model.h"
#include "app/cli/parse_text.h"
#include "app/cli/size_table.h"
#include "app/record_capture.h"
#include "app/replace_file.h"
#include "app/what_if_plan.h"
#include "core/error.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

const char* const kTwin = "a twin under edits is selected: choose the run itself";

void remove_file(const std::string& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
}

// What a recording leaves beside `path` that was stopped or has failed goes with this.
struct Unfinished {
  std::string path;
  ~Unfinished() {
    const std::string start = fs::path(path).filename().string() + ".part";
    std::vector<std::string> left;
    std::error_code ignored;
    for (fs::directory_iterator entry(fs::path(path).parent_path(), ignored), end; entry != end;
         entry.increment(ignored))
      if (entry->path().filename().string().starts_with(start))
        left.push_back(entry->path().string());
    for (const std::string& file : left) remove_file(file);
  }
};

}  // namespace

WhatIfDesk::WhatIfDesk(Session& session, QWidget* panel)
    : QObject(panel),
      session_(session),
      panel_(*panel),
      files_(std::make_shared<OpenFiles>()),
      worker_(std::make_unique<Worker>(*this)) {
  panel->installEventFilter(this);
  connect(&session_, &Session::opened, this, &WhatIfDesk::follow);
  connect(&session_, &Session::selectionChanged, this, &WhatIfDesk::follow);
  connect(&job_, &BackgroundJob::progressed, this, &WhatIfDesk::progressed);
  connect(&job_, &BackgroundJob::finished, this, &WhatIfDesk::publish);
  connect(&job_, &BackgroundJob::canceled, this, &WhatIfDesk::publish);
  connect(&absorb_job_, &BackgroundJob::progressed, this, &WhatIfDesk::progressed);
  connect(&absorb_job_, &BackgroundJob::finished, this, &WhatIfDesk::publish);
  connect(&absorb_job_, &BackgroundJob::canceled, this, &WhatIfDesk::publish);
  connect(&job_, &BackgroundJob::failed, this, [this](const QString& message) {
    if (baseline_ == job_run_) state_.failure = message.toStdString();
    publish();
  });
  connect(&absorb_job_, &BackgroundJob::failed, this,
          [this](const QString& message) { fail(message.toStdString()); });
  follow();
}

WhatIfDesk::~WhatIfDesk() { worker_.reset(); }

bool WhatIfDesk::eventFilter(QObject* watched, QEvent* event) {
  if (watched == &panel_ && event->type() == QEvent::Show) look();
  return QObject::eventFilter(watched, event);
}

void WhatIfDesk::look() {
  if (is_looked_at_) return;
  is_looked_at_ = true;
  readMaps();
  startPreview();
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
  const bool is_other = run != baseline_;  // also one that was recorded anew
  if (is_other) {
    forget();
    recorded_.clear();
    recorded_failure_.clear();
  }
  baseline_ = run;
  if (is_other && run != nullptr)
    worker_->submit(
        "command",
        [this, files = files_, run](const std::stop_token&) -> Worker::Deliver {
          files->close(run->path);
          const std::string command =
              files->reader(run->path).read_text(run->run, "provenance/command");
          check_recorded(command);
          return [this, run, command] {
            if (baseline_ != run) return;
            recorded_ = command;
            publish();
          };
        },
        [this, run](const std::string& message) {
          if (baseline_ != run) return;
          recorded_failure_ = message;
          fail(message);
        });
  const CellRef& cell = session_.selection().cell;
  const BeforeAfterRequest before = state_.maps_request;
  state_.maps_request.layer = cell.layer;
  state_.maps_request.head = cell.head;
  publish();
  if (is_other || state_.maps_request != before) is_looked_at_ = false;
  if (panel_.isVisible()) look();
}

std::string WhatIfDesk::obstacle() const {
  if (baseline_ == nullptr) return "no run is selected: record the model, or open a capture";
  if (baseline_->input.edit_of >= 0) return kTwin;
  const auto model = session_.modelOf(*baseline_);
  if (model == nullptr) return fmt::format("no model: open {} to rerun it", baseline_->model.name);
  if (!model->card.obstacles.empty()) return model->card.obstacles.front();
  if (!recorded_failure_.empty()) return recorded_failure_;
  if (recorded_.empty()) return "reading how the run was recorded";
  return {};
}

void WhatIfDesk::run() {
  state_.failure.clear();
  const std::string why = obstacle();
  const WhatIf edits = switched_on(history_.current());
  if (!why.empty() || edits.empty()) {
    job_.cancel();
    publish();
    return;
  }
  try {
    if (folder_ == nullptr) folder_ = std::make_shared<TemporaryFolder>();
  } catch (const std::exception& error) {
    return fail(error.what());
  }
  const std::string path = folder_->file(fmt::format("what-if-{}.h5", ++n_runs_));
  const auto run = baseline_;
  const auto model = session_.modelOf(*run)->files;
  job_run_ = run;
  job_.start(model->spec().n_layers,
             [this, run, model, edits, path, recorded = recorded_,
              folder = folder_](JobContext job) -> std::optional<Worker::Deliver> {
               const Unfinished unfinished{path};
               const WhatIfPlan plan = plan_what_if(*model, run->input, recorded, edits);
               require_free_space(path, plan.file_bytes);
               if (!record_capture(*model, plan.request, plan.layout, path,
                                   CaptureWriter::Existing::overwrite, job))
                 return std::nullopt;
               const auto reader = CaptureReader::open(path);
               const auto result =
                   std::make_shared<const WhatIfResult>(read_what_if_result(*reader));
               if (job.stop.stop_requested()) {
                 remove_file(path);
                 return std::nullopt;
               }
               return [this, run, result, edits] {
                 if (baseline_ != run) return remove_file(result->path);
                 state_.result = result;
                 state_.saved.clear();
                 results_.push_back(result->path);
                 tidy();
                 result_edits_ = edits;
                 state_.maps = nullptr;
                 if (panel_.isVisible())
                   readMaps();
                 else
                   is_looked_at_ = false;
               };
             });
  publish();
}

void WhatIfDesk::readMaps() {
  state_.maps_failure.clear();
  if (state_.result == nullptr) return publish();
  const auto result = state_.result;
  const BeforeAfterRequest request = state_.maps_request;
  const auto is_current = [this, result, request] {
    return state_.result == result && state_.maps_request == request;
  };
  worker_->submit(
      "maps",
      [this, files = files_, result, request, is_current](const std::stop_token& stop) {
        auto maps = std::make_shared<const CompareSnapshot>(
            read_before_after(files->reader(result->path), *result, request, stop));
        return [this, maps, prepared = prepare(*maps), is_current] {
          if (!is_current()) return;
          state_.maps = maps;
          state_.prepared_maps = prepared;
          publish();
        };
      },
      [this, is_current](const std::string& message) {
        if (!is_current()) return;
        state_.maps = nullptr;
        state_.maps_failure = message;
        publish();
      });
  publish();
}

// The last two stay: a figure may be made of the one before.
void WhatIfDesk::tidy() {
  while (results_.size() > 2) {
    worker_->submit(
        "tidy " + results_.front(),
        [files = files_, path = results_.front()](const std::stop_token&) -> Worker::Deliver {
          files->close(path);
          remove_file(path);
          return {};
        },
        [](const std::string&) {});
    results_.erase(results_.begin());
  }
}

void WhatIfDesk::preview(const EditList& edits, int selected) {
  preview_edits_ = edits;
  preview_selected_ = selected;
  startPreview();
}

// One at a time: a slider that moves faster than previews are made would replace each of them.
void WhatIfDesk::startPreview() {
  preview_waits_ = preview_runs_;
  if (!hasPreview()) return showPreview(nullptr, {});
  if (baseline_->input.edit_of >= 0) return showPreview(nullptr, kTwin);
  if (preview_runs_) return;
  preview_runs_ = true;
  const PreviewPlace place =
      preview_place(preview_edits_[static_cast<std::size_t>(preview_selected_)].edit,
                    baseline_->run, state_.maps_request.layer, state_.maps_request.head);
  worker_->submit(
      "preview",
      [this, files = files_, run = baseline_, place, what_if = switched_on(preview_edits_),
       input = preview_input_](const std::stop_token&) mutable {
        if (input == nullptr || input->place != place)
          input = std::make_shared<const PreviewInput>(
              read_preview_input(files->reader(run->path), place));
        auto shown = std::make_shared<const PreviewSnapshot>(sinkscope::preview(*input, what_if));
        return [this, run, input, shown] {
          if (baseline_ == run) preview_input_ = input;
          if (baseline_ == run && hasPreview()) showPreview(shown, {});
          endPreview();
        };
      },
      [this, run = baseline_](const std::string& message) {
        if (baseline_ == run && hasPreview()) showPreview(nullptr, message);
        endPreview();
      });
}

void WhatIfDesk::endPreview() {
  preview_runs_ = false;
  if (preview_waits_) startPreview();
}

bool WhatIfDesk::hasPreview() const {
  return baseline_ != nullptr && preview_selected_ >= 0 &&
         preview_selected_ < static_cast<int>(preview_edits_.size());
}

void WhatIfDesk::showPreview(std::shared_ptr<const PreviewSnapshot> shown,
                             const std::string& failure) {
  state_.preview = std::move(shown);
  state_.preview_failure = failure;
  publish();
}

void WhatIfDesk::absorb(const std::string& dims, const std::string& factor,
                        const std::string& folder) {
  state_.failure.clear();
  state_.note.clear();
  const std::string why = obstacle();
  if (!why.empty()) {
    state_.failure = why;
    return publish();
  }
  const auto model = session_.modelOf(*baseline_)->files;
  std::string output = folder;
  while (output.size() > 1 && output.back() == '/') output.pop_back();
  absorb_job_.start(model->spec().n_layers,
                    [this, model, dims, factor, output, input = baseline_->input,
                     recorded = recorded_](JobContext job) -> std::optional<Worker::Deliver> {
                      AbsorbRequest request;
                      request.run = plan_what_if(*model, input, recorded, {}).request;
                      request.run.runs = {input};
                      request.output = output;
                      if (dims != "auto") {
                        request.dims = parse_ranges("dimensions", dims);
                        if (request.dims.empty())
                          throw Error(ErrorKind::invalid_argument,
                                      "dimensions: expected some, found all of them");
                      }
                      if (factor != "auto")
                        request.factor = parse_number("factor", factor, 1e-6, 1e9);
                      const auto outcome = absorb_model(*model, request, std::move(job));
                      if (!outcome) return std::nullopt;
                      return [this, outcome, output] {
                        const std::string text = absorb_text(*outcome);
                        if (outcome->is_kept)
                          state_.note = text + "\nwritten: " + output;
                        else
                          state_.failure = text;
                      };
                    });
  publish();
}

void WhatIfDesk::save(const std::string& path) {
  if (state_.result == nullptr) return;
  worker_->submit(
      "save",
      [this, path, result = state_.result, folder = folder_](const std::stop_token&) {
        replace_file(result->path, path);
        return [this, path, result] {
          state_.note = "saved " + path;
          if (state_.result == result) state_.saved = path;
          publish();
          reopen(path);
        };
      },
      [this](const std::string& message) { fail(message); });
}

// A capture that is open has other contents now.
void WhatIfDesk::reopen(const std::string& path) {
  for (const auto& facts : session_.runs()) {
    std::error_code ignored;
    if (!fs::equivalent(facts->path, path, ignored)) continue;
    return session_.open(QString::fromStdString(facts->path));
  }
}

void WhatIfDesk::publish() {
  state_.edits = history_.current();
  state_.reaches.clear();
  if (baseline_ != nullptr) {
    const ModelFacts& model = baseline_->model;
    const EditSpace space{baseline_->input.token_ids, model.n_layers, model.n_heads, model.d_model};
    for (const SwitchedEdit& one : state_.edits)
      state_.reaches.push_back(reach_text(one.edit, space));
  }
  state_.can_undo = history_.can_undo();
  state_.can_redo = history_.can_redo();
  state_.subject = baseline_ == nullptr ? "" : run_title(*baseline_);
  state_.obstacle = obstacle();
  state_.is_running = job_.isRunning();
  state_.is_absorbing = absorb_job_.isRunning();
  state_.is_current = state_.result != nullptr && result_edits_ == switched_on(state_.edits);
  emit changed();
}

std::string WhatIfDesk::command(const std::string& output) const {
  const auto model = baseline_ == nullptr ? nullptr : session_.modelOf(*baseline_);
  if (model == nullptr || recorded_.empty()) return {};
  return what_if_command(model->card.path, baseline_->input, recorded_,
                         switched_on(history_.current()), output);
}

}  // namespace sinkscope
