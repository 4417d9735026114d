// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/what_if_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/cli/capture_flags.h"
#include "app/cli/record_job.h"
#include "app/cli/size_table.h"
#include "core/shell_word.h"

namespace sinkscope {
namespace {

struct RecordedFlags {
  RunFlags run;
  RecordFlags record;
  PromptFlags prompt;  // how its ids were made, which are known
};

RecordedFlags flags_of(const std::string& recorded) {
  RecordedFlags flags;
  read_command(recorded, flags.run, flags.record, flags.prompt);
  return flags;
}

}  // namespace

void add_twins(std::vector<RunInput>& runs, const WhatIf& what_if) {
  const std::size_t n = runs.size();
  for (std::size_t r = 0; r < n; ++r) {
    RunInput twin = runs[r];
    twin.edit_of = static_cast<int>(r);
    twin.what_if = what_if_text(what_if);
    runs.push_back(std::move(twin));
  }
}

WhatIfPlan plan_what_if(const ModelFiles& model, const RunInput& input, const std::string& recorded,
                        const WhatIf& what_if) {
  require_runnable(model);
  const RecordedFlags flags = flags_of(recorded);
  WhatIfPlan plan;
  plan.request = capture_request(flags.run, flags.record);
  plan.request.command = canonical_command(flags.run, flags.record, {});
  plan.request.runs = {input};
  add_twins(plan.request.runs, what_if);
  plan.layout = plan_capture(model, plan.request);
  plan.file_bytes = total_bytes(size_table(plan.layout));
  return plan;
}

std::string what_if_command(const std::string& model, const RunInput& input,
                            const std::string& recorded, const WhatIf& what_if,
                            const std::string& output) {
  const RecordedFlags flags = flags_of(recorded);
  const std::string canonical = canonical_command(flags.run, flags.record, {});
  return fmt::format("sinkscope whatif {} --edit {} --tokens {}{} -o {}", shell_word(model),
                     shell_word(what_if_text(what_if)), fmt::join(input.token_ids, ","),
                     canonical.substr(canonical.find(' ')), shell_word(output));
}

}  // namespace sinkscope
