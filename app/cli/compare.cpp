// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "app/cli/command_line.h"
#include "app/cli/compare_kl.h"
#include "app/cli/parse_text.h"
#include "app/cli/run_cli.h"
#include "app/cli/verbs.h"
#include "core/compare/comparison.h"
#include "core/error.h"

namespace sinkscope {
namespace {

const char* const kHelp =
    "Every later capture (B) is compared with the first (A), on what both have; what makes their\n"
    "inputs differ, and what only one has, is said first. All runs are compared, matched by name;\n"
    "A.h5::run0 B.h5::run3 compares these two (an edited twin with its run: A.h5::run0\n"
    "A.h5::run0_edit0). Arrays are read by tiles.\n\n"
    "--tolerance T is a replication check: exit 1 unless the runs, tokens and arrays are the same\n"
    "(none missing, none of other blocks or shape), no value has |B - A| > T max(1, |A|, |B|), "
    "and\n"
    "counts (visible, n_nan, n_inf) are equal. Sums of powers (m2, m3, m4) and indices are not\n"
    "judged.\n\n"
    "--json keys: schema (sinkscope.compare/1), conventions, comparisons [{a, b, model_a, "
    "model_b,\n"
    "complete, runs_only_a, runs_only_b, runs [{a, b, tokens_a, tokens_b, same_tokens, notes, "
    "only_a,\n"
    "only_b, in_part (arrays of which one has more), sites [{site, dataset, layer, compared, "
    "unequal, non_finite, max_abs, scaled, rms, a, "
    "b,\n"
    "at {axis: index}, range [low, high], whole, judged}], indices [{dataset, compared, "
    "unequal, judged}],\n"
    "sinks {scalars [{name, a, b}], head {layer, head, a, b}, sink_tokens {only_a, only_b},\n"
    "sink_dims, max_abs {a, b}}}]}], verdict {tolerance, within, reasons} (null without "
    "--tolerance),\n"
    "non_finite_values. --csv: a row a site.\n\n"
    "--kl MODEL_A MODEL_B runs two models of one vocabulary on the same tokens: KL(A || B) of the\n"
    "next token's distribution at every position that has one, in nats, and both losses. --arch "
    "describes\nboth models.\n"
    "--json keys then: schema (sinkscope.compare_kl/1), conventions, a, b, positions, loss {a, "
    "b},\n"
    "perplexity {a, b}, kl {mean, max, at {run, token}}, runs [{run, name, tokens, the same,\n"
    "per_token {token_ids, token_text, kl, loss_a, loss_b}}], non_finite_values. --csv: a row a\n"
    "position.\n\n"
    "example: sinkscope compare float32.h5 bfloat16.h5 --tolerance 1e-2\n"
    "         sinkscope compare --kl org/name name.Q4_1.gguf --text-file essay.txt";

struct Flags {
  std::vector<std::string> inputs;
  std::optional<std::string> tolerance, run_name;
  bool kl = false, json = false, csv = false;
  PromptFlags prompt;
  RunFlags run;
};

void add_flags(CommandLine& command, Flags& flags) {
  command.rest("A.h5 B.h5 …", flags.inputs, "captures (A.h5::run3: one run), or two models");
  command.value("--run", flags.run_name, "NAME|all", "runs of all captures (default: all)");
  command.value("--tolerance", flags.tolerance, "T",
                "check: exit 1 where something differs by more");
  command.flag("--kl", flags.kl, "two models in place of captures; the flags below are for it");
  command.flag("--json", flags.json, "print JSON");
  command.flag("--csv", flags.csv, "print one table, a site a row");
  add_prompt_flags(command, flags.prompt);
  add_run_flags(command, flags.run);
  command.footer(kHelp);
}

// Captures are only read: what makes tokens and runs a model has nothing to work on, and the other
// way round.
void require_flags_that_fit(const Flags& flags) {
  if (flags.json && flags.csv)
    throw Error(ErrorKind::invalid_argument, "expected one of --json and --csv, found both");
  if (flags.kl && (flags.tolerance || flags.run_name))
    throw Error(ErrorKind::invalid_argument,
                fmt::format("compare --kl: {} is for captures, found two models",
                            flags.tolerance ? "--tolerance" : "--run"));
  const std::string asked = canonical_command(flags.run, {}, flags.prompt);
  const std::string plain = canonical_command({}, {}, {});
  const bool has_opening = flags.run.opening.arch || flags.run.opening.ignore_index;
  const bool has_other = has_opening || flags.run.progress;
  if (!flags.kl && (asked != plain || has_prompt(flags.prompt) || has_other))
    throw Error(ErrorKind::invalid_argument,
                "compare: captures are read as they are; prompts and ways of running belong to "
                "--kl MODEL_A MODEL_B");
}

}  // namespace

int run_compare(const std::vector<std::string>& args, Console& console) {
  Flags flags;
  CommandLine command("compare", "Says how the numbers of captures, or two models, differ.");
  add_flags(command, flags);
  if (!command.parse(args, console)) return kExitDone;
  require_flags_that_fit(flags);
  const std::vector<std::string>& inputs = flags.inputs;
  if (flags.kl)
    return compare_kl(inputs, flags.prompt, flags.run,
                      flags.json  ? KlFormat::json
                      : flags.csv ? KlFormat::csv
                                  : KlFormat::text,
                      console);
  if (inputs.size() < 2)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("compare: expected two captures or more, found {}", inputs.size()));
  std::optional<double> tolerance;
  if (flags.tolerance) tolerance = parse_number("--tolerance", *flags.tolerance, 0, 1e300);

  std::vector<Comparison> comparisons;
  const auto run_of = [&](const RunPath& place) {
    if (!place.run.empty() && flags.run_name && place.run != *flags.run_name)
      throw Error(ErrorKind::invalid_argument, fmt::format("--run {} contradicts {}::{}",
                                                           *flags.run_name, place.path, place.run));
    const std::string run = place.run.empty() ? flags.run_name.value_or("all") : place.run;
    return run == "all" ? std::string() : run;
  };
  const RunPath first = parse_run_path(inputs.front());
  const auto a = CaptureReader::open(first.path);
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const RunPath place = parse_run_path(inputs[i]);
    const auto b = CaptureReader::open(place.path);
    comparisons.push_back(compare_captures(*a, run_of(first), *b, run_of(place)));
  }
  std::optional<Verdict> verdict;
  if (tolerance) verdict = judge(comparisons, *tolerance);
  if (flags.json)
    console.out << comparison_json(comparisons, verdict).dump() << '\n';
  else if (flags.csv)
    console.out << comparison_csv(comparisons);
  else
    console.out << comparison_text(comparisons, verdict);
  if (!verdict || verdict->is_within) return kExitDone;
  console.err << one_line(fmt::format("sinkscope: not within {:g}: {}", *tolerance,
                                      verdict->reasons.front()))
              << '\n';
  return kExitCheck;
}

}  // namespace sinkscope
