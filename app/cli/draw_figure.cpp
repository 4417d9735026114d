// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/draw_figure.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "app/cli/figure_inputs.h"
#include "app/cli/input_files.h"
#include "app/cli/output_file.h"
#include "app/cli/render_figure.h"
#include "core/error.h"
#include "core/figure/make_figure.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

// A whole set of figures may go into a folder that is not there yet.
void make_folder_of(const std::string& output) {
  const fs::path folder = fs::path(output).parent_path();
  std::error_code failure;
  if (folder.empty() || fs::exists(folder, failure)) return;
  fs::create_directories(folder, failure);
  if (failure)
    throw Error(ErrorKind::io,
                fmt::format("{}: cannot be made: {}", folder.string(), failure.message()));
}

}  // namespace

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
                 bool force, Console& console, const OpenOptions& options) {
  require_format(format);
  require_apart(output, {request.inputs.begin(), request.inputs.end()});
  if (output != "-") make_folder_of(output);
  OutputFile file(output, force, format == "csv" ? console.out : console.data());
  const OpenedInputs inputs = open_figure_inputs(request, console, options);
  const Figure figure = make_figure(request, inputs.inputs);
  file.stream() << (format == "csv" ? figure_csv(figure) : render_figure(request, figure, format));
  file.close();
}

}  // namespace sinkscope
