// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/absorb.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "app/cli/capture_flags.h"
#include "app/cli/parse_text.h"
#include "app/cli/record_job.h"
#include "app/cli/run_cli.h"
#include "app/cli/temporary_folder.h"
#include "app/cli/verbs.h"
#include "core/capture_reader.h"
#include "core/error.h"
#include "core/json_numbers.h"
#include "core/sink_report.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

constexpr double kTolerance = 1e-4;

const char* const kHelp =
    "Divides a dimension by k wherever the residual stream is written and multiplies it by k in\n"
    "front of every norm that reads it (2601.22966, PreAffine): the same function, a smaller\n"
    "stream. The folder is checked before it gets its name: the largest difference of a logit on\n"
    "the prompt must be at most 1e-4 of the largest logit in float32; exit 1 otherwise.\n\n"
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

// A recording of one model on the prompts, with its logits.
struct Recording {
  std::unique_ptr<CaptureReader> reader;
  SinkReport report;
};

std::optional<Recording> record(const ModelFiles& model, const AbsorbFlags& flags,
                                const std::vector<RunInput>& runs, const std::string& path,
                                Console& console) {
  RecordFlags what;
  what.record = "stats,logits";
  CaptureRequest request = capture_request(flags.run, what);
  request.runs = runs;
  request.dtype = RunDtype::float32;  // what the self-check is stated for
  if (!record_to_file(model, request, plan_capture(model, request), path,
                      CaptureWriter::Existing::refuse,
                      parse_progress_mode(flags.run.progress, console), console))
    return std::nullopt;
  Recording made{CaptureReader::open(path), {}};
  made.report = sink_report(*made.reader, made.reader->runs(), SinkOptions{});
  return made;
}

// Largest |h_d| over all sites and runs, and the median over dimensions of the same.
struct Sizes {
  std::vector<double> of;
  double typical = 0;
};

Sizes sizes_of(const CaptureReader& reader) {
  Sizes sizes;
  const int D = reader.model(reader.runs().front()).d_model;
  sizes.of.assign(static_cast<std::size_t>(D), 0.0);
  for (const std::string& run : reader.runs())
    for (const char* hook : {"hook_resid_pre", "hook_resid_mid", "hook_resid_post"})
      for (const char* part : {"dim_first", "dim_rest"}) {
        const auto values = reader.read_f64(run, fmt::format("stats/{}/{}/max_abs", hook, part));
        for (std::size_t i = 0; i < values.size(); ++i) {
          double& size = sizes.of[i % sizes.of.size()];
          if (values[i] > size) size = values[i];
        }
      }
  std::vector<double> sorted = sizes.of;
  std::nth_element(sorted.begin(), sorted.begin() + (D - 1) / 2, sorted.end());
  sizes.typical = sorted[static_cast<std::size_t>((D - 1) / 2)];
  return sizes;
}

std::vector<int> chosen_dims(const AbsorbFlags& flags, const SinkReport& report) {
  const std::string text = flags.dims.value_or("auto");
  if (text != "auto") return parse_ranges("--dims", text);
  std::set<int> dims;
  for (const auto& [dim, runs] : report.all.runs_with_massive_dim) dims.insert(dim);
  for (const auto& sink : report.all.residual.sinks) dims.insert(sink.dim);
  if (dims.empty())
    throw Error(
        ErrorKind::invalid_argument,
        "--dims auto: no massive dimension and no residual sink on these prompts; name one");
  return {dims.begin(), dims.end()};
}

struct LogitCheck {
  double difference = 0, largest = 0;
  double relative() const { return difference / largest; }
};

LogitCheck compare_logits(const CaptureReader& a, const CaptureReader& b) {
  LogitCheck check;
  for (const std::string& run : a.runs()) {
    const auto dims = a.dims(run, "logits/full");
    for (std::int64_t t = 0; t < dims[0]; ++t) {
      const auto x = a.read_f64(run, "logits/full", {t, 0}, {1, dims[1]}),
                 y = b.read_f64(run, "logits/full", {t, 0}, {1, dims[1]});
      for (std::size_t i = 0; i < x.size(); ++i) {
        check.largest = std::max(check.largest, std::abs(x[i]));
        check.difference = std::max(check.difference, std::abs(x[i] - y[i]));
        if (!std::isfinite(x[i]) || !std::isfinite(y[i])) check.difference = HUGE_VAL;
      }
    }
  }
  return check;
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (double v : values) most = v > most ? v : most;
  return most;
}

double max_abs(const SinkReport& report) {
  double most = 0;
  for (const Peak& peak : report.runs.front().residual.max_abs) most = std::max(most, peak.value);
  return most;
}

double kurtosis(const SinkReport& report) {
  for (const auto& [flavor, values] : report.runs.front().residual.kurtosis)
    if (flavor == "pearson_tensor") return largest(values);
  return std::nan("");
}

void print_outcome(const AbsorbFlags& flags, const Absorption& absorption, const LogitCheck& check,
                   const SinkReport& before, const SinkReport& after, Console& console) {
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
        {"dims", absorption.dims},
        {"factors", numbers.list(absorption.factors)},
        {"logits",
         {{"largest_difference", numbers.number(check.difference)},
          {"largest", numbers.number(check.largest)},
          {"relative", numbers.number(check.relative())}}},
        {"max_abs", {{"before", max_abs(before)}, {"after", max_abs(after)}}},
        {"kurtosis", {{"before", kurtosis(before)}, {"after", kurtosis(after)}}}};
    json["non_finite_values"] = numbers.n_non_finite();
    console.out << json.dump() << '\n';
    return;
  }
  console.out << fmt::format(
      "dimensions {} by {}\n"
      "largest logit difference {:.3g} ({:.2g} of the largest logit): the same function\n"
      "residual stream  max |x| {:.6g} -> {:.6g}   kurtosis (Pearson, largest site) {:.6g} -> "
      "{:.6g}\n{}\n\nnext: sinkscope sinks {}\n",
      fmt::join(absorption.dims, ", "), fmt::join(absorption.factors, ", "), check.difference,
      check.relative(), max_abs(before), max_abs(after), kurtosis(before), kurtosis(after),
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
  const double tolerance =
      flags.tolerance ? parse_number("--tolerance", *flags.tolerance, 0, 1) : kTolerance;
  std::error_code ignored;
  const std::string part = *flags.output + ".part";
  for (const std::string& path : {*flags.output, part})
    if (fs::exists(path, ignored))
      throw Error(ErrorKind::invalid_argument, fmt::format("{}: exists already", path));
  const std::future<void> warming = warm_engine();
  const auto model = open_runnable(flags.model, flags.run.ignore_index, console);
  const std::vector<RunInput> runs = read_prompts(flags.prompt, *model, console);
  const TemporaryFolder folder;
  const auto before = record(*model, flags, runs, folder.file("before.h5"), console);
  if (!before) return kExitCanceled;

  Absorption absorption;
  absorption.dims = chosen_dims(flags, before->report);
  const Sizes sizes = sizes_of(*before->reader);
  for (int d : absorption.dims)
    absorption.factors.push_back(
        flags.factor ? parse_number("--factor", *flags.factor, 1e-6, 1e9)
        : d < static_cast<int>(sizes.of.size())
            ? absorbing_factor(sizes.of[static_cast<std::size_t>(d)], sizes.typical)
            : 1);
  LogitCheck check;
  std::optional<Recording> after;
  try {
    write_absorbed(*model, absorption, part);
    const auto absorbed = open_model(part);
    after = record(*absorbed, flags, runs, folder.file("after.h5"), console);
    if (after) check = compare_logits(*before->reader, *after->reader);
  } catch (...) {
    fs::remove_all(part, ignored);
    throw;
  }
  if (!after || !(check.relative() <= tolerance)) {
    fs::remove_all(part, ignored);
    if (!after) return kExitCanceled;
    console.warn(
        fmt::format("self-check failed, nothing is kept: largest logit difference {:.3g}, "
                    "{:.2g} of the largest logit, expected at most {:.0e}",
                    check.difference, check.relative(), tolerance));
    return kExitCheck;
  }
  fs::rename(part, *flags.output, ignored);
  if (ignored) {
    const std::string reason = ignored.message();
    fs::remove_all(part, ignored);
    throw Error(ErrorKind::io, fmt::format("{}: cannot be made: {}", *flags.output, reason));
  }
  print_outcome(flags, absorption, check, before->report, after->report, console);
  return kExitDone;
}

}  // namespace sinkscope
