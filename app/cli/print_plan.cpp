// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/print_plan.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "app/cli/format_text.h"
#include "capture/prediction.h"
#include "core/error.h"
#include "core/number_text.h"

namespace sinkscope {
namespace {

// The recording beside its file.
struct Expected {
  std::int64_t memory_bytes = 0, read_bytes = 0;
  double seconds = 0;
};

Expected expected_of(const ModelFiles& model, const CaptureRequest& request) {
  const PredictedWork work = predicted_work(model, request);
  return {predicted_memory(model, request), work.read_bytes,
          predicted_seconds(work, measured_rates(model, resolved_threads(request)))};
}

std::int64_t n_tokens(const std::vector<RunInput>& runs) {
  std::int64_t sum = 0;
  for (const RunInput& run : runs) sum += run.seq_len();
  return sum;
}

void print_csv(const std::vector<SizeRow>& table, Console& console) {
  console.out << "group,shape,bytes\n";
  for (const SizeRow& row : table)
    console.out << fmt::format("{},{},{}\n", csv_field(row.group), csv_field(row.shape), row.bytes);
}

void print_json(const std::vector<RunInput>& runs, const std::vector<SizeRow>& table,
                const Expected& expected, Console& console) {
  nlohmann::ordered_json plan = {
      {"schema", "sinkscope.plan/1"},
      {"conventions",
       {{"bytes", "as stored, over all runs; map chunks that no query sees are not written"},
        {"predicted_seconds",
         "estimate: operations and bytes to read, over what this machine's CPU and disk did in a "
         "sample of some milliseconds"}}},
      {"runs", runs.size()},
      {"tokens", n_tokens(runs)},
      {"groups", nlohmann::ordered_json::array()},
      {"total_bytes", total_bytes(table)},
      {"predicted_memory_bytes", expected.memory_bytes},
      {"predicted_read_bytes", expected.read_bytes},
      {"predicted_seconds", expected.seconds}};
  for (const SizeRow& row : table)
    plan["groups"].push_back({{"group", row.group}, {"shape", row.shape}, {"bytes", row.bytes}});
  console.out << plan.dump(2) << '\n';
}

}  // namespace

void print_plan(const ModelFiles& model, const CaptureRequest& request,
                const std::vector<SizeRow>& table, PlanFormat format, Console& console) {
  const std::vector<RunInput>& runs = request.runs;
  if (format == PlanFormat::csv) return print_csv(table, console);
  const Expected expected = expected_of(model, request);
  if (format == PlanFormat::json) return print_json(runs, table, expected, console);
  console.out << fmt::format("{} run{}, {} tokens\n\n", runs.size(), runs.size() == 1 ? "" : "s",
                             n_tokens(runs));
  for (const SizeRow& row : table)
    console.out << fmt::format("  {:<26} {:>12}{}\n", row.group, format_bytes(row.bytes),
                               row.shape.empty() ? "" : "   largest " + row.shape);
  console.out << fmt::format(
      "  {:<26} {:>12}\n\nmemory while recording: about {}\ntime: about {} on this machine's CPU, "
      "{} of weights to read\n",
      "file", format_bytes(total_bytes(table)), format_bytes(expected.memory_bytes),
      format_about(expected.seconds), format_bytes(expected.read_bytes));
}

std::string format_about(double seconds) {
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  if (seconds < 119.5) return fmt::format("{:.0f} s", seconds);
  if (seconds < 119.5 * 60) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

double expected_seconds(const ModelFiles& model, const CaptureRequest& request) {
  return expected_of(model, request).seconds;
}

void warn_of_little_space(const std::string& path, std::int64_t needed, const Console& console) {
  try {
    require_free_space(path, needed);
  } catch (const Error& error) {
    console.warn(error.what());
  }
}

}  // namespace sinkscope
