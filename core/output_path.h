// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace sinkscope {

// To be asked before work begins: may a file be made at `path`, by way of files with longer names
// beside it (NAME.part, …, NAME + `longest_suffix`), and renamed? A rename over a device or a pipe
// would replace it, with or without --force.
// Throws Error{invalid_argument} for an empty name, a folder, anything that is no regular file and
// no link to one (there or at NAME.part), and a name too long for a file system with its suffix;
// Error{io} when `path` cannot be looked at.
void require_output_path(const std::string& path, const std::string& longest_suffix = ".part");

// Throws Error{io} naming the folder of `path` that is not there, or is no folder.
void require_folder_of(const std::string& path);

// What a capture's files are named at most: NAME.h5.part.state.before.
inline constexpr const char* kCaptureSuffix = ".part.state.before";

}  // namespace sinkscope
