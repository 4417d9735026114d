// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <future>
#include <nlohmann/json.hpp>
#include <ostream>

#include "app/absorb_model.h"
#include "app/cli/capture_flags.h"
#include "app/cli/engine_job.h"
#include "app/cli/parse_text.h"
#include "app/cli/record_job.h"
#include "app/cli/run_cli.h"
#include "app/cli/verbs.h"
#include "core/error.h"
#include "core/json_numbers.h"

namespace sinkscope {
namespace {

const char* const kHelp =
    "Divides a dimension by k wherever the residual stream is written and multiplies it by k in\n"
    "front of every norm that reads it (2601.22966, PreAffine): the same function, a smaller\n"
    "stream. The folder is checked before it gets its name: the largest difference of a logit on\n"
    "the prompt must be at most 1e-4 of the largest logit in float32; exit 1 otherwise. A model "
    "that\n"
    "reads its stream past norms in a way that cannot be restored is refused, with the reason.\n"
    "Llama, Mistral, Qwen2 and Qwen3 keep their config.json; every other family gets\n"
    "sinkscope_arch.json, by which sinkscope opens the folder.\n\n"
    "--json keys: schema (sinkscope.absorb/1), conventions, folder, dims, factors,\n"
    "logits {largest_difference, largest, relative}, max_abs {before, after},\n"
    "kurtosis {before, after}, non_finite_values (null above).\n\n"
    "example: sinkscope absorb org/name --dims 507 -o absorbed";

struct AbsorbFlags {
  std::string model;
  PromptFlags prompt;
  RunFlags run;
  std::optional<std::string> dims, factor, tolerance, output;
  bool json = false;
};

void add_flags(CommandLine& command, AbsorbFlags& flags) {
  command.positional("MODEL", flags.model, "Hugging Face folder, org/name or GGUF file");
  command.value("-o,--output", flags.output, "DIR", "the folder to make");
  command.value("--dims", flags.dims, "auto|507", "which dimensions (default: the massive ones)");
  command.value("--factor", flags.factor, "K",
                "k of every dimension (default: its size over the typical one, a power of two)");
  command.value("--tolerance", flags.tolerance, "X",
                "largest logit difference over the largest logit (default 1e-4)");
  command.flag("--json", flags.json, "print the outcome as JSON");
  add_prompt_flags(command, flags.prompt);
  add_run_flags(command, flags.run);
  command.footer(kHelp);
}

void print_outcome(const AbsorbFlags& flags, const AbsorbOutcome& outcome, Console& console) {
  if (flags.json) {
    JsonNumbers numbers;
    nlohmann::ordered_json json = {
        {"schema", "sinkscope.absorb/1"},
        {"conventions",
         {{"logits", "over all positions and the whole vocabulary of the prompts, float32"},
          {"max_abs", "largest |x| over the residual sites of the first run"},
          {"kurtosis",
           "Pearson, per tensor, the largest over the residual sites of the first run"}}},
        {"folder", *flags.output},
        {"dims", outcome.absorption.dims},
        {"factors", numbers.list(outcome.absorption.factors)},
        {"logits",
         {{"largest_difference", numbers.number(outcome.logit_difference)},
          {"largest", numbers.number(outcome.largest_logit)},
          {"relative", numbers.number(outcome.relative())}}},
        {"max_abs", {{"before", outcome.max_abs_before}, {"after", outcome.max_abs_after}}},
        {"kurtosis", {{"before", outcome.kurtosis_before}, {"after", outcome.kurtosis_after}}}};
    json["non_finite_values"] = numbers.n_non_finite();
    console.out << json.dump() << '\n';
    return;
  }
  console.out << fmt::format("{}\n{}\n\nnext: sinkscope sinks {}\n", absorb_text(outcome),
                             *flags.output, *flags.output);
}

}  // namespace

int run_absorb(const std::vector<std::string>& args, Console& console) {
  AbsorbFlags flags;
  CommandLine command("absorb",
                      "Moves outlier dimensions of the residual stream into a gain in front of "
                      "each norm, without changing the function.");
  add_flags(command, flags);
  if (!command.parse(args, console)) return kExitDone;
  if (!flags.output)
    throw Error(ErrorKind::invalid_argument, "absorb: expected -o DIR, the folder to make");
  while (flags.output->size() > 1 && flags.output->back() == '/') flags.output->pop_back();
  AbsorbRequest request;
  request.output = *flags.output;
  if (flags.tolerance) request.tolerance = parse_number("--tolerance", *flags.tolerance, 0, 1);
  if (flags.factor) request.factor = parse_number("--factor", *flags.factor, 1e-6, 1e9);
  if (const std::string dims = flags.dims.value_or("auto"); dims != "auto") {
    request.dims = parse_ranges("--dims", dims);
    if (request.dims.empty())
      throw Error(ErrorKind::invalid_argument,
                  "--dims: expected the absorbed dimensions, found all of them");
  }
  request.describes_itself = flags.run.opening.arch.has_value();
  if (flags.run.dtype && *flags.run.dtype != "float32")
    throw Error(ErrorKind::invalid_argument,
                "absorb: --dtype is not taken: the self-check compares logits in float32");
  require_new_folder(request.output);
  request.run = capture_request(flags.run, RecordFlags{});
  const ProgressMode mode = parse_progress_mode(flags.run.progress, console);
  const std::future<void> warming = warm_engine();
  const auto model = open_runnable(flags.model, flags.run.opening, console);
  request.run.runs = read_prompts(flags.prompt, *model, console);
  std::optional<AbsorbOutcome> outcome;
  run_with_progress([&](JobContext job) { outcome = absorb_model(*model, request, job); },
                    model->spec().n_layers, mode, console);
  if (!outcome) return kExitCanceled;
  if (!outcome->is_kept) {
    console.warn(
        fmt::format("self-check failed, nothing is kept: largest logit difference {:.3g}, "
                    "{:.2g} of the largest logit, expected at most {:.0e}",
                    outcome->logit_difference, outcome->relative(), request.tolerance));
    return kExitCheck;
  }
  print_outcome(flags, *outcome, console);
  return kExitDone;
}

}  // namespace sinkscope
