// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/figure/figure_request.h"

namespace sinkscope {

// A file that goes with the window that made it, and how it is made again.
struct MadeFile {
  std::string path;     // where it is, as an input of a figure names it
  std::string name;     // what it is called once it is made again: "what-if.h5"
  std::string command;  // for a shell, in the folder where the figure goes
  bool operator==(const MadeFile&) const = default;
};

// figure_command and figure_python without the path of a file that goes: the file by its name, and
// the command that makes it in front of the command (joined by &&), above the script as a comment.
std::string lasting_command(const FigureRequest& request, const std::string& output,
                            const std::vector<MadeFile>& made);
std::string lasting_python(const FigureRequest& request, const std::vector<MadeFile>& made);

}  // namespace sinkscope
