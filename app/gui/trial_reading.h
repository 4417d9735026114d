// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <string>

namespace sinkscope {

// Lets another process read the ends of every array of a capture's first run and what the window
// reads of all runs when it opens one: what a stranger's file does to HDF5 happens there. `program`
// is the executable of this program. Returns when that process is done; Error{corrupt} when it was
// killed by a signal or did not end within 20 s. What it merely could not read is no error here:
// the window says that itself where the array is wanted. Waits: not for the window's thread.
void read_in_another_process(const QString& program, const std::string& path);

}  // namespace sinkscope
