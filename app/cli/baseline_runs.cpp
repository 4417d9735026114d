// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/baseline_runs.h"

#include <fmt/format.h>

#include <filesystem>

#include "app/cli/capture_runs.h"
#include "app/cli/parse_text.h"
#include "core/error.h"
#include "core/what_if/baseline.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorKind::invalid_argument, message);
}

int number_of(const std::string& run) { return std::stoi(run.substr(3)); }

}  // namespace

Baseline::Baseline(const std::string& path, RunFlags& run, RecordFlags& record,
                   PromptFlags& prompt) {
  const RunPath place = parse_run_path(path);
  reader_ = CaptureReader::open(place.path);
  runs_ = reader_->runs();
  if (!place.run.empty()) {
    if (!reader_->has(place.run, "input/token_ids"))
      throw Error(ErrorKind::not_found, fmt::format("{}: no run {}", place.path, place.run));
    runs_ = {place.run};
  }
  if (!reader_->complete())
    refuse(place.path + ": expected a whole recording, found a part of one");
  for (const std::string& name : runs_)
    if (reader_->input(name).edit_of >= 0)
      refuse(fmt::format("{}: {}: expected a run of the model as it is, found an edited one",
                         place.path, name));
  read_command(reader_->read_text(runs_.front(), "provenance/command"), run, record, prompt);
}

std::future<SinkReport> Baseline::report() const {
  return std::async(std::launch::async, [path = reader_->path(), runs = runs_] {
    return sink_report(*CaptureReader::open(path), runs, SinkOptions{});
  });
}

void Baseline::add_twins(const ModelFiles& model, const std::vector<RunInput>& prompts,
                         const std::string& what_if, const std::string& output,
                         CaptureRequest& request) const {
  const std::string& path = reader_->path();
  check_same_model(*reader_, fingerprint(model.checkpoint()));
  const std::string dtype = request.dtype == RunDtype::float32 ? "float32" : "bfloat16",
                    recorded = reader_->read_text(runs_.front(), "provenance/dtype");
  if (dtype != recorded)
    refuse(fmt::format("{}: dtype: expected {}, found {}", path, dtype, recorded));
  if (!prompts.empty() && prompts.size() != runs_.size())
    refuse(fmt::format("{}: expected as many runs as there are prompts ({}), found {}", path,
                       prompts.size(), runs_.size()));
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    if (!prompts.empty()) check_same_tokens(*reader_, runs_[r], input_sha256(prompts[r].token_ids));
    RunInput twin = reader_->input(runs_[r]);
    twin.edit_of = number_of(runs_[r]);
    twin.what_if = what_if;
    twin.baseline_file =
        fs::proximate(fs::absolute(path), fs::absolute(output).parent_path()).string();
    request.runs.push_back(std::move(twin));
    std::vector<float> normed;
    if (reader_->has(runs_[r], "residual/final_norm"))
      normed = reader_->read_f32(runs_[r], "residual/final_norm");
    request.baseline_final_norms.push_back(std::move(normed));
  }
}

}  // namespace sinkscope
