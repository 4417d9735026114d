// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "app/cli/capture_runs.h"
#include "app/cli/command_line.h"
#include "app/cli/model_card.h"
#include "app/cli/open_flags.h"
#include "app/cli/parse_text.h"
#include "app/cli/run_cli.h"
#include "app/cli/verbs.h"
#include "capture/checkpoint/arch_file.h"
#include "core/error.h"
#include "core/number_text.h"
#include "core/shell_word.h"

namespace sinkscope {
namespace {

const char* const kHelp =
    "Reads headers and the config, never a weight. A model that cannot be run is still described,\n"
    "with every reason.\n\n"
    "--json keys: schema (sinkscope.info/1), conventions, name, path, container, architecture,\n"
    "n_layers, n_heads, n_kv_heads, head_dim, head_dim_source (config, inferred), d_model, d_mlp,\n"
    "vocab_size, n_ctx, rope {rotary_dim, theta, scaling, factor}, windows, norm {kind, eps, "
    "offset,\n"
    "qk}, head (tied, untied, none), parameters, tensors, bytes, dtypes [{dtype, tensors, "
    "elements,\n"
    "bytes, readable}], tokenizer {name, vocab_size, bos_id, bos_piece, adds_bos} or null with\n"
    "tokenizer_reason, warnings, obstacles (why it cannot be run; empty: it can). rope, windows, "
    "norm\n"
    "and head are null for a family that is not known here; sizes not given are 0.\n"
    "--arch-json keys: schema (sinkscope.arch/1), conventions, spec (the architecture as data), "
    "roles\n"
    "(which tensor plays which role; lists have one entry a layer), packing (how roles share a\n"
    "tensor), unmapped (tensors without a role). A model of a family that is not known here opens\n"
    "by such a file: complete it, and give it to --arch.\n"
    "--csv columns: tensor,dtype,shape,elements,bytes,readable; a row a tensor, in the order of "
    "the "
    "file.";

// The shape as "64x32", "" of a scalar.
std::string tensors_csv(const Checkpoint& checkpoint) {
  std::string table = "tensor,dtype,shape,elements,bytes,readable\n";
  for (const TensorInfo& tensor : checkpoint.tensors())
    table += fmt::format("{},{},{},{},{},{}\n", csv_field(tensor.name), csv_field(tensor.dtype),
                         fmt::join(tensor.shape, "x"), tensor.n_elements(), tensor.n_bytes,
                         tensor.readable);
  return table;
}

}  // namespace

int run_info(const std::vector<std::string>& args, Console& console) {
  std::string path;
  bool json = false, csv = false, arch = false;
  OpenFlags opening;
  CommandLine command("info", "Says what a model is: architecture, sizes, tokenizer, warnings.");
  command.positional("MODEL", path, "Hugging Face folder, org/name or GGUF file");
  command.flag("--json", json, "print JSON");
  command.flag("--csv", csv, "print the tensors as one table");
  command.flag("--arch-json", arch, "print the architecture and its tensor roles as JSON");
  add_open_flags(command, opening);
  command.footer(kHelp);
  if (!command.parse(args, console)) return kExitDone;
  if (json + csv + arch > 1)
    throw Error(ErrorKind::invalid_argument,
                "expected one of --json, --csv and --arch-json, found more");
  if (looks_like_capture(parse_run_path(path).path))
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: a capture, expected a model; sinkscope sinks {} reports it", path,
                            shell_word(path)));
  const auto model = open_model(path, open_options(opening));
  if (arch) {
    console.out << arch_to_json(*model).dump(2) << '\n';
  } else if (csv) {
    console.out << tensors_csv(model->checkpoint());
  } else if (json) {
    console.out << card_json(model_card(*model)).dump(2) << '\n';
  } else {
    console.out << card_text(model_card(*model));
  }
  return kExitDone;
}

}  // namespace sinkscope
