// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

namespace sinkscope {

// To be asked before work begins: may a file be made at `path`, by way of files with longer names
// beside it (NAME.part, …, NAME + `longest_suffix`), and renamed? A rename over a device or a pipe
// would replace it, with or without --force.
// Throws Error{invalid_argument} for an empty name, a folder, anything that is no regular file and
// no link to one (there or at NAME.part), a name too long for a file system with its suffix, and
// one that our unfinished files have (NAME.part, NAME.part.state, NAME.part.redo, …);
// Error{io} when `path` cannot be looked at.
void require_output_path(const std::string& path, const std::string& longest_suffix = ".part");

// The same of a capture, which cannot go down a pipe: "-" is refused as well.
void require_capture_path(const std::string& path);

// Whether something has that name already, a link that leads nowhere, too: a rename replaces it.
bool is_taken(const std::string& path);

// Throws Error{invalid_argument} when `output`, or NAME.part, as which it is made, is one of these
// files under whatever name: links are followed. Inputs that are not there are no matter.
void require_not_input(const std::string& output, const std::vector<std::string>& inputs);

// Throws Error{io} naming the folder of `path` that is not there, or is no folder.
void require_folder_of(const std::string& path);

// What a capture's files are named at most: NAME.h5.part.state.before.
inline constexpr const char* kCaptureSuffix = ".part.state.before";

}  // namespace sinkscope
