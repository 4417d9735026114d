// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/run_cli.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>

#include "app/cli/console.h"
#include "app/cli/failure.h"
#include "app/cli/parse_text.h"
#include "app/cli/terminal_text.h"
#include "app/cli/verbs.h"
#include "app/window_request.h"
#include "core/error.h"

namespace sinkscope {
namespace {

std::string verb_names() {
  std::string names;
  for (const Verb& verb : verbs())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", verb.name);
  return names;
}

void print_overview(std::ostream& out) {
  out << "Sinkscope shows the outliers of a language model: where attention and the residual\n"
         "stream sink, what the norms do about it, and the numbers behind it.\n\n"
         "usage: sinkscope VERB …, or sinkscope FILE|MODEL for a first look\n\n";
  for (const Verb& verb : verbs())
    out << fmt::format("  {:<29} {}\n", fmt::format("{} {}", verb.name, verb.usage), verb.summary);
  out << "\nMODEL is a Hugging Face folder, a hub-cache name org/name, or a GGUF file; RUN.h5 is "
         "a\n"
         "capture, RUN.h5::run3 one of its runs. Each verb explains itself: sinkscope VERB "
         "--help.\n"
         "  -q, -v      fewer or more notes          --version   the program's version\n\n"
         "exit codes: 0 done, 1 a check said no, 2 wrong usage, 3 unreadable or corrupt input,\n"
         "4 unsupported, 5 I/O or disk full, 6 device or memory, 130 canceled\n";
}

bool looks_like_input(const std::string& word) {
  std::error_code ignored;
  return std::filesystem::exists(parse_run_path(word).path, ignored) ||
         word.find('/') != std::string::npos;
}

int dispatch(std::vector<std::string> args, Console& console) {
  while (!args.empty() && (args.front() == "-q" || args.front() == "-v")) {
    console.verbosity = args.front() == "-q" ? Verbosity::quiet : Verbosity::verbose;
    args.erase(args.begin());
  }
  if (args.empty() || args.front() == "--help" || args.front() == "-h") {
    print_overview(console.out);
    return kExitDone;
  }
  if (args.front() == "--version") {
    console.out << "sinkscope " << SINKSCOPE_VERSION << '\n';
    return kExitDone;
  }
  const std::string word = args.front();
  for (const Verb& verb : verbs())
    if (word == verb.name) return verb.run({args.begin() + 1, args.end()}, console);
  if (word.starts_with('-') || !looks_like_input(word))
    throw Error(ErrorKind::invalid_argument,
                fmt::format("'{}' is neither a verb nor a file; verbs: {}", word, verb_names()));
  const auto request = window_request(args);  // always, where it is the only word
  if (!request)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("'{}' after '{}': expected a verb first; verbs: {}", args[1], word,
                            verb_names()));
  return run_look(word, request->arch_file, console);
}

}  // namespace

int run_cli(const std::vector<std::string>& args, std::istream& in, std::ostream& out,
            std::ostream& err) {
  TerminalText escaped(*out.rdbuf());
  std::ostream text(&escaped);
  Console console{in, text, err};
  console.bytes = &out;
  const char* terminal = std::getenv("TERM");
  const bool is_dumb = terminal == nullptr || std::string(terminal) == "dumb";
  console.err_is_terminal = &err == &std::cerr && !is_dumb && isatty(STDERR_FILENO) != 0;
  const char* no_color = std::getenv("NO_COLOR");
  console.color = console.err_is_terminal && (no_color == nullptr || *no_color == '\0');
  int code = kExitDone;
  const std::optional<Failure> failure = failure_of([&] {
    code = dispatch(args, console);
    text.flush();
    if (!text || !out) throw Error(ErrorKind::io, "standard output: cannot write (disk full?)");
  });
  if (!failure) return code;
  console.err << "sinkscope: " << one_line(failure->message) << std::endl;
  return failure->code;
}

}  // namespace sinkscope
