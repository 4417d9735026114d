// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/draw_figure.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "app/cli/figure_inputs.h"
#include "app/cli/input_files.h"
#include "app/cli/output_file.h"
#include "app/cli/render_figure.h"
#include "core/error.h"
#include "core/figure/make_figure.h"

namespace sinkscope {
std::string figure_format(const std::string& output, const std::optional<std::string>& flag) {
  std::string format = flag ? *flag : "pdf";
  if (!flag && output != "-") {
    const std::size_t dot = output.rfind('.');
    format = dot == std::string::npos ? "" : output.substr(dot + 1);
  }
  for (const char* known : {"pdf", "svg", "png", "csv"})
    if (format == known) return format;
  throw Error(ErrorKind::invalid_argument,
              fmt::format("{}: expected pdf, svg, png or csv, found '{}'",
                          flag ? std::string("--format") : output, format));
}

void draw_figure(const FigureRequest& request, const std::string& output, const std::string& format,
                 bool force, Console& console) {
  require_format(format);
  std::vector<std::optional<std::string>> inputs_read(request.inputs.begin(), request.inputs.end());
  inputs_read.insert(inputs_read.end(), request.archs.begin(), request.archs.end());
  require_apart(output, inputs_read);
  if (output != "-") make_folder_of(output);
  OutputFile file(output, force, format == "csv" ? console.out : console.data());
  const OpenedInputs inputs = open_figure_inputs(request, console);
  const Figure figure = make_figure(request, inputs.inputs);
  file.stream() << (format == "csv" ? figure_csv(figure) : render_figure(request, figure, format));
  file.close();
}

}  // namespace sinkscope
