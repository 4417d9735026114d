// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figure/made_file.h"

#include "core/figure/figure_python.h"

namespace sinkscope {
namespace {

// Names in place of paths, before "::run0" as well; the commands of those that occur.
std::vector<std::string> use_names(FigureRequest& request, const std::vector<MadeFile>& made) {
  std::vector<std::string> commands;
  for (const MadeFile& file : made) {
    bool occurs = false;
    for (std::string& input : request.inputs) {
      if (input != file.path && !input.starts_with(file.path + "::")) continue;
      input.replace(0, file.path.size(), file.name);
      occurs = true;
    }
    if (occurs) commands.push_back(file.command);
  }
  return commands;
}

}  // namespace

std::string lasting_command(const FigureRequest& request, const std::string& output,
                            const std::vector<MadeFile>& made) {
  FigureRequest named = request;
  std::string text;
  for (const std::string& command : use_names(named, made)) text += command + " && ";
  return text + figure_command(named, output);
}

std::string lasting_python(const FigureRequest& request, const std::vector<MadeFile>& made) {
  FigureRequest named = request;
  std::string text;
  for (const std::string& command : use_names(named, made)) text += "# " + command + '\n';
  return text + figure_python(named);
}

}  // namespace sinkscope
