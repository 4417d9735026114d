// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "app/cli/input_files.h"
#include "app/cli/open_flags.h"
#include "app/cli/open_text.h"
#include "app/cli/output_file.h"
#include "app/cli/prompts.h"
#include "app/cli/run_cli.h"
#include "app/cli/verbs.h"
#include "capture/checkpoint/printable.h"
#include "core/error.h"
#include "core/number_text.h"

namespace sinkscope {
namespace {

const char* const kHelp =
    "Prints one token a line: position, id, label, and what the vocabulary calls it.\n\n"
    "--json keys: schema (sinkscope.tokenize/1), conventions, ids, pieces (labels: whole "
    "characters\n"
    "as text, parts of one as ⟨E6 88⟩), bos_positions, tokenizer.\n"
    "--csv columns: position,id,label,piece (as the vocabulary spells it).\n"
    "--ids prints the ids alone, separated by spaces, as --tokens-file reads them.";

std::string as_json(const Tokenizer& tokenizer, const Encoding& encoding) {
  const nlohmann::ordered_json result = {
      {"schema", "sinkscope.tokenize/1"},
      {"conventions",
       {{"positions", "0-based"},
        {"pieces", "decoded text with visible white space; a part of a character as its bytes"}}},
      {"ids", encoding.ids},
      {"pieces", tokenizer.labels(encoding.ids)},
      {"bos_positions", encoding.bos_positions},
      {"tokenizer", tokenizer.name()}};
  return result.dump() + "\n";
}

std::string as_table(const Tokenizer& tokenizer, const Encoding& encoding) {
  const std::vector<std::string> labels = tokenizer.labels(encoding.ids);
  std::string table;
  for (std::size_t i = 0; i < encoding.ids.size(); ++i)
    table += fmt::format("{:>6} {:>7}  {:<20} {}\n", i, encoding.ids[i], labels[i],
                         printable(tokenizer.raw_piece(encoding.ids[i])));
  table += fmt::format("{} tokens by {}; BOS at {}\n", encoding.ids.size(), tokenizer.name(),
                       encoding.bos_positions.empty()
                           ? std::string("no position")
                           : fmt::format("{}", fmt::join(encoding.bos_positions, ", ")));
  return table;
}

std::string as_csv(const Tokenizer& tokenizer, const Encoding& encoding) {
  const std::vector<std::string> labels = tokenizer.labels(encoding.ids);
  std::string table = "position,id,label,piece\n";
  for (std::size_t i = 0; i < encoding.ids.size(); ++i)
    table += fmt::format("{},{},{},{}\n", i, encoding.ids[i], csv_field(labels[i]),
                         csv_field(printable(tokenizer.raw_piece(encoding.ids[i]))));
  return table;
}

}  // namespace

int run_tokenize(const std::vector<std::string>& args, Console& console) {
  std::string model;
  PromptFlags prompt;
  OpenFlags opening;
  std::optional<std::string> output;
  bool json = false, csv = false, ids_only = false, force = false;
  CommandLine command("tokenize", "Shows the ids a model would be fed for a text.");
  command.positional("MODEL", model, "Hugging Face folder, org/name, GGUF file or tokenizer.json");
  add_text_flags(command, prompt);
  command.flag("--json", json, "print JSON");
  command.flag("--csv", csv, "print one table, a token a row");
  command.flag("--ids", ids_only, "print the ids alone");
  command.value("-o,--output", output, "F", "write there; - is standard output");
  command.flag("--force", force, "replace an existing file");
  add_open_flags(command, opening);
  command.footer(kHelp);
  if (!command.parse(args, console)) return kExitDone;
  if (prompt.text.has_value() == prompt.text_file.has_value())
    throw Error(ErrorKind::invalid_argument,
                "tokenize: expected one of --text and --text-file, see sinkscope tokenize --help");

  if (json + csv + ids_only > 1)
    throw Error(ErrorKind::invalid_argument,
                "expected one of --json, --csv and --ids, found several");
  if (output && *output != "-") require_new_file(*output, force);
  require_apart(output.value_or("-"), {model, prompt.text_file, opening.arch});
  BosRule bos = bos_rule_of(prompt);
  const auto tokenizer = open_tokenizer_at(
      model, TokenizerOptions{prompt.pre_tokenizer.value_or("")}, open_options(opening));
  const std::string given = prompt.text ? *prompt.text : read_text(*prompt.text_file, console);
  const std::string text = fed_text(given, prompt.chat, *tokenizer, bos, console);
  const Encoding encoding = tokenizer->encode(text, bos);
  for (const std::string& warning : encoding.warnings) console.warn(warning);
  OutputFile file(output.value_or("-"), force, console.out);
  if (json) {
    file.stream() << as_json(*tokenizer, encoding);
  } else if (csv) {
    file.stream() << as_csv(*tokenizer, encoding);
  } else if (ids_only) {
    file.stream() << fmt::format("{}\n", fmt::join(encoding.ids, " "));
  } else {
    file.stream() << as_table(*tokenizer, encoding);
  }
  file.close();
  return kExitDone;
}

}  // namespace sinkscope
