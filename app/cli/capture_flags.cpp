// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/capture_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "app/cli/parse_text.h"
#include "core/error.h"

namespace sinkscope {
namespace {

constexpr std::int64_t kMaxInt = std::numeric_limits<int>::max();

[[noreturn]] void refuse(const std::string& flag, const std::string& expected,
                         const std::string& found) {
  throw Error(ErrorKind::invalid_argument,
              fmt::format("{}: expected {}, found '{}'", flag, expected, found));
}

std::string parse_device(const std::string& text) {
  const bool is_indexed = text.starts_with("cuda:");
  if (is_indexed) parse_integer("--device cuda:N", text.substr(5), 0, 1023);
  if (text != "auto" && text != "cpu" && text != "cuda" && !is_indexed)
    refuse("--device", "auto, cpu, cuda or cuda:N", text);
  return text;
}

RunDtype parse_dtype(const std::string& text) {
  if (text == "float32") return RunDtype::float32;
  if (text == "bfloat16") return RunDtype::bfloat16;
  refuse("--dtype", "float32 or bfloat16", text);
}

Reduce parse_reduce(const std::string& text) {
  if (text == "mean") return Reduce::mean;
  if (text == "max") return Reduce::max;
  refuse("--reduce", "mean or max", text);
}

ReduceOver parse_reduce_over(const std::string& text) {
  if (text == "heads") return ReduceOver::heads;
  if (text == "layers") return ReduceOver::layers;
  refuse("--reduce-over", "heads or layers", text);
}

// The flags that a canonical command may hold, in its order. Defaults are left out, so that the
// same request always reads the same.
struct CanonicalFlag {
  const char* name;
  std::optional<std::string>* value;
  const char* standard;
};
std::vector<CanonicalFlag> canonical_flags(RunFlags& run, RecordFlags& record,
                                           PromptFlags& prompt) {
  return {{"--record", &record.record, ""},
          {"--layers", &record.layers, "all"},
          {"--heads", &record.heads, "all"},
          {"--rows", &record.rows, "all"},
          {"--reduce", &record.reduce, ""},
          {"--reduce-over", &record.reduce_over, "heads"},
          {"--top-k", &record.top_k, "10"},
          {"--bos", &prompt.bos, "auto"},
          {"--pre-tokenizer", &prompt.pre_tokenizer, ""},
          {"--max-tokens", &prompt.max_tokens, ""},
          {"--window", &prompt.window, ""},
          {"--stride", &prompt.stride, ""},
          {"--max-windows", &prompt.max_windows, ""},
          {"--window-rule", &prompt.window_rule, "hf"},
          {"--device", &run.device, "auto"},
          {"--dtype", &run.dtype, "float32"},
          {"--threads", &run.threads, ""},
          {"--kernel", &run.kernel, "auto"},
          {"--weight-budget", &run.weight_budget, ""},
          {"--activation-budget", &run.activation_budget, ""}};
}

}  // namespace

void add_run_flags(CommandLine& command, RunFlags& flags) {
  command.group("Running");
  command.value("--device", flags.device, "auto|cpu|cuda[:N]", "where the model runs");
  command.value("--dtype", flags.dtype, "float32|bfloat16", "arithmetic (default: float32)");
  command.value("--threads", flags.threads, "N", "threads of arithmetic (default: all cores)");
  command.value("--weight-budget", flags.weight_budget, "4GiB",
                "weights kept in memory; what exceeds it is read layer by layer");
  command.value("--activation-budget", flags.activation_budget, "1GiB",
                "prompt states kept in memory at once");
  command.value("--kernel", flags.kernel, "auto|fused|reference", "which body computes attention");
  command.value("--progress", flags.progress, "auto|json|none",
                "on standard error (auto: a bar on a terminal)");
  add_open_flags(command, flags.opening);
}

void add_record_flags(CommandLine& command, RecordFlags& flags) {
  command.group("Recording (the model always runs whole)");
  command.value("--record", flags.record, "stats|stream|maps|all|logits|SITE,…",
                "level (default: stream), and single hooks by name, separated by commas");
  command.value("--layers", flags.layers, "0-3,7", "blocks whose maps and sites are kept");
  command.value("--heads", flags.heads, "0,2", "query heads whose maps are kept");
  command.value("--rows", flags.rows, "0-63", "query positions whose map rows are kept");
  command.value("--reduce", flags.reduce, "mean|max",
                "one map in place of many, for maps that would be too large");
  command.value("--reduce-over", flags.reduce_over, "heads|layers",
                "of a layer's kept heads, or of a head's kept layers (default: heads)");
  command.value("--top-k", flags.top_k, "N", "likely next tokens kept per position (default: 10)");
}

RecordRequest parse_record(const std::string& text) {
  static const std::vector<std::string> levels = {"stats", "stream", "maps", "all"};
  int level = -1;
  RecordRequest record;
  for (const std::string& word : split_at(text, ',')) {
    const auto found = std::find(levels.begin(), levels.end(), word);
    if (word.empty()) {
      refuse("--record", "stats, stream, maps, all, logits or hook names", text);
    } else if (found != levels.end()) {
      level = std::max(level, static_cast<int>(found - levels.begin()));
    } else if (word == "logits") {
      record.logits = true;
    } else {
      record.sites.push_back(word);
    }
  }
  if (level < 0) level = 1;
  record.stream = level >= 1;
  record.maps = level >= 2;
  record.all = level >= 3;
  return record;
}

bool names_stream(const RecordFlags& flags) {
  const std::vector<std::string> words = split_at(flags.record.value_or(""), ',');
  return std::find(words.begin(), words.end(), "stream") != words.end();
}

CaptureRequest capture_request(const RunFlags& run, const RecordFlags& record) {
  CaptureRequest request;
  request.record = parse_record(record.record.value_or("stream"));
  if (record.layers) request.record.layers = parse_ranges("--layers", *record.layers);
  if (record.heads) request.record.heads = parse_ranges("--heads", *record.heads);
  if (record.rows) request.record.rows = parse_ranges("--rows", *record.rows);
  if (record.reduce) request.record.reduce = parse_reduce(*record.reduce);
  if (record.reduce_over) {
    if (!record.reduce) refuse("--reduce-over", "--reduce beside it", *record.reduce_over);
    request.record.reduce_over = parse_reduce_over(*record.reduce_over);
  }
  if (record.top_k)
    request.top_k = static_cast<int>(parse_integer("--top-k", *record.top_k, 1, 1000));
  request.device = parse_device(run.device.value_or("auto"));
  request.dtype = parse_dtype(run.dtype.value_or("float32"));
  if (run.threads)
    request.threads = static_cast<int>(parse_integer("--threads", *run.threads, 1, 4096));
  if (run.weight_budget) request.weight_budget = parse_bytes("--weight-budget", *run.weight_budget);
  if (run.activation_budget)
    request.activation_budget = parse_bytes("--activation-budget", *run.activation_budget);
  request.kernel = run.kernel.value_or("auto");
  if (request.kernel != "auto" && request.kernel != "fused" && request.kernel != "reference")
    refuse("--kernel", "auto, fused or reference", request.kernel);
  if ((record.heads || record.rows || record.reduce) && !request.record.maps)
    refuse(record.heads  ? "--heads"
           : record.rows ? "--rows"
                         : "--reduce",
           "--record maps or all beside it", record.record.value_or("stream"));
  return request;
}

std::string canonical_command(const RunFlags& run, const RecordFlags& record,
                              const PromptFlags& prompt) {
  RunFlags run_copy = run;
  RecordFlags record_copy = record;
  PromptFlags prompt_copy = prompt;
  if (!record_copy.record) record_copy.record = "stream";
  // "0,1,2" and "0-2" ask for the same.
  for (auto* ranges : {&record_copy.layers, &record_copy.heads, &record_copy.rows})
    if (*ranges) *ranges = format_ranges(parse_ranges("", **ranges));
  std::string command = "capture";
  for (const CanonicalFlag& flag : canonical_flags(run_copy, record_copy, prompt_copy))
    if (*flag.value && **flag.value != flag.standard)
      command += fmt::format(" {} {}", flag.name, **flag.value);
  if (prompt.chat) command += " --chat";
  if (prompt.no_special) command += " --no-special";
  return command;
}

void read_command(const std::string& command, RunFlags& run, RecordFlags& record,
                  PromptFlags& prompt) {
  std::vector<std::string> words = split_at(command, ' ');
  prompt.chat |= std::erase(words, "--chat") > 0;
  prompt.no_special |= std::erase(words, "--no-special") > 0;
  const std::vector<CanonicalFlag> flags = canonical_flags(run, record, prompt);
  bool ok = !words.empty() && words.front() == "capture" && words.size() % 2 == 1;
  for (std::size_t i = 1; ok && i + 1 < words.size(); i += 2) {
    const auto flag = std::find_if(flags.begin(), flags.end(),
                                   [&](const CanonicalFlag& f) { return f.name == words[i]; });
    ok = flag != flags.end();
    if (ok && !*flag->value) *flag->value = words[i + 1];
  }
  if (!ok)
    throw Error(
        ErrorKind::corrupt,
        fmt::format("provenance/command: expected 'capture --flag value …', found '{}'", command));
}

}  // namespace sinkscope
