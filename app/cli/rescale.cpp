// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "app/cli/capture_runs.h"
#include "app/cli/command_line.h"
#include "app/cli/input_files.h"
#include "app/cli/model_weights.h"
#include "app/cli/open_flags.h"
#include "app/cli/output_file.h"
#include "app/cli/parse_text.h"
#include "app/cli/run_cli.h"
#include "app/cli/verbs.h"
#include "core/error.h"
#include "core/rescale/report.h"
#include "core/run_done.h"

namespace sinkscope {
namespace {

const char* const kHelp =
    "Text: medians over tokens, per norm and per layer's strongest head. --json and --csv hold\n"
    "every token.\n\n"
    "--json keys: schema (sinkscope.rescale/1), conventions, file, run, model, layers, tokens, "
    "token_text,\n"
    "dims, key, clip, points_above_bound, points_not_finite, norms [{role, layer, eps, dim, r2,\n"
    "share_after, suppression, alpha, elasticity, output_rms, gain_max, gain_dim, bound_1, "
    "bound_5, lower,\n"
    "clip_growth, next_linear}], heads [{layer, head, query, p, share_after, suppression, "
    "through_o}], "
    "queries,\n"
    "not_computed, non_finite_values (null above).\n\n"
    "example: sinkscope rescale run.h5 --model org/name";

struct RescaleFlags {
  std::string input;
  std::optional<std::string> run, model, dims, key, clip, output;
  bool force = false, json = false, csv = false;
  OpenFlags opening;
};

void add_flags(CommandLine& command, RescaleFlags& flags) {
  command.positional("RUN.h5", flags.input, "a capture");
  command.value("--run", flags.run, "NAME", "which of its runs");
  command.value("--model", flags.model, "MODEL", "the capture's model, for what needs its weights");
  add_open_flags(command, flags.opening);
  command.value("--dims", flags.dims, "507",
                "these dimensions together (default: each token's largest)");
  command.value("--key", flags.key, "N", "the sink whose attention is looked at (default 0)");
  command.value("--clip", flags.clip, "C",
                "also the factor on the others with the dimension clipped to C");
  command.value("-o,--output", flags.output, "F.json", "write the evidence as JSON");
  command.flag("--force", flags.force, "replace an existing file");
  command.flag("--json", flags.json, "print as JSON");
  command.flag("--csv", flags.csv, "print the norms as CSV");
  command.footer(kHelp);
}

}  // namespace

int run_rescale(const std::vector<std::string>& args, Console& console) {
  RescaleFlags flags;
  CommandLine command("rescale",
                      "Shows what outliers do: share before and after each norm, rescale factors "
                      "and bounds.");
  add_flags(command, flags);
  if (!command.parse(args, console)) return kExitDone;
  if (flags.json && flags.csv)
    throw Error(ErrorKind::invalid_argument, "expected one of --json and --csv, found both");
  if (flags.output && *flags.output != "-") require_new_file(*flags.output, flags.force);
  if (flags.output) require_apart(*flags.output, {flags.input, flags.model, flags.opening.arch});
  RescaleOptions options;
  if (flags.dims) options.dims = parse_ranges("--dims", *flags.dims);
  if (flags.key) options.key = static_cast<int>(parse_integer("--key", *flags.key, 0, 1 << 24));
  if (flags.clip) options.clip = parse_number("--clip", *flags.clip, 1e-30, 1e30);
  const RunPath place = parse_run_path(flags.input);
  const auto reader = CaptureReader::open(place.path);
  const std::string run = pick_run(*reader, place.run, flags.run, console);
  if (!is_run_done(*reader, run))
    console.warn(fmt::format("{}: incomplete, {} whole layers: there is nothing of the others",
                             place.path, reader->whole_layers(run)));
  const WeightRows weights =
      flags.model ? model_weights(*flags.model, open_options(flags.opening), reader->model(run))
                  : WeightRows{};
  const RescaleReport report = rescale_report(*reader, run, options, weights);
  if (flags.output) {
    OutputFile file(*flags.output, flags.force, console.out);
    file.stream() << rescale_json(report).dump() << '\n';
    file.close();
    if (file.is_standard_output()) return kExitDone;
  }
  if (flags.json)
    console.out << rescale_json(report).dump() << '\n';
  else if (flags.csv)
    console.out << rescale_csv(report);
  else
    console.out << rescale_text(report);
  return kExitDone;
}

}  // namespace sinkscope
