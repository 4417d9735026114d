// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/rescaling_desk.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "app/cli/model_weights.h"
#include "app/cli/output_file.h"
#include "app/cli/parse_text.h"
#include "app/probe_model.h"
#include "app/what_if_plan.h"
#include "core/error.h"

namespace sinkscope {
namespace {

// The table of `sinkscope probe MODEL --dims DIMS [--each]` for the tokens of a recorded run.
std::optional<ProbeTable> probe_table(const ModelFiles& model, const RunFacts& run,
                                      const std::string& dims, bool each, JobContext job) {
  const auto reader = CaptureReader::open(run.path);
  CaptureRequest request =
      plan_what_if(model, run.input, reader->read_text(run.run, "provenance/command"), {}).request;
  request.runs = {run.input};
  ProbeTable table;
  table.tau = 3;
  if (dims == "auto") {
    const auto found = find_outlier_dims(model, request, job);
    if (!found) return std::nullopt;
    table.dims = *found;
  } else {
    table.dims = parse_ranges("dimensions", dims);
    if (table.dims.empty())
      throw Error(ErrorKind::invalid_argument, "dimensions: expected some, found all of them");
  }
  plan_probes(
      model.spec(), request.runs,
      {{PositionFilter::parse("rest"), PositionFilter::parse("first")}, all_probe_modes(), each},
      table);
  if (!measure_probes(model, evaluate_like(request), table, job)) return std::nullopt;
  return table;
}

RescalingRequest evidence_request(const RunFacts& run, const std::string& dims, int key) {
  RescalingRequest request;
  request.run = run.run;
  request.key = key;
  if (dims != "auto" && !dims.empty()) request.dims = parse_ranges("dimensions", dims);
  return request;
}

}  // namespace

RescalingDesk::RescalingDesk(Session& session, QWidget* panel) : RunDesk(session, panel) {
  follow();
}

void RescalingDesk::follow() {
  const auto run = session_.run();
  // A run that was recorded anew is another one.
  if (run != run_) {
    job_.cancel();
    run_ = run;
    is_read_ = false;
    state_ = {};
    publish();
  } else if (state_.obstacle != obstacle()) {
    publish();
  }
  if (isSeen()) look();
}

void RescalingDesk::setEvidence(const std::string& dims, int key) {
  if (dims == dims_ && key == key_) return;
  dims_ = dims;
  key_ = key;
  is_read_ = false;
  state_.failure.clear();
  look();
}

void RescalingDesk::look() {
  if (is_read_ || run_ == nullptr) return;
  is_read_ = true;
  const auto run = run_;
  worker_->submit(
      "evidence",
      [this, files = files_, run, dims = dims_, key = key_](const std::stop_token&) {
        files->close(run->path);  // it may have been recorded anew
        const RescalingRequest request = evidence_request(*run, dims, key);
        auto snapshot = std::make_shared<const RescalingSnapshot>(
            rescaling_snapshot(files->reader(run->path), request));
        return [this, run, snapshot] {
          // What was computed with the weights meanwhile says more.
          const bool is_less = state_.snapshot != nullptr &&
                               state_.snapshot->request == snapshot->request &&
                               !state_.snapshot->contribution.empty();
          if (run_ != run || is_less) return;
          state_.snapshot = snapshot;
          state_.failure.clear();
          publish();
        };
      },
      [this, run](const std::string& message) {
        if (run_ != run) return;
        state_.failure = message;
        publish();
      });
}

void RescalingDesk::runProbes(const std::string& dims, bool each) {
  if (!obstacle().empty()) return publish();
  state_.probes_failure.clear();
  std::shared_ptr<TemporaryFolder> folder;
  try {
    folder = this->folder();
  } catch (const std::exception& error) {
    state_.probes_failure = error.what();
    return publish();
  }
  const auto run = job_run_ = run_;
  const auto open = model();
  job_.start(open->files->spec().n_layers,
             [this, run, model = open->files,
              words = ModelWords{open->card.path, open->files->arch_file()}, dims, each, folder,
              path = folder->file(fmt::format("probes-{}.json", ++n_tables_))](
                 JobContext job) -> std::optional<Worker::Deliver> {
               auto table = probe_table(*model, *run, dims, each, std::move(job));
               if (!table) return std::nullopt;
               ProbesSnapshot made = probes_snapshot(std::move(*table));
               std::ostringstream unused;
               OutputFile file(path, false, unused);  // which says when the disk is full
               file.stream() << probe_json(made.table).dump(2) << '\n';
               file.close();
               made.path = path;
               made.command = probe_command(
                   words, run->input,
                   CaptureReader::open(run->path)->read_text(run->run, "provenance/command"), dims,
                   each, kProbesFile);
               const auto probes = std::make_shared<const ProbesSnapshot>(std::move(made));
               return [this, run, probes] {
                 if (run_ == run) state_.probes = probes;
               };
             });
  publish();
}

void RescalingDesk::computeWithWeights() {
  if (!obstacle().empty()) return publish();
  state_.probes_failure.clear();
  const auto run = job_run_ = run_;
  const auto model = this->model()->files;
  job_.start(model->spec().n_layers,
             [this, run, model, dims = dims_,
              key = key_](JobContext job) -> std::optional<Worker::Deliver> {
               // Between two pieces of a weight it can be stopped.
               const WeightRows all = model_weights(model);
               const WeightRows weights = [&](const std::string& which, int layer,
                                              const std::function<void(const MatrixF&)>& visit) {
                 job.progress.stage = Stage::reading;
                 job.progress.layer = std::max(0, layer);
                 if (!job.stop.stop_requested()) all(which, layer, visit);
               };
               const RescalingRequest request = evidence_request(*run, dims, key);
               auto snapshot = std::make_shared<const RescalingSnapshot>(
                   rescaling_snapshot(*CaptureReader::open(run->path), request, weights));
               if (job.stop.stop_requested()) return std::nullopt;
               return [this, run, dims, key, snapshot] {
                 if (run_ == run && dims_ == dims && key_ == key) state_.snapshot = snapshot;
               };
             });
  publish();
}

void RescalingDesk::publish() {
  state_.obstacle = obstacle();
  state_.is_running = job_.isRunning();
  emit changed();
}

}  // namespace sinkscope
