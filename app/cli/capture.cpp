// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <future>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>

#include "app/cli/capture_job.h"
#include "app/cli/format_text.h"
#include "app/cli/print_plan.h"
#include "app/cli/record_job.h"
#include "app/cli/run_cli.h"
#include "app/cli/verbs.h"
#include "app/record_capture.h"
#include "core/capture_reader.h"
#include "core/error.h"
#include "core/non_finite.h"
#include "core/number_text.h"
#include "core/output_path.h"
#include "core/recording_request.h"

namespace sinkscope {
namespace {

const char* const kHelp =
    "Levels of --record: stats (every statistic, no large array), stream (+ the residual stream),\n"
    "maps (+ attention maps), all (+ norm outputs, q, k, v, z, gates and routers, as far as the "
    "model\n"
    "has them). logits and single hooks are added\n"
    "by name: --record stats,logits,hook_attn_out. A stream of more than 4 GiB has to be named.\n\n"
    "--json keys: schema (sinkscope.capture/1), conventions, file, file_bytes, runs, tokens,\n"
    "mean_loss (nats per scored position), device, bytes_read (of stored weights), seconds {load,\n"
    "attention, statistics: parts of forward; forward, write: beside it; total}, peak_rss_bytes;\n"
    "with --window also windows {rule, window, stride, count, scored, mean_loss, perplexity,\n"
    "position_loss (every scored position once), positions [begin, end, scored_from, weight, "
    "bos]}.\n"
    "Windows: rule hf is the recipe of transformers' documentation: a position is scored by the\n"
    "first window that holds it, BOS stands where the text has it, and mean_loss is the mean of "
    "the\n"
    "windows' mean losses, each weighed by its labels less one: a window with n scored positions\n"
    "counts n where it begins anew (the first; all when the stride is the window), n - 1 where it\n"
    "has context. Rule llama.cpp scores the second half of windows side by side, each with BOS "
    "first\n"
    "where the text begins with it, every position once. perplexity = exp(mean_loss); those of "
    "the\n"
    "two rules cannot be compared.\n"
    "--dry-run: sizes by group of datasets, map chunks that no query sees left out; structure: "
    "names,\n"
    "attributes, texts and indexes. The time is an estimate for this machine's CPU.\n"
    "--dry-run --json keys: schema (sinkscope.plan/1), conventions, runs, tokens,\n"
    "groups [{group, shape, bytes}], total_bytes, predicted_memory_bytes, predicted_read_bytes,\n"
    "predicted_seconds.\n"
    "--dry-run --csv columns: group,shape,bytes.\n\n"
    "example: sinkscope capture org/name --text-file essay.txt --record maps -o essay.h5";

struct Flags {
  CaptureFlags capture;
  bool dry_run = false, json = false, csv = false;
};

void add_flags(CommandLine& command, Flags& flags) {
  command.positional("MODEL", flags.capture.model, "Hugging Face folder, org/name or GGUF file");
  command.value("-o,--output", flags.capture.output, "RUN.h5", "the capture to make");
  command.flag("--force", flags.capture.force, "replace an existing file");
  command.flag("--resume", flags.capture.resume,
               "go on with an unfinished RUN.h5.part of the same request");
  command.flag("--dry-run", flags.dry_run, "print how large the capture gets, and stop");
  command.flag("--json", flags.json, "print the summary as JSON");
  command.flag("--csv", flags.csv, "with --dry-run: print the sizes as one table");
  add_request_flags(command, flags.capture);
  command.footer(kHelp);
}

// The most memory that this process had in use. What getrusage() says counts the program that
// started it, too.
std::int64_t peak_rss_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib * 1024;
  }
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

WindowScore score_of(const Windows& windows, const std::string& path) {
  const auto reader = CaptureReader::open(path);
  std::vector<std::vector<double>> loss;
  for (const std::string& run : reader->runs())
    loss.push_back(reader->has(run, "logits/loss") ? reader->read_f64(run, "logits/loss")
                                                   : std::vector<double>());
  if (loss.size() != windows.windows.size() || loss.front().empty())
    return {0, std::nan(""), std::nan("")};
  return score_windows(windows.windows, loss);
}

nlohmann::ordered_json windows_json(const Windows& windows, const WindowScore& score,
                                    const std::vector<RunInput>& runs) {
  auto positions = nlohmann::ordered_json::array();
  for (std::size_t w = 0; w < windows.windows.size(); ++w) {
    const TextWindow& window = windows.windows[w];
    positions.push_back({{"begin", window.begin},
                         {"end", window.end},
                         {"scored_from", window.scored_from},
                         {"weight", window.weight},
                         {"bos", runs[w].bos_positions}});
  }
  return {{"rule", name_of(windows.plan.rule)},
          {"window", windows.plan.window},
          {"stride", windows.plan.stride},
          {"count", windows.windows.size()},
          {"scored", score.n_scored},
          {"mean_loss", score.mean_loss},
          {"perplexity", std::exp(score.mean_loss)},
          {"position_loss", score.position_loss},
          {"positions", positions}};
}

void print_summary(const std::string& output, bool json, const CaptureJob& job,
                   const CaptureSummary& summary, double seconds, Console& console) {
  const auto file_bytes = static_cast<std::int64_t>(std::filesystem::file_size(output));
  const Windows& windows = job.windows;
  const std::vector<RunInput>& runs = job.request.runs;
  if (json) {
    nlohmann::ordered_json result = {
        {"schema", "sinkscope.capture/1"},
        {"conventions",
         {{"mean_loss",
           "mean negative log-likelihood of the next token in nats, over positions "
           "1 to T-1 of all runs; null without a head"}}},
        {"file", output},
        {"file_bytes", file_bytes},
        {"runs", runs.size()},
        {"tokens", summary.n_tokens},
        {"mean_loss", summary.mean_loss},
        {"device", summary.device},
        {"bytes_read", summary.bytes_read},
        {"seconds",
         {{"load", summary.load_seconds},
          {"attention", summary.attention_seconds},
          {"statistics", summary.statistics_seconds},
          {"forward", summary.forward_seconds},
          {"write", summary.write_seconds},
          {"total", seconds}}},
        {"peak_rss_bytes", peak_rss_bytes()}};
    if (!windows.windows.empty())
      result["windows"] = windows_json(windows, score_of(windows, output), runs);
    console.out << result.dump(2) << '\n';
    return;
  }
  if (!windows.windows.empty()) {
    const WindowScore score = score_of(windows, output);
    console.out << fmt::format(
        "{}\nperplexity {:.4f}, mean loss {:.4f} over the {} scored positions (rule {})\n",
        windows_text(windows.windows, runs, windows.plan), std::exp(score.mean_loss),
        score.mean_loss, score.n_scored, name_of(windows.plan.rule));
    if (windows.plan.rule == WindowRule::hugging_face && windows.plan.stride < windows.plan.window)
      console.out << fmt::format(
          "(transformers' weights; with every scored position once: mean loss {:.4f})\n",
          score.position_loss);
  }
  const std::string loss = std::isfinite(summary.mean_loss)
                               ? fmt::format("mean loss {:.4f}", summary.mean_loss)
                               : std::string("no loss");
  console.out << fmt::format(
      "recorded {} tokens, {}, in {:.1f} s on {} ({} of weights read): {} ({})\nnext: sinkscope "
      "sinks {}\n",
      format_count(summary.n_tokens), loss, seconds, summary.device,
      format_bytes(summary.bytes_read), output, format_bytes(file_bytes), shell_word(output));
}

void warn_of_non_finite(const std::string& path, const Console& console) {
  const auto reader = CaptureReader::open(path);
  std::vector<std::pair<std::string, NonFinite>> runs;
  for (const std::string& run : reader->runs())
    runs.emplace_back(run, find_non_finite(*reader, run, std::numeric_limits<int>::max()));
  const std::string warning = non_finite_warning(runs);
  if (!warning.empty()) console.warn(fmt::format("{}::{}", path, warning));
}

int record(const Flags& flags, const CaptureJob& job, Console& console) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string& output = *flags.capture.output;
  const auto summary = record_job(flags.capture, job, {}, console);
  if (!summary) {
    console.note("canceled; " + kept_layers(output) + ", --resume goes on with it");
    return kExitCanceled;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  print_summary(output, flags.json, job, *summary, seconds.count(), console);
  warn_of_non_finite(output, console);
  return kExitDone;
}

}  // namespace

int run_capture(const std::vector<std::string>& args, Console& console) {
  Flags flags;
  CaptureFlags& capture = flags.capture;
  CommandLine command("capture", "Runs a model over prompts and records what happens inside.");
  add_flags(command, flags);
  if (!command.parse(args, console)) return kExitDone;
  parse_progress_mode(capture.run.progress, console);
  if (flags.csv && (flags.json || !flags.dry_run))
    throw Error(ErrorKind::invalid_argument,
                flags.json ? "expected one of --json and --csv, found both"
                           : "--csv is for the table of --dry-run: a summary is no table");
  if (!capture.output && !flags.dry_run)
    throw Error(ErrorKind::invalid_argument, "capture: expected -o RUN.h5, the capture to make");
  if (!flags.dry_run) {
    require_free_name(capture);
    require_folder_of(*capture.output);
  }
  const bool is_whole = !flags.dry_run && is_whole_already(capture);
  CaptureRequest request = begin_request(capture);
  // The engine takes as long to load as a model to open and a text to cut up.
  const std::future<void> warming = flags.dry_run || is_whole ? std::future<void>() : warm_engine();
  const CaptureJob job =
      plan_job(capture, std::move(request),
               open_runnable(capture.model, capture.run.opening, console), console);
  if (flags.dry_run) {
    require_device(job.request);
    print_plan(*job.model, job.request, job.table,
               flags.json  ? PlanFormat::json
               : flags.csv ? PlanFormat::csv
                           : PlanFormat::text,
               console);
    warn_of_little_space(capture.output.value_or("run.h5"), total_bytes(job.table), console);
    return kExitDone;
  }
  if (is_whole) {
    require_same_recording(*CaptureReader::open(*capture.output), job.layout);
    console.note(fmt::format("{} is whole: nothing to resume", *capture.output));
    return kExitDone;
  }
  return record(flags, job, console);
}

}  // namespace sinkscope
