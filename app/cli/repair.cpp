// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "app/cli/command_line.h"
#include "app/cli/format_text.h"
#include "app/cli/input_files.h"
#include "app/cli/output_file.h"
#include "app/cli/run_cli.h"
#include "app/cli/verbs.h"
#include "app/replace_file.h"
#include "core/capture_check.h"
#include "core/capture_reader.h"
#include "core/error.h"
#include "core/output_path.h"
#include "core/recording_state.h"
#include "core/shell_word.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

const char* const kHelp =
    "RUN.h5 is a capture or the name of one that was never finished (RUN.h5.part). Says which "
    "runs\n"
    "and layers are whole and whether sinkscope capture --resume can go on. -o F.h5 reads a piece "
    "of\n"
    "every array and then copies the file, byte by byte, to one that every verb reads: of runs "
    "that\n"
    "are not done the whole layers only. It copies nothing where an array cannot be read "
    "(damaged,\n"
    "or in another file): exit 3. --discard takes the unfinished recording and its state away.\n"
    "--check reads a piece of every array of all runs, or of the first, and names what cannot be\n"
    "read: exit 1 then.\n\n"
    "--json keys: schema (sinkscope.repair/1), conventions, file, complete, layers, runs [{name,\n"
    "whole_layers}], resumable_after (layers; null = cannot be resumed), first_run; with --check "
    "also unreadable\n"
    "[sentence].\n\n"
    "example: sinkscope repair RUN.h5";

struct Flags {
  std::string input;
  std::optional<std::string> output, check;
  bool discard = false, json = false, force = false;
};

// The finished file, else the unfinished one beside it.
std::string file_of(const std::string& input) {
  std::error_code ignored;
  if (fs::exists(input, ignored) || !fs::exists(input + ".part", ignored)) return input;
  return input + ".part";
}

// Where --resume goes on.
struct ResumePoint {
  int layers = 0, first_run = 0;
};

std::optional<ResumePoint> resumable(const std::string& path, const CaptureReader& capture) {
  const std::vector<RecordingState> states = load_states(path);
  if (states.empty() || capture.complete()) return std::nullopt;
  const auto& runs = capture.runs();
  const int n_layers = capture.model(runs.front()).n_layers;
  ResumePoint point{n_layers, 0};  // only the head is left
  for (; point.first_run < static_cast<int>(runs.size()); ++point.first_run) {
    point.layers = capture.whole_layers(runs[static_cast<std::size_t>(point.first_run)]);
    if (point.layers < n_layers) break;
  }
  const std::string maps = "attention/pattern_layers";
  if (capture.has(runs.front(), maps) &&
      capture.read_i32(runs.front(), maps) == std::vector<int>{-1})
    point.layers = 0;  // sums over layers were in memory
  const bool is_kept = std::any_of(states.begin(), states.end(), [&](const RecordingState& state) {
    return state.layers_done == point.layers;
  });
  return point.layers == 0 || is_kept ? std::optional(point) : std::nullopt;
}

void print_runs(const CaptureReader& capture, Console& console) {
  const int n_layers = capture.model(capture.runs().front()).n_layers;
  int whole = 0, untouched = 0;
  for (const std::string& run : capture.runs()) {
    const int layers = capture.whole_layers(run);
    whole += layers == n_layers;
    untouched += layers == 0;
    if (layers > 0 && layers < n_layers)
      console.out << fmt::format("  {:<8} {} of {} layers are whole\n", run, layers, n_layers);
  }
  if (whole > 0)
    console.out << fmt::format("  {} of {} runs have all layers\n", whole, capture.runs().size());
  if (untouched > 0) console.out << fmt::format("  {} runs have no whole layer\n", untouched);
}

nlohmann::ordered_json as_json(const CaptureReader& capture,
                               const std::optional<ResumePoint>& point) {
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  for (const std::string& run : capture.runs())
    runs.push_back({{"name", run}, {"whole_layers", capture.whole_layers(run)}});
  nlohmann::ordered_json out = {
      {"schema", "sinkscope.repair/1"},
      {"conventions", {{"whole_layers", "blocks whose every array is in the file"}}},
      {"file", capture.path()},
      {"complete", capture.complete()},
      {"layers", capture.model(capture.runs().front()).n_layers},
      {"runs", runs},
      {"resumable_after", nullptr},
      {"first_run", nullptr}};
  if (point) {
    out["resumable_after"] = point->layers;
    out["first_run"] = point->first_run;
  }
  return out;
}

void print_text(const CaptureReader& capture, const std::optional<ResumePoint>& point,
                Console& console) {
  if (capture.complete()) {
    console.out << fmt::format("{}: complete, nothing to repair\n", capture.path());
    return;
  }
  console.out << fmt::format("{}: an unfinished recording; it opens as it is\n", capture.path());
  print_runs(capture, console);
  if (point)
    console.out << fmt::format(
        "  its state after {} layers is kept: the same capture command with --resume finishes it\n",
        point->layers);
  else
    console.out << "  no whole state is kept: it cannot be resumed\n";
}

// The runs, or the first of them, each with its twins behind it.
std::vector<std::string> with_twins(const CaptureReader& capture, bool all_runs) {
  std::vector<std::string> runs;
  for (const std::string& run : capture.runs()) {
    runs.push_back(run);
    const std::vector<std::string> twins = capture.edits(run);
    runs.insert(runs.end(), twins.begin(), twins.end());
    if (!all_runs) break;
  }
  return runs;
}

std::vector<std::string> unreadable(const CaptureReader& capture, bool all_runs) {
  std::vector<std::string> found;
  for (const std::string& run : with_twins(capture, all_runs)) {
    const std::vector<std::string> more = unreadable_arrays(capture, run);
    found.insert(found.end(), more.begin(), more.end());
  }
  return found;
}

// Arrays that lie in other files, or are none. Of what was never finished the values are not looked
// at: those behind the whole layers are anything, and left out by every reader.
std::vector<std::string> unusable(const CaptureReader& capture) {
  if (capture.complete()) return unreadable(capture, true);
  std::vector<std::string> found;
  for (const std::string& run : with_twins(capture, true))
    for (const std::string& path : dataset_paths(capture, run)) {
      try {
        capture.type(run, path);
      } catch (const Error& error) {
        found.emplace_back(error.what());
      }
    }
  return found;
}

// What lies in other files, or cannot be read, would be missed in the copy.
void require_readable(const CaptureReader& capture) {
  const std::vector<std::string> failures = unusable(capture);
  if (failures.empty()) return;
  throw Error(ErrorKind::corrupt, fmt::format("nothing is copied, {} arrays cannot be read: {}",
                                              failures.size(), failures.front()));
}

void copy_to(const std::string& from, const Flags& flags, Console& console) {
  replace_file(from, *flags.output);
  console.out << fmt::format("copied to {}\nnext: sinkscope sinks {}\n", *flags.output,
                             shell_word(*flags.output));
}

void take_away(const std::string& path, Console& console) {
  remove_states(path);
  std::error_code failure;
  fs::remove(path, failure);
  if (failure)
    throw Error(ErrorKind::io, fmt::format("{}: cannot be removed: {}", path, failure.message()));
  console.out << fmt::format("{} and its state are gone\n", path);
}

// An unfinished file by its name, which no capture can be read from.
bool is_beyond_repair(const std::string& path) {
  std::error_code ignored;
  if (!path.ends_with(".part") || !fs::is_regular_file(path, ignored)) return false;
  try {
    CaptureReader::open(path);
  } catch (const Error& error) {
    return error.kind() == ErrorKind::corrupt;
  }
  return false;
}

void discard(const CaptureReader& capture, const std::string& path, Console& console) {
  if (capture.complete())
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: complete; --discard takes away unfinished recordings only", path));
  take_away(path, console);
}

}  // namespace

int run_repair(const std::vector<std::string>& args, Console& console) {
  Flags flags;
  CommandLine command("repair", "Says what of a recording is whole, and makes it readable.");
  command.positional("RUN.h5", flags.input, "a capture, or the name of an unfinished one");
  command.value("-o,--output", flags.output, "F.h5",
                "copy it to this file, if every array can be read");
  command.value("--check", flags.check, "all|first", "read a piece of every array of the runs");
  command.flag("--discard", flags.discard, "take the unfinished recording away");
  command.flag("--force", flags.force, "replace an existing F.h5");
  command.flag("--json", flags.json, "print what is whole as JSON");
  command.footer(kHelp);
  if (!command.parse(args, console)) return kExitDone;
  if (flags.output && flags.discard)
    throw Error(ErrorKind::invalid_argument, "repair: --discard and -o: one of them");

  if (flags.check && *flags.check != "all" && *flags.check != "first")
    throw Error(ErrorKind::invalid_argument,
                fmt::format("repair: --check '{}', expected all or first", *flags.check));

  if (flags.output) {
    require_capture_path(*flags.output);
    require_new_file(*flags.output, flags.force);
    require_apart(*flags.output, {flags.input});
  }
  const std::string path = file_of(flags.input);
  if (flags.discard && is_beyond_repair(path)) {
    take_away(path, console);
    return kExitDone;
  }
  const auto capture = CaptureReader::open(path);
  const auto point = resumable(path, *capture);
  if (flags.output) require_readable(*capture);
  std::vector<std::string> failures;
  if (flags.check) failures = unreadable(*capture, *flags.check == "all");
  if (flags.json) {
    nlohmann::ordered_json out = as_json(*capture, point);
    if (flags.check) out["unreadable"] = failures;
    console.out << out.dump(2) << '\n';
  } else {
    print_text(*capture, point, console);
    for (const std::string& failure : failures)
      console.out << fmt::format("  cannot be read: {}\n", failure);
    if (flags.check && failures.empty()) console.out << "  every array can be read\n";
  }
  if (flags.output) copy_to(path, flags, console);
  if (flags.discard) discard(*capture, path, console);
  return failures.empty() ? kExitDone : kExitCheck;
}

}  // namespace sinkscope
