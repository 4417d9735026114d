// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/batch_recorder.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <ostream>
#include <sstream>
#include <utility>

#include "app/cli/input_files.h"
#include "app/cli/output_file.h"
#include "app/cli/record_job.h"
#include "app/cli/stop_signals.h"
#include "capture/checkpoint/text_file.h"
#include "core/capture_reader.h"
#include "core/error.h"
#include "core/recording_request.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

ModelKey model_key(const CaptureFlags& flags) {
  const OpenFlags& opening = flags.run.opening;
  return {flags.model, opening.ignore_index, opening.arch.value_or("")};
}

// Those that a recording reads first. (--like may name what an earlier entry makes.)
void require_files(const PromptFlags& prompt) {
  for (const auto& file : inputs_of(prompt))
    if (file && !is_there(*file))
      throw Error(ErrorKind::not_found, fmt::format("{}: no such file", *file));
}

}  // namespace

BatchRecorder::BatchRecorder(std::vector<BatchEntry> entries, BatchReport& report, Console& console)
    : entries_(std::move(entries)), report_(report), console_(console) {}

void BatchRecorder::require_free_names() const {
  for (const BatchEntry& entry : entries_) {
    try {
      require_free_name(entry.flags);
      require_apart(*entry.flags.output, {report_.manifest});
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("{}: {}", entry.where, error.what()));
    }
  }
}

void BatchRecorder::foresee() {
  std::map<ModelKey, std::optional<Failure>> models;
  for (const BatchEntry& entry : entries_) {
    std::error_code ignored;
    if (entry.flags.resume && fs::exists(*entry.flags.output, ignored)) continue;
    const auto [model, is_new] = models.emplace(model_key(entry.flags), std::nullopt);
    if (is_new)
      model->second =
          failure_of([&] { open_runnable(entry.flags.model, entry.flags.run.opening, console_); });
    const auto failure =
        model->second ? model->second : failure_of([&] { require_files(entry.flags.prompt); });
    if (!failure) continue;
    console_.warn(fmt::format("{}: {}", entry.where, failure->message));
    foreseen_.emplace(entry.number, *failure);
  }
}

bool BatchRecorder::run() {
  const StopSignals signals;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (signals.asked()) return false;
    const BatchEntry& entry = entries_[i];
    place_ = {static_cast<int>(i) + 1, static_cast<int>(entries_.size()), *entry.flags.output};
    bool is_canceled = false;
    const auto known = foreseen_.find(entry.number);
    const auto failure = known != foreseen_.end()
                             ? std::optional(known->second)
                             : failure_of([&] { is_canceled = !record(entry); });
    if (is_canceled) return false;
    if (failure) fail(entry, *failure);
  }
  return true;
}

void BatchRecorder::fail(const BatchEntry& entry, const Failure& failure) {
  report_.failed.push_back({entry.number, entry.where, *entry.flags.output, failure});
  console_.note(fmt::format("{} of {} failed: {}: {}", place_.number, place_.count, entry.where,
                            failure.message));
}

bool BatchRecorder::record(const BatchEntry& entry) {
  if (is_whole_already(entry.flags)) {
    require_same_entry(entry);
    take_rows(entry);
    ++report_.n_whole_already;
    console_.detail(fmt::format("{} of {} is whole: {}", place_.number, place_.count, place_.name));
    return true;
  }
  make_folder_of(*entry.flags.output);
  CaptureFlags flags = entry.flags;
  const CaptureJob job = plan(entry, flags);
  if (!record_job(flags, job, place_, console_)) return false;
  take_rows(entry);
  ++report_.n_recorded;
  console_.note(fmt::format("{} of {} recorded: {}", place_.number, place_.count, place_.name));
  return true;
}

// A recording that is there is the one that the entry asks for now. Of an entry whose model or
// text has gone since, only its options can be compared.
void BatchRecorder::require_same_entry(const BatchEntry& entry) {
  CaptureFlags flags = entry.flags;
  const auto reader = CaptureReader::open(*flags.output);
  CaptureLayout layout;
  try {
    layout = plan(entry, flags).layout;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::not_found) throw;
    flags = entry.flags;
    require_same_command(*reader, begin_request(flags).command);
    console_.warn(fmt::format("{}: {} is whole; its tokens and model are taken as they are: {}",
                              entry.where, *flags.output, error.what()));
    report_.unchecked.push_back({entry.number, entry.where, *flags.output, error.what()});
    return;
  }
  require_same_recording(*reader, layout);
}

// Notes and warnings say which entry they are about.
CaptureJob BatchRecorder::plan(const BatchEntry& entry, CaptureFlags& flags) {
  std::ostringstream said;
  Console quiet{console_.in, console_.out, said, console_.verbosity};
  const auto tell = [&] {
    std::istringstream lines(said.str());
    for (std::string line; std::getline(lines, line);)
      console_.note(fmt::format("{}: {}", entry.where, line));
  };
  try {
    CaptureRequest request = begin_request(flags);
    Console silent{console_.in, console_.out, said, Verbosity::quiet};  // foresee() told it
    CaptureJob job = plan_job(flags, std::move(request), open(flags, silent), quiet);
    tell();
    return job;
  } catch (...) {
    tell();
    throw;
  }
}

void BatchRecorder::take_rows(const BatchEntry& entry) {
  for (BatchRow& row : batch_rows(entry)) report_.rows.push_back(std::move(row));
}

std::shared_ptr<const ModelFiles> BatchRecorder::open(const CaptureFlags& flags, Console& console) {
  const ModelKey key = model_key(flags);
  if (!model_ || key != model_key_) {
    model_.reset();
    model_ = open_runnable(flags.model, flags.run.opening, console);
    model_key_ = key;
  }
  return model_;
}

}  // namespace sinkscope
