// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/compare_kl.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>
#include <ostream>

#include "app/cli/engine_job.h"
#include "app/cli/record_job.h"
#include "app/cli/run_cli.h"
#include "app/probe_model.h"
#include "capture/model_comparison.h"
#include "capture/tokenizer/tokenizer.h"
#include "core/compare/divergence.h"
#include "core/error.h"
#include "core/number_text.h"

namespace sinkscope {
namespace {

// nullptr where there is none that can be read: ids still work then.
std::unique_ptr<Tokenizer> tokenizer_of(const ModelFiles& model, const PromptFlags& prompt) {
  try {
    return open_tokenizer(model, {prompt.pre_tokenizer.value_or("")});
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::not_found && error.kind() != ErrorKind::unsupported) throw;
    return nullptr;
  }
}

// Conversions spell tokens that no text has (padding) in ways of their own, so an id that one of
// them does not know says nothing.
void require_same_vocabulary(const ModelFiles& a, const ModelFiles& b, const PromptFlags& prompt,
                             Console& console) {
  if (a.spec().head_rows() != b.spec().head_rows())
    throw Error(ErrorKind::invalid_argument,
                fmt::format("--kl: expected two models of one vocabulary, found {} with logits for "
                            "{} tokens and {} for {}",
                            a.path(), count_text(a.spec().head_rows()), b.path(),
                            count_text(b.spec().head_rows())));
  const auto ours = tokenizer_of(a, prompt), theirs = tokenizer_of(b, prompt);
  if (!ours || !theirs)
    return console.note(
        fmt::format("{} has no tokenizer: that both models mean the same by an id "
                    "is taken on trust",
                    ours ? b.path() : a.path()));
  const int n = std::min(ours->vocab_size(), theirs->vocab_size());
  for (int id = 0; id < n; ++id) {
    const std::string x = ours->bytes(id), y = theirs->bytes(id);
    if (x.empty() || y.empty() || x == y) continue;
    const std::string ours_says = ours->labels({id}).front(),
                      theirs_says = theirs->labels({id}).front();
    throw Error(ErrorKind::invalid_argument,
                fmt::format("--kl: expected two models of one vocabulary, found token {} to be {} "
                            "in {} and {} in {}",
                            id, quoted(ours_says), a.path(), quoted(theirs_says), b.path()));
  }
}

}  // namespace

int compare_kl(const std::vector<std::string>& models, const PromptFlags& prompt,
               const RunFlags& run, KlFormat format, Console& console) {
  if (models.size() != 2)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("compare --kl: expected two models, found {}", models.size()));
  if (run.kernel)
    throw Error(ErrorKind::invalid_argument,
                "compare --kl: --kernel is not taken: the fused body computes attention where it "
                "can");
  const ProgressMode mode = parse_progress_mode(run.progress, console);
  CaptureRequest request = capture_request(run, RecordFlags{});
  check_prompt_flags(prompt);
  require_windows_side_by_side(prompt);
  const std::future<void> warming = warm_engine();
  const auto a = open_runnable(models[0], run.opening, console);
  const auto b = open_runnable(models[1], run.opening, console);
  require_same_vocabulary(*a, *b, prompt, console);
  request.runs = read_prompts(prompt, *a, console);
  check_prompts(request.runs, prompt, b->spec(), console);  // B's context, too, must hold them

  std::optional<std::vector<RunDivergence>> runs;
  run_with_progress(
      [&](JobContext job) {
        runs = load_model_comparison().compare_models(*a, *b, evaluate_like(request), job);
      },
      std::max(a->spec().n_layers, b->spec().n_layers), mode, console);
  if (!runs) {
    console.note("canceled");
    return kExitCanceled;
  }
  const ModelDivergence divergence{models[0], models[1], std::move(*runs)};
  if (format == KlFormat::json)
    console.out << divergence_json(divergence).dump() << '\n';
  else if (format == KlFormat::csv)
    console.out << divergence_csv(divergence);
  else
    console.out << divergence_text(divergence);
  return kExitDone;
}

}  // namespace sinkscope
