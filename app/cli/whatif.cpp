// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>
#include <ostream>

#include "app/cli/baseline_runs.h"
#include "app/cli/capture_flags.h"
#include "app/cli/edit_flags.h"
#include "app/cli/format_text.h"
#include "app/cli/input_files.h"
#include "app/cli/print_plan.h"
#include "app/cli/record_job.h"
#include "app/cli/run_cli.h"
#include "app/cli/size_table.h"
#include "app/cli/verbs.h"
#include "app/record_capture.h"
#include "app/what_if_plan.h"
#include "core/capture_reader.h"
#include "core/error.h"
#include "core/what_if/baseline.h"
#include "core/what_if/outcome.h"
#include "core/what_if/what_if.h"

namespace sinkscope {
namespace {

const char* const kHelp =
    "Edits (layers, heads, tokens, dims, sites, norms: \"all\", a list, or ranges \"0-3,7\"; "
    "tokens\n"
    "also \"first\", \"rest\", \"ids:5-127\"):\n"
    "  {\"edit\":\"residual.clip\",\"limit\":100,\"sites\":[\"hook_resid_post\"]}\n"
    "  {\"edit\":\"residual.set\",\"value\":0,\"dims\":[507],\"tokens\":\"first\"}   or \"mean\", "
    "or "
    "\"scale\":0.5\n"
    "  {\"edit\":\"norm.probe\",\"mode\":\"zero\",\"dims\":[507],\"tokens\":\"rest\"}\n"
    "      modes mean zero clamp (\"tau\") direct denominator direct_const remove_const\n"
    "  {\"edit\":\"norm.replace\",\"with\":\"gatednorm\",\"norms\":[\"ln1\"]}   none layernorm "
    "rmsnorm\n"
    "      rmsnorm_no_gain dyt gatednorm tensor_gate preaffine; \"weights\":\"F.safetensors\"\n"
    "  {\"edit\":\"attention.normalizer\",\"kind\":\"softmax1\"}   softmax sink_logit (\"b\") "
    "clipped\n"
    "      (\"gamma\",\"zeta\") sparsemax entmax15 sigmoid\n"
    "  {\"edit\":\"attention.mask_key\",\"keys\":[0],\"renormalize\":true}\n"
    "  {\"edit\":\"attention.value\",\"tokens\":[0],\"scale\":0}\n"
    "  {\"edit\":\"attention.gate\",\"value\":0.5}   or \"weights\"\n"
    "  {\"edit\":\"mlp.activation\",\"kind\":\"sigmoid\"}   silu gelu relu\n\n"
    "norms: ln1 ln2 ln_final, and behind the halves of a block ln1_post ln2_post, with or without "
    "blocks.N.;\nof none named, norm.replace takes all that the model has, norm.probe those that "
    "read "
    "the stream.\n"
    "dyt: gamma tanh(alpha x), gamma = the gain, no beta, alpha fitted by least squares to the "
    "norm's own\ninputs and outputs (Newton).\n"
    "residual.set \"mean\": over the edited positions of the --calibration prompts in the model as "
    "it is;\nwithout --calibration over those of the prompts themselves, in the edited pass, as "
    "the "
    "means of\nnorm.probe always are.\n\n"
    "--baseline RUN.h5 (a capture of the same model; RUN.h5::run3: one run): only the edited runs "
    "are\nrun and recorded, with that capture's tokens and options. A prompt beside it must be the "
    "same tokens.\nA baseline without residual/final_norm is run again, unrecorded, for the KL.\n\n"
    "--json keys: schema (sinkscope.whatif/1), conventions, model, baseline_file (with\n"
    "--baseline), runs, tokens, edits [as they were given], loss and perplexity {baseline, "
    "edited},\n"
    "kl {mean, max, max_run, max_token}, not_retrained, touched [{edit and, as far as it has "
    "them,\n"
    "tokens, dims, layers, heads, keys, places}], metrics {name: {baseline, edited}}, max_abs and\n"
    "outliers {baseline, edited}, tables {layers, sites, tensors, quantities {name: {axis, "
    "baseline,\n"
    "edited}}}, by_run [{run, tokens, loss {baseline, edited}, kl {mean, max, max_token}}],\n"
    "final_norm_change (of models without a head, where loss and kl are null),\n"
    "non_finite_values (null above). --csv: run, quantity, "
    "layer, head, site, token, baseline, edited; of every\nrun, and of all together.\n--dry-run "
    "--json: as that of capture (sinkscope.plan/1).\n\n"
    "example: sinkscope whatif org/name --edit '{\"edit\":\"residual.clip\",\"limit\":100}' -o "
    "clip.h5";

struct WhatIfFlags {
  std::string model;
  std::vector<std::string> edits;
  PromptFlags prompt;
  RunFlags run;
  RecordFlags record;
  std::optional<std::string> output, baseline, calibration;
  bool force = false, json = false, csv = false, dry_run = false;
};

void add_flags(CommandLine& command, WhatIfFlags& flags) {
  command.positional("MODEL", flags.model, "Hugging Face folder, org/name or GGUF file");
  command.values("--edit", flags.edits, "FILE|JSON",
                 "one edit or a list of them; may be given several times, in order");
  command.value("-o,--output", flags.output, "RUN.h5",
                "the capture to make: every run, and its twin under the edits");
  command.value("--baseline", flags.baseline, "RUN.h5",
                "compare with the runs of this capture instead of running them again");
  command.value("--calibration", flags.calibration, "F",
                "text, or .jsonl as --prompts takes it, that means of residual.set are over");
  command.flag("--force", flags.force, "replace an existing file");
  command.flag("--dry-run", flags.dry_run, "print how large the capture gets, and stop");
  command.flag("--json", flags.json, "print the outcome as JSON");
  command.flag("--csv", flags.csv, "print it as CSV, per layer, head and site, run by run");
  add_prompt_flags(command, flags.prompt);
  add_record_flags(command, flags.record);
  add_run_flags(command, flags.run);
  command.footer(kHelp);
}

// --calibration F: prompts of its own; the twins remember which tokens they were.
void add_calibration(const WhatIfFlags& flags, const ModelFiles& model, CaptureRequest& request,
                     Console& console) {
  if (!flags.calibration) return;
  PromptFlags prompt;
  prompt.bos = flags.prompt.bos;
  prompt.no_special = flags.prompt.no_special;
  prompt.pre_tokenizer = flags.prompt.pre_tokenizer;
  (flags.calibration->ends_with(".jsonl") ? prompt.prompts : prompt.text_file) = flags.calibration;
  request.calibration = read_prompts(prompt, model, console);
  std::vector<int> ids;
  for (const RunInput& run : request.calibration)
    ids.insert(ids.end(), run.token_ids.begin(), run.token_ids.end());
  for (RunInput& run : request.runs)
    if (run.edit_of >= 0) run.calibration_sha256 = input_sha256(ids);
}

bool has_mean(const WhatIf& what_if) {
  return std::any_of(what_if.begin(), what_if.end(), [](const Edit& edit) {
    const auto* set = std::get_if<ResidualSet>(&edit);
    return set != nullptr && set->how == ResidualSet::How::mean;
  });
}

void check(const WhatIfFlags& flags, const WhatIf& what_if) {
  if (what_if.empty() && flags.edits.empty())
    throw Error(ErrorKind::invalid_argument, "whatif: expected --edit FILE|JSON");
  if (flags.calibration && !has_mean(what_if))
    throw Error(
        ErrorKind::invalid_argument,
        "--calibration: no edit takes a mean over it (residual.set with \"value\":\"mean\")");
}

}  // namespace

int run_whatif(const std::vector<std::string>& args, Console& console) {
  WhatIfFlags flags;
  CommandLine command("whatif",
                      "Runs a model as it is and under edits, records both side by side and says "
                      "what changed.");
  add_flags(command, flags);
  if (!command.parse(args, console)) return kExitDone;
  if (flags.json && flags.csv)
    throw Error(ErrorKind::invalid_argument, "expected one of --json and --csv, found both");
  if (!flags.output && !flags.dry_run)
    throw Error(ErrorKind::invalid_argument, "whatif: expected -o RUN.h5, the capture to make");
  if (!flags.dry_run) require_new_capture(*flags.output, flags.force);
  if (flags.output) {
    std::vector<std::optional<std::string>> inputs(flags.edits.begin(), flags.edits.end());
    inputs.insert(inputs.end(),
                  {flags.model, flags.baseline, flags.calibration, flags.run.opening.arch});
    require_apart(*flags.output, flags.prompt, std::move(inputs));
  }
  const ProgressMode mode = parse_progress_mode(flags.run.progress, console);
  const WhatIf what_if = read_edits(flags.edits, console);
  check(flags, what_if);
  std::optional<Baseline> baseline;
  std::future<SinkReport> before;
  if (flags.baseline) {
    baseline.emplace(*flags.baseline, flags.run, flags.record, flags.prompt);
    if (!flags.dry_run) before = baseline->report();
  }
  CaptureRequest request = capture_request(flags.run, flags.record);
  request.command = canonical_command(flags.run, flags.record, flags.prompt);
  const std::future<void> warming = flags.dry_run ? std::future<void>() : warm_engine();
  const auto model = open_runnable(flags.model, flags.run.opening, console);
  std::vector<RunInput> prompts;
  require_windows_side_by_side(flags.prompt);
  if (!baseline || has_prompt(flags.prompt)) prompts = read_prompts(flags.prompt, *model, console);
  if (baseline) {
    baseline->add_twins(*model, prompts, what_if_text(what_if), flags.output.value_or("run.h5"),
                        request);
    const auto& known = request.baseline_final_norms;
    if (std::any_of(known.begin(), known.end(), [](const auto& rows) { return rows.empty(); }))
      console.note(*flags.baseline +
                   ": without residual/final_norm; its runs are run again for the KL");
  } else {
    request.runs = std::move(prompts);
    add_twins(request.runs, what_if);
  }
  add_calibration(flags, *model, request, console);
  const CaptureLayout layout = plan_capture(*model, request);
  const std::vector<SizeRow> table = size_table(layout, model->spec());
  if (flags.dry_run) {
    require_device(request);
    print_plan(*model, request, table, flags.json ? PlanFormat::json : PlanFormat::text, console);
    warn_of_little_space(flags.output.value_or("run.h5"), total_bytes(table), console);
    return kExitDone;
  }
  require_free_space(*flags.output, total_bytes(table));
  const auto existing =
      flags.force ? CaptureWriter::Existing::overwrite : CaptureWriter::Existing::refuse;
  if (!record_to_file(*model, request, layout, *flags.output, existing, mode, console)) {
    console.note("canceled; " + kept_layers(*flags.output));
    return kExitCanceled;
  }
  const auto reader = CaptureReader::open(*flags.output);
  std::optional<SinkReport> known;
  if (before.valid()) known = before.get();
  const WhatIfOutcome outcome =
      what_if_outcome(*reader, 0, SinkOptions{}, known ? &*known : nullptr);
  if (flags.json) {
    console.out << outcome_json(outcome).dump() << '\n';
  } else if (flags.csv) {
    console.out << outcome_csv(outcome);
  } else {
    console.out << outcome_text(outcome)
                << fmt::format("\nnext: sinkscope sinks {}::{}\n", shell_word(*flags.output),
                               reader->edits(baseline_run(reader->runs().front())).front());
  }
  return kExitDone;
}

}  // namespace sinkscope
