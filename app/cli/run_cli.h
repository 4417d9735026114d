// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace sinkscope {

// Exit codes of the program (besides what a verb returns for "a check said no": 1).
inline constexpr int kExitDone = 0;
inline constexpr int kExitCheck = 1;  // a check said no
inline constexpr int kExitUsage = 2;
inline constexpr int kExitCorrupt = 3;
inline constexpr int kExitUnsupported = 4;
inline constexpr int kExitIo = 5;
inline constexpr int kExitDevice = 6;
inline constexpr int kExitCanceled = 130;

// The whole command line: `args` without the program's name. Results go to `out`; notes, progress
// and the one line that explains a failure go to `err`. Returns the exit code; throws nothing.
int run_cli(const std::vector<std::string>& args, std::istream& in, std::ostream& out,
            std::ostream& err);

}  // namespace sinkscope
