// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <filesystem>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>
#include <tuple>

#include "app/cli/batch_table.h"
#include "app/cli/record_job.h"
#include "app/cli/run_cli.h"
#include "app/cli/stop_signals.h"
#include "app/cli/verbs.h"
#include "capture/checkpoint/text_file.h"
#include "core/capture_reader.h"
#include "core/error.h"
#include "core/recording_request.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

const char* const kHelp =
    "MANIFEST is JSON (one block, or a list of them) or JSON lines (a block a line). A block says\n"
    "what sinkscope capture is told, by its long flags without the dashes:\n"
    "  {\"model\": \"org/name\", \"text\": \"Hello\", \"record\": \"maps\", \"layers\": \"0-3\", "
    "\"output\": \"x.h5\"}\n"
    "Lists under models, prompts and options make an entry of every combination:\n"
    "  {\"models\": [\"org/a\", {\"model\": \"b.gguf\", \"name\": \"b\"}],\n"
    "   \"prompts\": [\"Hello\", {\"text-file\": \"essay.txt\", \"name\": \"essay\"}],\n"
    "   \"options\": [{\"record\": \"stats\", \"name\": \"s\"}], \"output\": "
    "\"{model}/{prompt}-{options}.h5\"}\n"
    "In output, {n} is the entry's number in four digits, {model} {prompt} {options} are names\n"
    "(default: {n}-{model}.h5). Every entry makes the file that capture makes.\n\n"
    "The manifest is checked before anything is recorded; an entry that fails is named at the end\n"
    "(exit 1), the others go on. Flags given here hold for all entries. --resume compares what is\n"
    "whole with its entry; one whose text or model is gone since is taken as it is, with a "
    "warning,\n"
    "and listed as unchecked.\n\n"
    "--json keys: schema (sinkscope.batch/1), conventions, manifest, shard {index, count},\n"
    "manifest_entries, entries, recorded, whole_already, unchecked [{entry, where, file, "
    "reason}],\n"
    "failed [{entry, where, file, exit_code, error}], runs [{entry, file, model, prompt, options, "
    "run, name, mean_loss, every scalar of\n"
    "sinkscope sinks by its name, residual.max_abs {value, site, token, dim}, sink_tokens,\n"
    "sink_dims}], non_finite_values. --csv: a row a run, the same columns.\n\n"
    "example: sinkscope batch runs.json -o captures --resume --csv";

struct Flags {
  std::string manifest;
  std::optional<std::string> folder, shard;
  CaptureFlags common;
  bool json = false, csv = false;
};

void add_flags(CommandLine& command, Flags& flags) {
  command.positional("MANIFEST", flags.manifest, "what to record; - is standard input");
  command.value("-o,--output", flags.folder, "DIR",
                "where relative outputs lie (default: here); made if it is not there");
  command.flag("--resume", flags.common.resume,
               "leave alone what is whole, go on with what is unfinished");
  command.flag("--force", flags.common.force, "replace existing files");
  command.value("--shard", flags.shard, "i/n",
                "only every n-th entry, from the i-th on (0/4 … 3/4: four jobs)");
  command.flag("--json", flags.json, "print the table of sink numbers as JSON");
  command.flag("--csv", flags.csv, "print it as CSV");
  add_run_flags(command, flags.common.run);
  command.footer(kHelp);
}

// What the command line says of running holds for every entry.
void put_common(const CaptureFlags& common, CaptureFlags& entry) {
  entry.force = common.force;
  entry.resume = common.resume;
  const RunFlags& from = common.run;
  RunFlags& to = entry.run;
  const auto put = [](const std::optional<std::string>& given, std::optional<std::string>& value) {
    if (given) value = given;
  };
  put(from.device, to.device);
  put(from.dtype, to.dtype);
  put(from.threads, to.threads);
  put(from.weight_budget, to.weight_budget);
  put(from.activation_budget, to.activation_budget);
  put(from.kernel, to.kernel);
  put(from.progress, to.progress);
  to.opening.ignore_index |= from.opening.ignore_index;
  put(from.opening.arch, to.opening.arch);
}

// What a model is opened by: its path, whether its index is ignored, its architecture's file.
using ModelKey = std::tuple<std::string, bool, std::string>;
ModelKey model_key(const CaptureFlags& flags) {
  const OpenFlags& opening = flags.run.opening;
  return {flags.model, opening.ignore_index, opening.arch.value_or("")};
}

// Opens each model once for entries that follow each other.
class ModelShelf {
 public:
  std::shared_ptr<const ModelFiles> open(const CaptureFlags& flags, Console& console) {
    const ModelKey key = model_key(flags);
    if (!model_ || key != key_) {
      model_.reset();
      model_ = open_runnable(flags.model, flags.run.opening, console);
      key_ = key;
    }
    return model_;
  }

 private:
  std::shared_ptr<const ModelFiles> model_;
  ModelKey key_;
};

// Those that a recording reads first. (--like may name what an earlier entry makes.)
void require_files(const PromptFlags& prompt) {
  for (const auto& file : {prompt.text_file, prompt.tokens_file, prompt.prompts})
    if (file && !is_there(*file))
      throw Error(ErrorKind::not_found, fmt::format("{}: no such file", *file));
}

class Batch {
 public:
  Batch(std::vector<BatchEntry> entries, BatchReport& report, Console& console)
      : entries_(std::move(entries)), report_(report), console_(console) {}

  // Every name is free, or --force or --resume says what to do. Before anything is recorded.
  void require_free_names() const {
    for (const BatchEntry& entry : entries_) {
      try {
        require_free_name(entry.flags);
      } catch (const Error& error) {
        throw Error(error.kind(), fmt::format("{}: {}", entry.where, error.what()));
      }
    }
  }

  // Models that cannot be opened and files that are not there are told at once, not after hours.
  void foresee() {
    std::map<ModelKey, std::optional<Failure>> models;
    for (const BatchEntry& entry : entries_) {
      std::error_code ignored;
      if (entry.flags.resume && fs::exists(*entry.flags.output, ignored)) continue;
      const auto [model, is_new] = models.emplace(model_key(entry.flags), std::nullopt);
      if (is_new)
        model->second = failure_of(
            [&] { open_runnable(entry.flags.model, entry.flags.run.opening, console_); });
      const auto failure =
          model->second ? model->second : failure_of([&] { require_files(entry.flags.prompt); });
      if (!failure) continue;
      console_.warn(fmt::format("{}: {}", entry.where, failure->message));
      foreseen_.emplace(entry.number, *failure);
    }
  }

  // False: canceled.
  bool run() {
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

 private:
  void fail(const BatchEntry& entry, const Failure& failure) {
    report_.failed.push_back({entry.number, entry.where, *entry.flags.output, failure});
    console_.note(fmt::format("{} of {} failed: {}: {}", place_.number, place_.count, entry.where,
                              failure.message));
  }

  // False: canceled.
  bool record(const BatchEntry& entry) {
    if (is_whole_already(entry.flags)) {
      require_same_entry(entry);
      take_rows(entry);
      ++report_.n_whole_already;
      console_.detail(
          fmt::format("{} of {} is whole: {}", place_.number, place_.count, place_.name));
      return true;
    }
    const fs::path folder = fs::path(*entry.flags.output).parent_path();
    if (!folder.empty()) fs::create_directories(folder);
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
  void require_same_entry(const BatchEntry& entry) {
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
  CaptureJob plan(const BatchEntry& entry, CaptureFlags& flags) {
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
      CaptureJob job = plan_job(flags, std::move(request), shelf_.open(flags, silent), quiet);
      tell();
      return job;
    } catch (...) {
      tell();
      throw;
    }
  }

  void take_rows(const BatchEntry& entry) {
    for (BatchRow& row : batch_rows(entry)) report_.rows.push_back(std::move(row));
  }

  std::vector<BatchEntry> entries_;
  BatchReport& report_;
  Console& console_;
  ModelShelf shelf_;
  JobPlace place_;
  std::map<int, Failure> foreseen_;  // by entry; these are not tried
};

int finish(const Flags& flags, const BatchReport& report, bool is_whole, Console& console) {
  if (flags.json)
    console.out << batch_json(report).dump(2) << '\n';
  else
    console.out << (flags.csv ? batch_csv(report) : batch_text(report));
  for (const BatchFailure& failed : report.failed)
    console.err << one_line(fmt::format("sinkscope: entry {} failed, {}: {}", failed.entry,
                                        failed.where, failed.failure.message))
                << '\n';
  if (!is_whole) {
    console.note("canceled; whole layers are kept, --resume goes on");
    return kExitCanceled;
  }
  return report.failed.empty() ? kExitDone : kExitCheck;
}

}  // namespace

int run_batch(const std::vector<std::string>& args, Console& console) {
  Flags flags;
  CommandLine command("batch", "Makes many captures, unattended.");
  add_flags(command, flags);
  if (!command.parse(args, console)) return kExitDone;
  if (flags.json && flags.csv)
    throw Error(ErrorKind::invalid_argument, "expected one of --json and --csv, found both");
  parse_progress_mode(flags.common.run.progress, console);

  BatchReport report;
  report.manifest = flags.manifest;
  if (flags.shard) report.shard = parse_shard(*flags.shard);
  std::vector<BatchEntry> entries =
      read_manifest(flags.manifest, flags.folder.value_or(""), console);
  report.n_manifest = static_cast<int>(entries.size());
  std::erase_if(entries, [&](const BatchEntry& e) { return !report.shard.has(e.number); });
  report.n_entries = static_cast<int>(entries.size());
  for (BatchEntry& entry : entries) put_common(flags.common, entry.flags);
  capture_request(flags.common.run, {});  // the command line's own flags

  Batch batch(std::move(entries), report, console);
  batch.require_free_names();
  const std::future<void> warming = warm_engine();
  batch.foresee();
  load_engine();  // a program built without it says so once
  const bool is_whole = batch.run();
  return finish(flags, report, is_whole, console);
}

}  // namespace sinkscope
