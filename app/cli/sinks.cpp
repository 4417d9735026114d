// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>

#include "app/cli/capture_flags.h"
#include "app/cli/capture_runs.h"
#include "app/cli/format_text.h"
#include "app/cli/input_files.h"
#include "app/cli/parse_text.h"
#include "app/cli/record_job.h"
#include "app/cli/run_cli.h"
#include "app/cli/size_table.h"
#include "app/cli/temporary_folder.h"
#include "app/cli/verbs.h"
#include "app/what_if_plan.h"
#include "core/error.h"
#include "core/sink_report.h"

namespace sinkscope {
namespace {

const char* const kHelp =
    "A capture is read; a model is run on the prompt (or the built-in text) first, into a "
    "temporary\n"
    "file or, with -o, into a capture that stays.\n\n"
    "--json keys: schema (sinkscope.sinks/1), conventions (what every number means, by key), "
    "model\n"
    "{name, architecture, fingerprint, n_layers, n_heads, n_kv_heads, d_model}, complete, "
    "layers_done\n"
    "and runs_left_out (only where not all is there), findings (sentences), non_finite_values "
    "(NaN\n"
    "and infinity are null; this counts them), and:\n"
    "  runs [{name, title, tokens, bos_positions,\n"
    "    sink_tokens [{token, text, special, heads, max_score, mean_score, layer, head}],\n"
    "    attention {layers, first_token_score {with_row0, without_row0, mean_map}, gu {epsilon, "
    "key,\n"
    "      queries, score, sink_ratio, cells, cells_above, layer_mean, layer_max,\n"
    "      layer_share_above}},\n"
    "    mechanisms (what the model has of: norm_gates [{role, layer, mean, min, min_dim, max,\n"
    "      max_dim, corr}], attention_gate {layers, mean}, sink_share {layers, mean}, depth\n"
    "      {block_layers, mixes [{target, layer, mean, top1, effective_branches, embedding, "
    "newest,\n"
    "      concentrated}]}, linear_attention {layers, state_norm, last_state_norm}),\n"
    "    residual {sites, max_abs [{site, value, token, dim}], median_abs, kurtosis "
    "{pearson_tensor,\n"
    "      excess_tensor, qualcomm_tensor, uncentered_tensor, pearson_channel_mean,\n"
    "      pearson_channel_max, pearson_token_mean, qualcomm_token_mean}, massive_mode, massive\n"
    "      [{site, value, token, text, dim, ratio}], sorted_dims, sorted_dims_without_first,\n"
    "      first_permille_ratio, first_permille_ratio_without_first, m2, m2_dim, argmax_hit,\n"
    "      sink_dims, residual_sinks [{dim, sites, site, ratio, argmax_hit, mean, sd}],\n"
    "      outlier_tensors {names, inf_norm, kurtosis, max_inf_norm, max_ffn_inf_norm,\n"
    "      max_block_inf_norm, avg_kurtosis, max_kurtosis, max_block_kurtosis}, outlier_features,\n"
    "      not_computed (what this capture cannot tell, and what it takes; {} where nothing is "
    "missing),\n"
    "      non_finite_recorded, first_non_finite {site, token, dim} (only where there is one)}}]\n"
    "  all {runs, tokens and every number above as {mean, sd, min, max} over the runs (with\n"
    "    n_sink_tokens and gu.max), runs_with_sink_token [{token, runs}], runs_with_sink_text\n"
    "    [{text, runs}] (at any position), residual: m2, argmax_hit, sorted_dims and both\n"
    "    first_permille_ratio over the positions of all runs, their spreads over the runs as\n"
    "    m2_over_runs, argmax_hit_over_runs, first_permille_ratio_over_runs,\n"
    "    first_permille_ratio_without_first_over_runs,\n"
    "    max_inf_norm_of_means, runs_with_sink_dim, runs_with_massive_dim [{dim, runs}]}\n"
    "Per-head arrays are [layer with softmax attention][head], per-site arrays follow sites.\n"
    "--csv columns: run,quantity,layer,head,site,token,dim,value,text (a token's label). "
    "sorted_dims\n"
    "have their rank as value; run is \"all\" for what holds over many runs, spreads as "
    "NAME.mean,\n"
    "NAME.sd, NAME.min and NAME.max.\n\n"
    "example: sinkscope sinks RUN.h5 --run all --json";

struct SinkFlags {
  std::string input;
  std::optional<std::string> run_name, output;
  std::optional<std::string> epsilon, key, gu_length, at, min_queries, massive, min_m2, permille;
  bool json = false, csv = false, force = false;
  PromptFlags prompt;
  RunFlags run;
};

void add_flags(CommandLine& command, SinkFlags& flags) {
  command.positional("RUN.h5|MODEL", flags.input, "a capture (RUN.h5::run3: one run), or a model");
  command.flag("--json", flags.json, "print JSON");
  command.flag("--csv", flags.csv, "print one table, a number a row");
  command.value("--run", flags.run_name, "NAME|all", "runs of the capture (default: the first)");
  command.group("Criteria");
  command.value("--epsilon", flags.epsilon, "0.3", "a head sinks where its score exceeds this");
  command.value("--key", flags.key, "0", "the key position whose scores are listed");
  command.value("--gu-length", flags.gu_length, "64", "cut sequences, as published (at most 64)");
  command.value("--min-queries", flags.min_queries, "8",
                "sink tokens: keys with at least so many later queries");
  command.value("--at", flags.at, "first|rest|ids:LO-HI",
                "positions of the residual numbers (ids: token ids; needs the recorded stream)");
  command.value("--massive", flags.massive, "auto|absolute|ratio|zscore",
                "criterion of massive activations");
  command.value("--min-m2", flags.min_m2, "10", "residual sink: mean |h| over its median");
  command.value("--permille", flags.permille, "nearest|ceil", "rounding of the first 1‰ of dims");
  add_prompt_flags(command, flags.prompt);
  add_run_flags(command, flags.run);
  command.value("-o,--output", flags.output, "RUN.h5", "keep the capture made of a model");
  command.flag("--force", flags.force, "replace an existing file");
  command.footer(kHelp);
}

MassiveMode parse_massive(const std::string& text) {
  if (text == "auto") return MassiveMode::automatic;
  if (text == "absolute") return MassiveMode::absolute;
  if (text == "ratio") return MassiveMode::ratio;
  if (text == "zscore") return MassiveMode::zscore;
  throw Error(ErrorKind::invalid_argument,
              fmt::format("--massive: expected auto, absolute, ratio or zscore, found '{}'", text));
}

PositionFilter parse_positions(const std::string& text) {
  try {
    return PositionFilter::parse(text);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("--at: {}", error.what()));
  }
}

SinkOptions sink_options(const SinkFlags& flags) {
  constexpr std::int64_t kMaxInt = std::numeric_limits<int>::max();
  SinkOptions options;
  if (flags.epsilon) options.epsilon = parse_number("--epsilon", *flags.epsilon, 0, 1);
  if (flags.key) options.gu_key = static_cast<int>(parse_integer("--key", *flags.key, 0, kMaxInt));
  if (flags.gu_length)
    options.gu_length = static_cast<int>(parse_integer("--gu-length", *flags.gu_length, 1, 64));
  if (flags.min_queries)
    options.min_later_queries =
        static_cast<int>(parse_integer("--min-queries", *flags.min_queries, 0, kMaxInt));
  if (flags.at) options.at = parse_positions(*flags.at);
  if (flags.massive) options.massive.mode = parse_massive(*flags.massive);
  if (flags.min_m2) options.min_m2 = parse_number("--min-m2", *flags.min_m2, 1, 1e9);
  if (flags.permille) {
    if (*flags.permille != "nearest" && *flags.permille != "ceil")
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("--permille: expected nearest or ceil, found '{}'", *flags.permille));
    options.permille = *flags.permille == "ceil" ? PermilleRounding::up : PermilleRounding::nearest;
  }
  return options;
}

void print_report(const SinkFlags& flags, const SinkReport& report, const std::string& next,
                  Console& console) {
  const std::string non_finite = non_finite_warning(non_finite_values(report));
  if (!non_finite.empty()) console.warn(fmt::format("{}::{}", report.path, non_finite));
  if (flags.json) {
    console.out << sink_report_json(report).dump() << '\n';
  } else if (flags.csv) {
    console.out << sink_report_csv(report);
  } else {
    console.out << sink_report_text(report) << "\nnext: " << next << '\n';
  }
}

int report_capture(const SinkFlags& flags, const SinkOptions& options, Console& console) {
  if (has_prompt(flags.prompt) || flags.output)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: is a capture: a prompt or -o is for a model", flags.input));
  const RunPath place = parse_run_path(flags.input);
  const auto reader = CaptureReader::open(place.path);
  if (!reader->complete())
    console.warn(fmt::format("{}: incomplete, {} whole layers", place.path, reader->layers_done()));
  const auto runs = pick_runs(*reader, place.run, flags.run_name, console);
  const std::string site = fmt::format("blocks.{}.hook_resid_post",
                                       std::max(0, reader->model(runs.front()).n_layers / 2));
  const std::string next =
      reader->has(runs.front(), "residual/stream")
          ? fmt::format("sinkscope dump {} {} -o resid.npy", shell_word(place.path), site)
          : fmt::format("sinkscope dump {} --list", shell_word(place.path));
  print_report(flags, sink_report(*reader, runs, options), next, console);
  return kExitDone;
}

// What is asked of the model: statistics, and the stream where the report needs it or it is kept.
RecordFlags record_for(const SinkFlags& flags, const SinkOptions& options) {
  RecordFlags record;
  const bool needs_stream = options.at.kind == PositionFilter::Kind::ids || flags.output;
  record.record = needs_stream ? "stream" : "stats";
  return record;
}

int report_model(const SinkFlags& flags, const SinkOptions& options, Console& console) {
  if (flags.output) {
    require_new_capture(*flags.output, flags.force);
    require_apart(*flags.output, flags.prompt, {flags.input, flags.run.opening.arch});
  }
  const ProgressMode mode = parse_progress_mode(flags.run.progress, console);
  const RecordFlags record = record_for(flags, options);
  CaptureRequest request = capture_request(flags.run, record);
  request.command = canonical_command(flags.run, record, flags.prompt);
  const std::future<void> warming = warm_engine();
  const auto model = open_runnable(flags.input, flags.run.opening, console);
  request.runs = read_prompts(flags.prompt, *model, console);
  const CaptureLayout layout = plan_capture(*model, request);

  std::optional<TemporaryFolder> folder;
  if (!flags.output) folder.emplace();
  const std::string path = flags.output ? *flags.output : folder->file("run.h5");
  require_free_space(path, total_bytes(size_table(layout, model->spec())));
  const auto existing =
      flags.force ? CaptureWriter::Existing::overwrite : CaptureWriter::Existing::refuse;
  if (!record_to_file(*model, request, layout, path, existing, mode, console)) {
    console.note("canceled");
    return kExitCanceled;
  }
  const auto reader = CaptureReader::open(path);
  const std::vector<std::string> runs =
      pick_runs(*reader, "", flags.run_name ? flags.run_name : "all", console);
  const std::string next =
      flags.output ? fmt::format("sinkscope dump {} --list", shell_word(path))
                   : fmt::format("sinkscope capture {} --record maps -o run.h5",
                                 words_of({flags.input, flags.run.opening.arch.value_or("")}));
  print_report(flags, sink_report(*reader, runs, options), next, console);
  return kExitDone;
}

}  // namespace

int run_sinks(const std::vector<std::string>& args, Console& console) {
  SinkFlags flags;
  CommandLine command("sinks",
                      "Reports attention sinks, massive activations and residual sinks of a "
                      "capture, or of a model.");
  add_flags(command, flags);
  if (!command.parse(args, console)) return kExitDone;
  if (flags.json && flags.csv)
    throw Error(ErrorKind::invalid_argument, "expected one of --json and --csv, found both");
  const SinkOptions options = sink_options(flags);
  return looks_like_capture(parse_run_path(flags.input).path)
             ? report_capture(flags, options, console)
             : report_model(flags, options, console);
}

}  // namespace sinkscope
