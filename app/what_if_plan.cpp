// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/what_if_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/cli/capture_flags.h"
#include "app/cli/parse_text.h"
#include "app/cli/record_job.h"
#include "app/cli/size_table.h"
#include "core/shell_word.h"

namespace sinkscope {
namespace {

struct RecordedFlags {
  RunFlags run;
  RecordFlags record;
  PromptFlags prompt;  // how its ids were made, which are known
  CaptureRequest request;
};

// A capture may come from anyone: every value is checked before it is used or shown.
RecordedFlags flags_of(const std::string& recorded) {
  RecordedFlags flags;
  read_command(recorded, flags.run, flags.record, flags.prompt);
  flags.request = capture_request(flags.run, flags.record);
  return flags;
}

// " --dtype bfloat16": the flags that differ from what is the case without them.
std::string flag_words(const RunFlags& run, const RecordFlags& record) {
  const std::vector<std::string> words = split_at(canonical_command(run, record, {}), ' ');
  std::string text;
  for (std::size_t i = 1; i < words.size(); ++i) text += ' ' + shell_word(words[i]);
  return text;
}

}  // namespace

std::string words_of(const ModelWords& model) {
  const std::string path = shell_word(model.path);
  return model.arch_file.empty() ? path : path + " --arch " + shell_word(model.arch_file);
}

void add_twins(std::vector<RunInput>& runs, const WhatIf& what_if) {
  const std::size_t n = runs.size();
  for (std::size_t r = 0; r < n; ++r) {
    RunInput twin = runs[r];
    twin.edit_of = static_cast<int>(r);
    twin.what_if = what_if_text(what_if);
    runs.push_back(std::move(twin));
  }
}

void check_recorded(const std::string& recorded) { flags_of(recorded); }

WhatIfPlan plan_what_if(const ModelFiles& model, const RunInput& input, const std::string& recorded,
                        const WhatIf& what_if) {
  require_runnable(model);
  const RecordedFlags flags = flags_of(recorded);
  WhatIfPlan plan;
  plan.request = flags.request;
  plan.request.command = canonical_command(flags.run, flags.record, {});
  plan.request.runs = {input};
  add_twins(plan.request.runs, what_if);
  plan.layout = plan_capture(model, plan.request);
  plan.file_bytes = total_bytes(size_table(plan.layout, model.spec()));
  return plan;
}

std::string what_if_command(const ModelWords& model, const RunInput& input,
                            const std::string& recorded, const WhatIf& what_if,
                            const std::string& output) {
  const RecordedFlags flags = flags_of(recorded);
  return fmt::format("sinkscope whatif {} --edit {} --tokens {}{} -o {}", words_of(model),
                     shell_word(what_if_text(what_if)), fmt::join(input.token_ids, ","),
                     flag_words(flags.run, flags.record), shell_word(output));
}

std::string probe_command(const ModelWords& model, const RunInput& input,
                          const std::string& recorded, const std::string& dims, bool each,
                          const std::string& output) {
  RecordFlags nothing;  // is recorded
  nothing.record = "";
  return fmt::format("sinkscope probe {} --dims {}{} --tokens {}{} -o {}", words_of(model),
                     shell_word(dims), each ? " --each" : "", fmt::join(input.token_ids, ","),
                     flag_words(flags_of(recorded).run, nothing), shell_word(output));
}

}  // namespace sinkscope
