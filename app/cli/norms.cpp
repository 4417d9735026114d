// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>

#include "app/cli/capture_runs.h"
#include "app/cli/command_line.h"
#include "app/cli/open_flags.h"
#include "app/cli/parse_text.h"
#include "app/cli/run_cli.h"
#include "app/cli/verbs.h"
#include "capture/checkpoint/model_norms.h"
#include "core/capture_norms.h"
#include "core/error.h"
#include "core/norm_gains.h"

namespace sinkscope {
namespace {

const char* const kHelp =
    "Gains are effective (stored weight plus the architecture's offset); the stored value stands\n"
    "beside them. Starred: the dimensions whose gain deviates most from 1 on a log scale. Only "
    "norm\n"
    "weights are read. A capture's norms are shown too.\n\n"
    "--json keys: schema (sinkscope.norms/1), conventions, norms [{role, kind, eps, offset, "
    "width,\n"
    "layers, widths (of each layer's norm), median, min [{layer, dim, value, raw}], max, starred,\n"
    "starred_from_median, zero_gains, non_finite_gains (in the file)}], non_finite_values (nulls "
    "here; eps and offset are null "
    "where\n"
    "there is no config), tensors {role: names in the file, one a norm}.\n"
    "--csv columns: role,layer,median,min,min_dim,min_raw,max,max_dim,max_raw.";

struct NormFlags {
  std::string input;
  std::optional<std::string> top;
  bool json = false, csv = false;
  OpenFlags opening;
};

// The role says what a norm does; files of other families use the same name for another place.
std::string tensor_lines(const std::vector<NamedNorms>& roles) {
  std::string lines = "\nin the file:\n";
  for (const NamedNorms& norms : roles)
    lines += fmt::format(
        "  {:<10} {}{}\n", norms.facts.role, norms.tensors.front(),
        norms.tensors.size() > 1 ? fmt::format(" … {}", norms.tensors.back()) : std::string());
  return lines;
}

void print(const NormFlags& flags, const std::vector<NormFacts>& facts,
           const std::vector<NamedNorms>& named, int n_layers, Console& console) {
  NormGainOptions options;
  if (flags.top) options.n_starred = static_cast<int>(parse_integer("--top", *flags.top, 1, 10000));
  const std::vector<NormRoleGains> roles = norm_gains(facts, options);
  if (flags.json) {
    nlohmann::ordered_json json = norm_gains_json(roles);
    nlohmann::ordered_json tensors = nlohmann::ordered_json::object();
    for (const NamedNorms& norms : named) tensors[norms.facts.role] = norms.tensors;
    json["tensors"] = tensors;
    console.out << json.dump(2) << '\n';
  } else if (flags.csv) {
    console.out << norm_gains_csv(roles);
  } else {
    console.out << norm_gains_text(roles, n_layers);
    if (!named.empty()) console.out << tensor_lines(named);
  }
}

void print_capture(const NormFlags& flags, Console& console) {
  const RunPath place = parse_run_path(flags.input);
  const auto reader = CaptureReader::open(place.path);
  const std::string run = pick_run(*reader, place.run, std::nullopt, console);
  const std::vector<NormFacts> facts = read_norms(*reader, run);
  if (facts.empty())
    throw Error(ErrorKind::not_found, fmt::format("{}: {}: holds no norms", place.path, run));
  print(flags, facts, {}, reader->model(run).n_layers, console);
}

void print_model(const NormFlags& flags, Console& console) {
  const auto model = open_model(flags.input, open_options(flags.opening));
  const ModelNorms norms = read_norms(*model);
  for (const std::string& sentence : norms.unread) console.warn(sentence);
  if (norms.roles.empty())
    throw Error(ErrorKind::unsupported,
                fmt::format("{}: no norm is recognized: {}", model->path(),
                            model->obstacles().empty() ? std::string("the file holds none")
                                                       : model->obstacles().front()));
  for (const std::string& warning : model->warnings()) console.warn(warning);
  std::vector<NormFacts> facts;
  for (const NamedNorms& role : norms.roles) facts.push_back(role.facts);
  if (std::isnan(facts.front().eps))
    console.warn(
        fmt::format("{}: no config.json: eps is not known, and gains are shown as stored; "
                    "some families add 1",
                    model->path()));
  print(flags, facts, norms.roles, model->spec().n_layers, console);
}

}  // namespace

int run_norms(const std::vector<std::string>& args, Console& console) {
  NormFlags flags;
  CommandLine command("norms", "Shows the norm gains of a model, without a forward pass.");
  command.positional("MODEL|RUN.h5", flags.input, "Hugging Face folder, org/name, GGUF or capture");
  command.flag("--json", flags.json, "print JSON");
  command.flag("--csv", flags.csv, "print one table, a norm a row");
  command.value("--top", flags.top, "3", "starred dimensions per role");
  add_open_flags(command, flags.opening);
  command.footer(kHelp);
  if (!command.parse(args, console)) return kExitDone;
  if (flags.json && flags.csv)
    throw Error(ErrorKind::invalid_argument, "expected one of --json and --csv, found both");
  if (looks_like_capture(parse_run_path(flags.input).path)) {
    print_capture(flags, console);
  } else {
    print_model(flags, console);
  }
  return kExitDone;
}

}  // namespace sinkscope
