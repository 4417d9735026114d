// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <future>
#include <nlohmann/json.hpp>
#include <ostream>

#include "app/cli/batch_recorder.h"
#include "app/cli/batch_table.h"
#include "app/cli/run_cli.h"
#include "app/cli/verbs.h"
#include "core/error.h"

namespace sinkscope {
namespace {

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

  BatchRecorder batch(std::move(entries), report, console);
  batch.require_free_names();
  const std::future<void> warming = warm_engine();
  batch.foresee();
  load_engine();  // a program built without it says so once
  const bool is_whole = batch.run();
  return finish(flags, report, is_whole, console);
}

}  // namespace sinkscope
