// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <deque>
#include <ostream>

#include "app/cli/command_line.h"
#include "app/cli/draw_figure.h"
#include "app/cli/output_file.h"
#include "app/cli/run_cli.h"
#include "app/cli/verbs.h"
#include "core/error.h"
#include "core/figure/figure_kinds.h"
#include "core/figure/figure_request.h"

namespace sinkscope {
namespace {

const char* const kHelp =
    "INPUT is a capture (RUN.h5, RUN.h5::run3) or, where only weights are drawn, a model; one "
    "panel\n"
    "per input. The suffix of -o picks the format: pdf, svg, png, or csv with the data behind the\n"
    "picture; -o - writes PDF to standard output unless --format says otherwise. The same inputs\n"
    "and options give the same bytes; SOURCE_DATE_EPOCH sets the date inside a PDF.\n\n"
    "examples: sinkscope figure attention-mean RUN.h5 -o map.pdf\n"
    "          sinkscope figure --preset 2601.22966/fig1 A.h5 B.h5 -o fig1.pdf\n"
    "          sinkscope figure residual-sorted A.h5 B.h5 --width text --range 0,50 -o r.svg";

void print_list(std::ostream& out) {
  for (const FigureKind& kind : figure_kinds())
    out << fmt::format("{:<16} {}\n{:<16} needs: {}\n", kind.name, kind.shows, "", kind.needs);
  out << '\n';
  for (const FigurePreset& preset : figure_presets())
    out << fmt::format("--preset {:<16} {}\n{:<25} needs: {}\n", preset.name, preset.shows, "",
                       preset.needs);
}

}  // namespace

int run_figure(const std::vector<std::string>& args, Console& console) {
  std::vector<std::string> positional;
  std::optional<std::string> output, format_flag, arch;
  std::vector<std::optional<std::string>> values(figure_options().size());
  std::deque<bool> switches(figure_options().size(), false);
  bool list = false, force = false;
  CommandLine command("figure", "Draws a figure of captures or models for a paper.");
  command.rest("KIND INPUT…", positional, "what to draw (--list), of which captures or models");
  command.value("-o,--output", output, "F.pdf", "pdf, svg, png or csv; - is standard output");
  command.value("--format", format_flag, "pdf|svg|png|csv", "whatever the suffix of -o says");
  command.flag("--force", force, "replace an existing file");
  command.flag("--list", list, "print the kinds and presets, what they show and need");
  command.value("--arch", arch, "F.json",
                "the files that describe models (info --arch-json): one, or A.json,B.json for as "
                "many inputs");
  command.group("What and how");
  for (std::size_t i = 0; i < values.size(); ++i) {
    const FigureOption& option = figure_options()[i];
    if (*option.placeholder == '\0') {
      command.flag(option.flag, switches[i], option.help);
    } else {
      command.value(option.flag, values[i], option.placeholder, option.help);
    }
  }
  command.footer(kHelp);
  if (!command.parse(args, console)) return kExitDone;
  if (list) {
    print_list(console.out);
    return kExitDone;
  }
  FigureRequest request;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (switches[i]) figure_options()[i].set(request, "");
    if (values[i]) figure_options()[i].set(request, *values[i]);
  }
  set_figure_words(request, positional);
  if (arch) set_archs(request, *arch);
  check_request(request);
  if (!output)
    throw Error(ErrorKind::invalid_argument,
                "figure: expected -o F.pdf (or .svg, .png, .csv), found no output");
  if (*output != "-") require_new_file(*output, force);
  const std::string format = figure_format(*output, format_flag);
  draw_figure(request, *output, format, force, console);
  return kExitDone;
}

}  // namespace sinkscope
