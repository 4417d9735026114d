// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <ostream>

#include "app/cli/capture_flags.h"
#include "app/cli/format_text.h"
#include "app/cli/record_job.h"
#include "app/cli/run_cli.h"
#include "app/cli/size_table.h"
#include "app/cli/verbs.h"
#include "app/record_capture.h"
#include "core/capture_reader.h"
#include "core/error.h"

namespace sinkscope {
namespace {

constexpr std::int64_t kLargeStream = std::int64_t{4} << 30;

const char* const kHelp =
    "Levels of --record: stats (every statistic, no large array), stream (+ the residual stream),\n"
    "maps (+ attention maps), all (+ norm outputs, q, k, v, z). logits and single hooks are added\n"
    "by name: --record stats,logits,hook_attn_out. A stream of more than 4 GiB has to be named.\n\n"
    "--json keys: schema (sinkscope.capture/1), conventions, file, file_bytes, runs, tokens,\n"
    "mean_loss (nats per scored position), device, seconds {load, forward, write, total},\n"
    "peak_rss_bytes; with --window also windows {rule, window, stride, count, scored, mean_loss,\n"
    "perplexity, positions [begin, end, scored_from, bos]}.\n"
    "Windows: rule hf is transformers' recipe (a position is scored by the first window that "
    "holds\n"
    "it; BOS where the text has it), rule llama.cpp scores the second half of windows side by "
    "side,\n"
    "each with BOS first where the text begins with it. Their perplexities cannot be compared.\n"
    "--dry-run --json keys: schema (sinkscope.plan/1), conventions, runs, tokens,\n"
    "groups [{group, shape, bytes}], total_bytes, predicted_memory_bytes.\n\n"
    "example: sinkscope capture org/name --text-file essay.txt --record maps -o essay.h5";

// What --window made of the prompts, for the summary; empty without it.
struct Windows {
  std::vector<TextWindow> windows;
  WindowPlan plan;
};

struct CaptureFlags {
  std::string model;
  PromptFlags prompt;
  RunFlags run;
  RecordFlags record;
  std::optional<std::string> output, like;
  bool force = false, resume = false, dry_run = false, json = false;
};

void add_flags(CommandLine& command, CaptureFlags& flags) {
  command.positional("MODEL", flags.model, "Hugging Face folder, org/name or GGUF file");
  command.value("-o,--output", flags.output, "RUN.h5", "the capture to make");
  command.flag("--force", flags.force, "replace an existing file");
  command.flag("--resume", flags.resume,
               "go on with an unfinished RUN.h5.part of the same request");
  command.flag("--dry-run", flags.dry_run, "print how large the capture gets, and stop");
  command.flag("--json", flags.json, "print the summary as JSON");
  add_prompt_flags(command, flags.prompt);
  command.value("--like", flags.like, "RUN.h5", "the same tokens and options as that capture");
  add_record_flags(command, flags.record);
  add_run_flags(command, flags.run);
  command.footer(kHelp);
}

// The runs of another capture; its options where the command line has none of its own.
std::vector<RunInput> runs_like(CaptureFlags& flags) {
  if (has_prompt(flags.prompt))
    throw Error(ErrorKind::invalid_argument, "--like brings its own tokens: no prompt beside it");
  const auto reader = CaptureReader::open(*flags.like);
  read_command(reader->read_text(reader->default_run(), "provenance/command"), flags.run,
               flags.record, flags.prompt);
  std::vector<RunInput> runs;
  for (const std::string& run : reader->runs()) runs.push_back(as_it_is(reader->input(run)));
  return runs;
}

std::int64_t n_tokens(const std::vector<RunInput>& runs) {
  std::int64_t sum = 0;
  for (const RunInput& run : runs) sum += run.seq_len();
  return sum;
}

void print_plan(const CaptureRequest& request, const std::vector<SizeRow>& table,
                std::int64_t memory, bool json, Console& console) {
  if (json) {
    nlohmann::ordered_json plan = {
        {"schema", "sinkscope.plan/1"},
        {"conventions",
         {{"bytes",
           "as stored, over all runs; map chunks above the diagonal are not "
           "written"}}},
        {"runs", request.runs.size()},
        {"tokens", n_tokens(request.runs)},
        {"groups", nlohmann::ordered_json::array()},
        {"total_bytes", total_bytes(table)},
        {"predicted_memory_bytes", memory}};
    for (const SizeRow& row : table)
      plan["groups"].push_back({{"group", row.group}, {"shape", row.shape}, {"bytes", row.bytes}});
    console.out << plan.dump(2) << '\n';
    return;
  }
  console.out << fmt::format("{} run{}, {} tokens\n\n", request.runs.size(),
                             request.runs.size() == 1 ? "" : "s", n_tokens(request.runs));
  for (const SizeRow& row : table)
    console.out << fmt::format("  {:<26} {:>12}   largest {}\n", row.group, format_bytes(row.bytes),
                               row.shape);
  console.out << fmt::format("  {:<26} {:>12}\n\nmemory while recording: about {}\n", "file",
                             format_bytes(total_bytes(table)), format_bytes(memory));
}

std::int64_t peak_rss_bytes() {
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
  if (loss.size() != windows.windows.size() || loss.front().empty()) return {0, std::nan("")};
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
                         {"bos", runs[w].bos_positions}});
  }
  return {{"rule", name_of(windows.plan.rule)},
          {"window", windows.plan.window},
          {"stride", windows.plan.stride},
          {"count", windows.windows.size()},
          {"scored", score.n_scored},
          {"mean_loss", score.mean_loss},
          {"perplexity", std::exp(score.mean_loss)},
          {"positions", positions}};
}

void print_summary(const CaptureFlags& flags, const CaptureRequest& request, const Windows& windows,
                   const CaptureSummary& summary, double seconds, Console& console) {
  const auto file_bytes = static_cast<std::int64_t>(std::filesystem::file_size(*flags.output));
  if (flags.json) {
    nlohmann::ordered_json result = {
        {"schema", "sinkscope.capture/1"},
        {"conventions",
         {{"mean_loss",
           "mean negative log-likelihood of the next token in nats, over positions "
           "1 to T-1 of all runs; null without a head"}}},
        {"file", *flags.output},
        {"file_bytes", file_bytes},
        {"runs", request.runs.size()},
        {"tokens", summary.n_tokens},
        {"mean_loss", summary.mean_loss},
        {"device", summary.device},
        {"seconds",
         {{"load", summary.load_seconds},
          {"forward", summary.forward_seconds},
          {"write", summary.write_seconds},
          {"total", seconds}}},
        {"peak_rss_bytes", peak_rss_bytes()}};
    if (!windows.windows.empty())
      result["windows"] = windows_json(windows, score_of(windows, *flags.output), request.runs);
    console.out << result.dump(2) << '\n';
    return;
  }
  if (!windows.windows.empty()) {
    const WindowScore score = score_of(windows, *flags.output);
    console.out << fmt::format(
        "{}\nperplexity {:.4f}, mean loss {:.4f} over the {} scored positions (rule {})\n",
        windows_text(windows.windows, request.runs, windows.plan), std::exp(score.mean_loss),
        score.mean_loss, score.n_scored, name_of(windows.plan.rule));
  }
  const std::string loss = std::isfinite(summary.mean_loss)
                               ? fmt::format("mean loss {:.4f}", summary.mean_loss)
                               : std::string("no loss");
  console.out << fmt::format(
      "recorded {} tokens, {}, in {:.1f} s on {}: {} ({})\nnext: sinkscope "
      "sinks {}\n",
      format_count(summary.n_tokens), loss, seconds, summary.device, *flags.output,
      format_bytes(file_bytes), shell_word(*flags.output));
}

void require_new(const CaptureFlags& flags) {
  if (flags.force && flags.resume)
    throw Error(ErrorKind::invalid_argument, "--resume goes on, --force starts anew: one of them");
  std::error_code ignored;
  if (flags.force || flags.resume) return;
  if (std::filesystem::exists(*flags.output, ignored))
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: exists already; --force replaces it", *flags.output));
  if (std::filesystem::exists(*flags.output + ".part", ignored))
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("{}.part: an unfinished recording exists already; --resume goes on with "
                    "it, --force replaces it",
                    *flags.output));
}

// Disk space that a recording to be resumed has already.
std::int64_t bytes_there(const CaptureFlags& flags) {
  struct stat part {};
  if (!flags.resume || ::stat((*flags.output + ".part").c_str(), &part) != 0) return 0;
  return std::int64_t{part.st_blocks} * 512;
}

// A recording that is to be resumed and is whole.
bool is_whole_already(const CaptureFlags& flags) {
  std::error_code ignored;
  return flags.resume && !flags.dry_run && std::filesystem::exists(*flags.output, ignored) &&
         !std::filesystem::exists(*flags.output + ".part", ignored) &&
         CaptureReader::open(*flags.output)->complete();
}

int record(const CaptureFlags& flags, const ModelFiles& model, const CaptureRequest& request,
           const Windows& windows, const CaptureLayout& layout, Console& console) {
  const auto begin = std::chrono::steady_clock::now();
  using Existing = CaptureWriter::Existing;
  const Existing existing = flags.force    ? Existing::overwrite
                            : flags.resume ? Existing::resume
                                           : Existing::refuse;
  const ProgressMode progress = parse_progress_mode(flags.run.progress, console);
  std::optional<CaptureSummary> summary;
  try {
    summary = record_to_file(model, request, layout, *flags.output, existing, progress, console);
  } catch (const Error& error) {
    throw with_kept_layers(error, *flags.output);
  }
  if (!summary) {
    console.note(fmt::format("canceled; whole layers are in {}.part, --resume goes on with it",
                             *flags.output));
    return kExitCanceled;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  print_summary(flags, request, windows, *summary, seconds.count(), console);
  return kExitDone;
}

}  // namespace

int run_capture(const std::vector<std::string>& args, Console& console) {
  CaptureFlags flags;
  CommandLine command("capture", "Runs a model over prompts and records what happens inside.");
  add_flags(command, flags);
  if (!command.parse(args, console)) return kExitDone;
  parse_progress_mode(flags.run.progress, console);
  if (!flags.output && !flags.dry_run)
    throw Error(ErrorKind::invalid_argument, "capture: expected -o RUN.h5, the capture to make");
  if (flags.output && !flags.dry_run) require_new(flags);
  if (is_whole_already(flags)) {
    remove_states(*flags.output + ".part");  // of a recording that was killed as it was renamed
    console.note(fmt::format("{} is whole: nothing to resume", *flags.output));
    return kExitDone;
  }
  std::vector<RunInput> runs;
  Windows windows;
  if (flags.like) runs = runs_like(flags);
  CaptureRequest request = capture_request(flags.run, flags.record);
  request.command = canonical_command(flags.run, flags.record, flags.prompt);

  // The engine takes as long to load as a model to open and a text to cut up.
  const std::future<void> warming = flags.dry_run ? std::future<void>() : warm_engine();
  const auto model = open_runnable(flags.model, flags.run.opening, console);
  if (flags.like) {
    check_prompts(runs, flags.prompt, model->spec(), console);
    request.runs = std::move(runs);
  } else {
    request.runs = read_prompts(flags.prompt, *model, console, &windows.windows);
    if (const auto plan = parse_window_plan(flags.prompt.window, flags.prompt.stride,
                                            flags.prompt.max_windows, flags.prompt.window_rule))
      windows.plan = *plan;
  }
  const CaptureLayout layout = plan_capture(*model, request);
  const std::vector<SizeRow> table = size_table(layout);
  if (flags.dry_run) {
    print_plan(request, table, predicted_memory(*model, request), flags.json, console);
    return kExitDone;
  }
  if (stream_bytes(table) > kLargeStream && !names_stream(flags.record))
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("residual/stream takes {}: name it to have it (--record {},stream), or "
                    "record --record stats",
                    format_bytes(stream_bytes(table)), flags.record.record.value_or("stats")));
  require_free_space(*flags.output, total_bytes(table) - bytes_there(flags));
  return record(flags, *model, request, windows, layout, console);
}

}  // namespace sinkscope
