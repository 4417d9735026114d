// SPDX-License-Identifier: GPL-3.0-or-later
// What the What-if desk runs in the background, and its files.
#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "app/absorb_model.h"
#include "app/cli/parse_text.h"
#include "app/cli/size_table.h"
#include "app/gui/what_if_desk.h"
#include "app/replace_file.h"
#include "app/what_if_plan.h"
#include "core/error.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

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

void WhatIfDesk::run() {
  state_.failure.clear();
  const std::string why = obstacle();
  const WhatIf edits = switched_on(history_.current());
  if (!why.empty() || edits.empty()) {
    job_.cancel();
    publish();
    return;
  }
  std::shared_ptr<TemporaryFolder> folder;
  try {
    folder = this->folder();
  } catch (const std::exception& error) {
    return fail(error.what());
  }
  const std::string path = folder->file(fmt::format("what-if-{}.h5", ++n_runs_));
  const auto run = job_run_ = run_;
  const auto model = this->model()->files;
  job_.start(model->spec().n_layers,
             [this, run, model, edits, path, recorded = recorded_, known = baseline_,
              folder](JobContext job) -> std::optional<Worker::Deliver> {
               const Unfinished unfinished{path};
               const WhatIfPlan plan = plan_what_if(*model, run->input, recorded, edits);
               require_free_space(path, plan.file_bytes);
               auto baseline = record_what_if(*model, plan, path, known, job);
               if (!baseline) return std::nullopt;
               const auto reader = CaptureReader::open(path);
               if (baseline->report == nullptr)
                 baseline->report = std::make_shared<const SinkReport>(
                     sink_report(*reader, {baseline->run}, SinkOptions{}));
               const auto result = std::make_shared<const WhatIfResult>(
                   read_what_if_result(*reader, baseline->report.get()));
               if (job.stop.stop_requested()) {
                 remove_file(path);
                 return std::nullopt;
               }
               return [this, run, result, edits, baseline = *std::move(baseline)] {
                 if (run_ == run)
                   takeResult(result, edits, baseline);
                 else
                   remove_file(result->path);
               };
             });
  publish();
}

void WhatIfDesk::takeResult(std::shared_ptr<const WhatIfResult> result, const WhatIf& edits,
                            const KnownBaseline& baseline) {
  results_.push_back(result->path);
  baseline_ = baseline;
  tidy();
  state_.result = std::move(result);
  state_.result_command = commandOf(edits);
  state_.saved.clear();
  state_.maps = nullptr;
  result_edits_ = edits;
  is_looked_at_ = false;
  if (isSeen()) look();
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

void WhatIfDesk::absorb(const std::string& dims, const std::string& factor,
                        const std::string& folder) {
  state_.failure.clear();
  state_.note.clear();
  const std::string why = obstacle();
  if (!why.empty()) {
    state_.failure = why;
    return publish();
  }
  const auto model = this->model()->files;
  std::string output = folder;
  while (output.size() > 1 && output.back() == '/') output.pop_back();
  absorb_job_.start(model->spec().n_layers,
                    [this, model, dims, factor, output, input = run_->input,
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
      [this, path, result = state_.result, folder = folder()](const std::stop_token&) {
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

}  // namespace sinkscope
