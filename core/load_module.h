// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>

namespace sinkscope {

// Parts of the program that bring large libraries along (LibTorch, Qt) are modules, opened by the
// first who needs them. Looks for `file` beside the executable, in ../lib and ../lib/sinkscope from
// it, then at `built` (where the build left it; "" = nowhere); a module that is open already is
// opened once more, at no cost, and none is ever closed. Returns the address of its C function
// `symbol`. Throws Error{unsupported} with the loader's reason.
void* module_entry(const std::string& file, const std::filesystem::path& built, const char* symbol);

// LibTorch's threads that wait for each other would burn a core for milliseconds before they sleep,
// which another program or the writer thread may want: going to sleep at once is as fast on a quiet
// machine and twice as fast on a busy one. Their library, which Qt brings along too, reads that
// from the environment when it is loaded. Sets GOMP_SPINCOUNT where nobody has; module_entry() does
// so before it opens anything.
void make_threads_impatient();

}  // namespace sinkscope
