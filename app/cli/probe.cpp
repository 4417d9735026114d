// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <future>
#include <nlohmann/json.hpp>
#include <ostream>

#include "app/cli/capture_flags.h"
#include "app/cli/engine_job.h"
#include "app/cli/format_text.h"
#include "app/cli/input_files.h"
#include "app/cli/output_file.h"
#include "app/cli/parse_text.h"
#include "app/cli/record_job.h"
#include "app/cli/run_cli.h"
#include "app/cli/verbs.h"
#include "app/probe_model.h"
#include "core/error.h"
#include "core/what_if/probe_table.h"

namespace sinkscope {
namespace {

const char* const kHelp =
    "Probes change what a norm sees, the stream untouched: mean, zero, clamp (|x_d| <= tau rms of\n"
    "the others), direct (output zeroed), denominator (taken out of the root mean square alone),\n"
    "direct_const, remove_const. The loss that each costs tells a rescaler from a flag and from a\n"
    "constant bias channel.\n\n"
    "--json keys: schema (sinkscope.probe/1), conventions, model, dims, tokens, loss,\n"
    "not_measured [{at, mode}], probes [{reader, at, mode, control, delta_loss, kl}], verdicts "
    "[{reader, at, role, "
    "sentence}],\nnon_finite_values (null above).\n\n"
    "example: sinkscope probe org/name --dims auto --text-file essay.txt";

struct ProbeFlags {
  std::string model;
  PromptFlags prompt;
  RunFlags run;
  std::optional<std::string> dims, at, modes, tau, output;
  bool each = false, force = false, json = false, csv = false;
};

void add_flags(CommandLine& command, ProbeFlags& flags) {
  command.positional("MODEL", flags.model, "Hugging Face folder, org/name or GGUF file");
  command.value("--dims", flags.dims, "auto|507",
                "dimensions probed together; auto: the residual sink, else the massive dimension");
  command.value("--at", flags.at, "first|rest|ids:LO-HI",
                "edited positions; not given: rest and first, apart");
  command.value("--modes", flags.modes, "LIST", "of the modes below, with commas (default: all)");
  command.value("--tau", flags.tau, "X", "of clamp (default 3)");
  command.flag("--each", flags.each, "every norm alone as well");
  command.value("-o,--output", flags.output, "F.json", "write the table as JSON");
  command.flag("--force", flags.force, "replace an existing file");
  command.flag("--json", flags.json, "print the table as JSON");
  command.flag("--csv", flags.csv, "print the table as CSV");
  add_prompt_flags(command, flags.prompt);
  add_run_flags(command, flags.run);
  command.footer(kHelp);
}

std::vector<PositionFilter> positions_of(const ProbeFlags& flags) {
  if (flags.at) return {PositionFilter::parse(*flags.at)};
  return {PositionFilter::parse("rest"), PositionFilter::parse("first")};
}

std::vector<ProbeMode> modes_of(const ProbeFlags& flags) {
  std::vector<ProbeMode> modes;
  if (!flags.modes) return all_probe_modes();
  for (const std::string& name : split_at(*flags.modes, ',')) {
    const auto mode = probe_mode_named(name);
    if (!mode)
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("--modes: expected mean, zero, clamp, direct, denominator, "
                              "direct_const or remove_const, found '{}'",
                              name));
    modes.push_back(*mode);
  }
  return modes;
}

void print_table(const ProbeFlags& flags, const ProbeTable& table,
                 std::optional<OutputFile>& output, Console& console) {
  if (output) {
    output->stream() << probe_json(table).dump(2) << '\n';
    output->close();
    if (output->is_standard_output()) return;
  }
  if (flags.json)
    console.out << probe_json(table).dump() << '\n';
  else if (flags.csv)
    console.out << probe_csv(table);
  else
    console.out << probe_text(table);
}

}  // namespace

int run_probe(const std::vector<std::string>& args, Console& console) {
  ProbeFlags flags;
  CommandLine command("probe", "Measures what each kind of norm does with an outlier dimension.");
  add_flags(command, flags);
  if (!command.parse(args, console)) return kExitDone;
  if (flags.json && flags.csv)
    throw Error(ErrorKind::invalid_argument, "expected one of --json and --csv, found both");
  const ProgressMode mode = parse_progress_mode(flags.run.progress, console);
  const std::vector<PositionFilter> positions = positions_of(flags);
  const std::vector<ProbeMode> modes = modes_of(flags);
  ProbeTable table;
  table.tau = flags.tau ? parse_number("--tau", *flags.tau, 1e-6, 1e9) : 3;
  const std::string dims = flags.dims.value_or("auto");
  if (dims != "auto") {
    table.dims = parse_ranges("--dims", dims);
    if (table.dims.empty())
      throw Error(ErrorKind::invalid_argument,
                  "--dims: expected the probed dimensions, found all of them");
  }
  if (flags.run.kernel)
    throw Error(ErrorKind::invalid_argument,
                "probe: --kernel is not taken: the fused body computes attention where it can");
  std::optional<OutputFile> output;  // before minutes of work, not after
  require_apart(flags.output.value_or("-"), flags.prompt, {flags.model, flags.run.opening.arch});
  if (flags.output) output.emplace(*flags.output, flags.force, console.out);
  const std::future<void> warming = warm_engine();
  const auto model = open_runnable(flags.model, flags.run.opening, console);
  if (!model->spec().has_head)
    throw Error(ErrorKind::unsupported,
                "probe: this model has no head, so no loss to compare; sinkscope whatif says what "
                "an edit does to its states");
  CaptureRequest request = capture_request(flags.run, RecordFlags{});
  require_windows_side_by_side(flags.prompt);
  request.runs = read_prompts(flags.prompt, *model, console);
  plan_probes(model->spec(), request.runs, {positions, modes, flags.each}, table);
  const int n_layers = model->spec().n_layers;
  if (dims == "auto") {
    std::optional<std::vector<int>> found;
    run_with_progress([&](JobContext job) { found = find_outlier_dims(*model, request, job); },
                      n_layers, mode, console);
    if (!found) return kExitCanceled;
    table.dims = *found;
    console.note(fmt::format("probing dimension {}", fmt::join(table.dims, ", ")));
  }
  bool is_measured = false;
  run_with_progress(
      [&](JobContext job) {
        is_measured = measure_probes(*model, evaluate_like(request), table, job);
      },
      n_layers, mode, console);
  if (!is_measured) {
    console.note("canceled");
    return kExitCanceled;
  }
  print_table(flags, table, output, console);
  return kExitDone;
}

}  // namespace sinkscope
