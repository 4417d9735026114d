// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace sinkscope {

// For threads that work ahead of or behind the forward pass (reading weights, writing): the system
// runs the calling thread when the arithmetic leaves a core idle. A thread of a parallel region
// that has to wait for them would hold up all the others at the region's end.
void run_in_background();

}  // namespace sinkscope
