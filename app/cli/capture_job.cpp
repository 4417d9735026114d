// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/capture_job.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "app/cli/capture_runs.h"
#include "app/cli/format_text.h"
#include "app/cli/input_files.h"
#include "app/cli/parse_text.h"
#include "app/cli/record_job.h"
#include "app/record_capture.h"
#include "core/capture_reader.h"
#include "core/error.h"
#include "core/output_path.h"
#include "core/recording_state.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLargeStream = std::int64_t{4} << 30;

// The tokens of --like are there already: what makes tokens of a text has nothing to work on.
void require_no_text_flags(const PromptFlags& prompt) {
  const std::pair<const char*, bool> text_flags[] = {
      {"--chat", prompt.chat},
      {"--bos", prompt.bos.has_value()},
      {"--no-special", prompt.no_special},
      {"--pre-tokenizer", prompt.pre_tokenizer.has_value()},
      {"--window", prompt.window.has_value()},
      {"--stride", prompt.stride.has_value()},
      {"--max-windows", prompt.max_windows.has_value()},
      {"--window-rule", prompt.window_rule.has_value()}};
  for (const auto& [name, is_given] : text_flags)
    if (is_given)
      throw Error(
          ErrorKind::invalid_argument,
          fmt::format("{}: expected a prompt beside it, found --like, which brings tokens", name));
}

// A level without maps that the user asks for takes what the other capture says of maps with it.
void leave_out_maps(const RecordFlags& given, RecordFlags& inherited) {
  if (!given.record || parse_record(*given.record).maps) return;
  inherited.heads = given.heads;
  inherited.rows = given.rows;
  inherited.reduce = given.reduce;
  inherited.reduce_over = given.reduce_over;
}

// All runs of RUN.h5, the one of RUN.h5::run1.
std::vector<RunInput> runs_of(const std::string& like, Console& console) {
  const RunPath place = parse_run_path(like);
  const auto reader = CaptureReader::open(place.path);
  std::vector<RunInput> runs;
  const std::optional<std::string> flag =
      place.run.empty() ? std::optional<std::string>("all") : std::nullopt;
  for (const std::string& run : pick_runs(*reader, place.run, flag, console))
    runs.push_back(as_it_is(reader->input(run)));
  return runs;
}

// Disk space that a recording to be resumed has already.
std::int64_t bytes_there(const CaptureFlags& flags) {
  struct stat part {};
  if (!flags.resume || ::stat((*flags.output + ".part").c_str(), &part) != 0) return 0;
  return std::int64_t{part.st_blocks} * 512;
}

void require_room(const CaptureFlags& flags, const CaptureJob& job) {
  if (stream_bytes(job.table) > kLargeStream && !names_stream(flags.record))
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("residual/stream takes {}: name it to have it (--record {},stream), or "
                    "record --record stats",
                    format_bytes(stream_bytes(job.table)), flags.record.record.value_or("stats")));
  require_free_space(*flags.output, total_bytes(job.table) - bytes_there(flags));
}

}  // namespace

void add_request_flags(CommandLine& command, CaptureFlags& flags) {
  add_prompt_flags(command, flags.prompt);
  command.value("--like", flags.like, "RUN.h5[::RUN]",
                "the tokens and options of that capture, where no flag says otherwise");
  add_record_flags(command, flags.record);
  add_run_flags(command, flags.run);
}

CaptureRequest begin_request(CaptureFlags& flags) {
  check_prompt_flags(flags.prompt);
  if (flags.like) {
    if (!has_prompt(flags.prompt)) require_no_text_flags(flags.prompt);
    const auto reader = CaptureReader::open(parse_run_path(*flags.like).path);
    const RecordFlags given = flags.record;
    read_command(reader->read_text(reader->default_run(), "provenance/command"), flags.run,
                 flags.record, flags.prompt);
    leave_out_maps(given, flags.record);
  }
  CaptureRequest request = capture_request(flags.run, flags.record);
  request.command = canonical_command(flags.run, flags.record, flags.prompt);
  return request;
}

CaptureJob plan_job(const CaptureFlags& flags, CaptureRequest request,
                    std::shared_ptr<const ModelFiles> model, Console& console) {
  CaptureJob job{std::move(model), std::move(request), {}, {}, {}};
  const auto plan = parse_window_plan(flags.prompt.window, flags.prompt.stride,
                                      flags.prompt.max_windows, flags.prompt.window_rule);
  job.windows.plan = plan.value_or(WindowPlan{});
  if (flags.like && !has_prompt(flags.prompt)) {
    job.request.runs = runs_of(*flags.like, console);
    check_prompts(job.request.runs, flags.prompt, job.model->spec(), console);
    relabel(job.request.runs, flags.prompt.pre_tokenizer, *job.model, *flags.like, console);
    if (plan) job.windows.windows = windows_of(job.request.runs, *plan);
  } else {
    job.request.runs = read_prompts(flags.prompt, *job.model, console, &job.windows.windows);
  }
  job.layout = plan_capture(*job.model, job.request);
  job.table = size_table(job.layout, job.model->spec());
  return job;
}

void require_free_name(const CaptureFlags& flags) {
  if (flags.force && flags.resume)
    throw Error(ErrorKind::invalid_argument, "--resume goes on, --force starts anew: one of them");
  require_capture_path(*flags.output);
  require_apart(*flags.output, flags.prompt, {flags.model, flags.like, flags.run.opening.arch});
  if (flags.force || flags.resume) return;
  if (is_taken(*flags.output))
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: exists already; --force replaces it", *flags.output));
  if (is_taken(*flags.output + ".part"))
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("{}.part: an unfinished recording exists already; --resume goes on with "
                    "it, --force replaces it",
                    *flags.output));
}

bool is_whole_already(const CaptureFlags& flags) {
  std::error_code ignored;
  const bool is_whole = flags.resume && fs::exists(*flags.output, ignored) &&
                        !fs::exists(*flags.output + ".part", ignored) &&
                        CaptureReader::open(*flags.output)->complete();
  if (is_whole) remove_states(*flags.output + ".part");  // it was killed as it was renamed
  return is_whole;
}

std::optional<CaptureSummary> record_job(const CaptureFlags& flags, const CaptureJob& job,
                                         const JobPlace& place, Console& console) {
  require_room(flags, job);
  using Existing = CaptureWriter::Existing;
  const Existing existing = flags.force    ? Existing::overwrite
                            : flags.resume ? Existing::resume
                                           : Existing::refuse;
  const ProgressMode progress = parse_progress_mode(flags.run.progress, console);
  try {
    return record_to_file(*job.model, job.request, job.layout, *flags.output, existing, progress,
                          console, place);
  } catch (const Error& error) {
    throw with_kept_layers(error, *flags.output);
  }
}

}  // namespace sinkscope
