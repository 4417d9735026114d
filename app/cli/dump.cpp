// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "app/cli/capture_runs.h"
#include "app/cli/command_line.h"
#include "app/cli/format_text.h"
#include "app/cli/input_files.h"
#include "app/cli/output_file.h"
#include "app/cli/parse_text.h"
#include "app/cli/recorded_array.h"
#include "app/cli/run_cli.h"
#include "app/cli/terminal_text.h"
#include "app/cli/verbs.h"
#include "core/error.h"
#include "core/npy.h"

namespace sinkscope {
namespace {

// Blocks of this size keep the memory for a dump far below 64 MiB, copies included.
constexpr std::int64_t kBlockBytes = std::int64_t{16} << 20;

const char* const kHelp =
    "HOOK is a hook name: blocks.3.attn.hook_pattern [head, query, key], blocks.3.hook_resid_post\n"
    "[token, dim], ln_final.hook_out, any recorded tap; or the path of a dataset in the run:\n"
    "attention/key_mass. --list names them all. The numbers printed are over all values.\n"
    "Without -o they are only printed.\n\n"
    "--json keys: schema (sinkscope.dump/1), conventions, run, hook, dataset, shape, dtype, sum, "
    "min,\n"
    "max (over the finite values; null without one), n_nan, n_inf.\n"
    "--list --json keys: schema (sinkscope.dump_list/1), conventions, run, names.\n\n"
    "example: sinkscope dump RUN.h5 blocks.3.hook_resid_post -o resid.npy";

const char* dtype_name(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return "float32";
    case ElementType::f64:
      return "float64";
    case ElementType::i32:
      return "int32";
    case ElementType::i64:
      return "int64";
    case ElementType::text:
      break;
  }
  return "text";
}

std::string as_json(const std::string& run, const std::string& hook, const RecordedArray& array,
                    const ArraySummary& summary) {
  const nlohmann::ordered_json result = {
      {"schema", "sinkscope.dump/1"},
      {"conventions",
       {{"sum", "over the finite values of the whole array, in double"},
        {"order", "C order, as shaped"}}},
      {"run", run},
      {"hook", hook},
      {"dataset", array.path},
      {"shape", array.dims},
      {"dtype", dtype_name(array.type)},
      {"sum", summary.sum},
      {"min", summary.min},
      {"max", summary.max},
      {"n_nan", summary.n_nan},
      {"n_inf", summary.n_inf}};
  return result.dump() + "\n";
}

std::string as_line(const std::string& run, const std::string& hook, const RecordedArray& array,
                    const ArraySummary& summary) {
  return fmt::format(
      "{} {}  shape {}  dtype {}  sum {:.9g}  min {:.9g}  max {:.9g}  n_nan {}  n_inf {}\n", run,
      hook, format_shape(array.dims), dtype_name(array.type), summary.sum, summary.min, summary.max,
      summary.n_nan, summary.n_inf);
}

}  // namespace

int run_dump(const std::vector<std::string>& args, Console& console) {
  std::string path, hook;
  std::optional<std::string> output, run_flag;
  bool json = false, list = false, force = false;
  CommandLine command("dump", "Writes one recorded array as a .npy file and says what is in it.");
  command.positional("RUN.h5", path, "a capture, or one of its runs: RUN.h5::run3");
  command.positional("HOOK", hook, "what to write", CommandLine::Need::optional);
  command.value("-o,--output", output, "F.npy", "write there; - is standard output");
  command.flag("--force", force, "replace an existing file");
  command.value("--run", run_flag, "NAME", "the run (default: the first)");
  command.flag("--list", list, "print the names of everything recorded");
  command.flag("--json", json, "print the numbers as JSON");
  command.footer(kHelp);
  if (!command.parse(args, console)) return kExitDone;
  const RunPath place = parse_run_path(path);
  const auto reader = CaptureReader::open(place.path);
  const std::string run = pick_run(*reader, place.run, run_flag, console);
  if (list && json) {
    console.out << nlohmann::ordered_json{{"schema", "sinkscope.dump_list/1"},
                                          {"conventions", {{"names", "below the run's group"}}},
                                          {"run", run},
                                          {"names", array_names(*reader, run)}}
                       .dump()
                << '\n';
    return kExitDone;
  }
  if (list) {
    for (const std::string& name : array_names(*reader, run)) console.out << name << '\n';
    return kExitDone;
  }
  if (hook.empty())
    throw Error(ErrorKind::invalid_argument,
                "dump: expected the HOOK to write; sinkscope dump RUN.h5 --list names them");
  const RecordedArray array = find_array(*reader, run, hook);
  if (array.n_missing > 0)
    console.warn(
        fmt::format("{}: incomplete, {} whole layers: the {} rows of {} behind them are "
                    "left out",
                    place.path, reader->whole_layers(run), array.n_missing, array.path));
  ArraySummary summary;
  if (output) {
    require_apart(*output, {path});
    OutputFile file(*output, force, console.data());
    file.stream() << npy_header(array.type, array.dims);
    summary =
        stream_array(*reader, run, array, kBlockBytes, [&](const char* bytes, std::int64_t n) {
          file.stream().write(bytes, n);
          if (!file.stream())
            throw Error(ErrorKind::io, fmt::format("{}: cannot be written (disk full?)", *output));
        });
    file.close();
  } else {
    summary = stream_array(*reader, run, array, kBlockBytes, [](const char*, std::int64_t) {});
  }
  // With -o - the array is what goes down the pipe.
  std::ostream& text = output == "-" ? console.err : console.out;
  text << terminal_text(json ? as_json(run, hook, array, summary)
                             : as_line(run, hook, array, summary));
  return kExitDone;
}

}  // namespace sinkscope
