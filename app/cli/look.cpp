// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ostream>

#include "app/cli/capture_runs.h"
#include "app/cli/format_text.h"
#include "app/cli/model_card.h"
#include "app/cli/parse_text.h"
#include "app/cli/run_cli.h"
#include "app/cli/verbs.h"
#include "app/what_if_plan.h"
#include "core/state_rows.h"

namespace sinkscope {
namespace {

std::string recorded_text(const CaptureReader& reader, const std::string& run) {
  std::vector<std::string> parts = {"statistics"};
  if (reader.has(run, "residual/stream")) parts.emplace_back("residual stream");
  if (reader.has(run, "attention/pattern")) parts.emplace_back("attention maps");
  if (reader.has(run, "taps"))
    for (const std::string& hook : reader.children(run, "taps")) parts.push_back(hook);
  if (reader.has(run, "logits/full")) parts.emplace_back("logits");
  return fmt::format("{}", fmt::join(parts, ", "));
}

void look_at_capture(const std::string& path, const std::string& in_path, Console& console) {
  const auto reader = CaptureReader::open(path);
  const std::vector<std::string>& runs = reader->runs();
  const std::string run = pick_runs(*reader, in_path, std::nullopt, console).front();
  const ModelFacts model = reader->model(run);
  std::int64_t n_tokens = 0;
  for (const std::string& name : runs) n_tokens += reader->dims(name, "input/token_ids").front();
  console.out << fmt::format(
      "{}\n  model        {} ({}), {} layers, {} heads, d_model {}\n  runs         {}, {} tokens\n"
      "  recorded     {}\n",
      path, model.name, model.architecture, model.n_layers, model.n_heads, model.d_model,
      runs.size(), format_count(n_tokens), recorded_text(*reader, run));
  if (const std::string note = streams_note(model); !note.empty())
    console.out << fmt::format("  streams      {}\n", note);
  if (!reader->complete())
    console.out << fmt::format("  incomplete   {} of {} layers are whole\n", reader->layers_done(),
                               model.n_layers);
  console.out << fmt::format("\nnext: sinkscope sinks {}\n", shell_word(path));
}

}  // namespace

int run_look(const std::string& path, const std::string& arch_file, Console& console) {
  const RunPath place = parse_run_path(path);
  if (looks_like_capture(place.path)) {
    look_at_capture(place.path, place.run, console);
    return kExitDone;
  }
  const auto model = open_model(path, {.ignore_index = false, .arch_file = arch_file});
  const ModelCard card = model_card(*model);
  const bool can_run = card.obstacles.empty();
  console.out << card_text(card)
              << fmt::format("\nnext: sinkscope {} {}\n", can_run ? "sinks" : "norms",
                             words_of({path, arch_file}));
  return kExitDone;
}

}  // namespace sinkscope
