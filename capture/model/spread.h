// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>

namespace sinkscope {

// Calls `body` on ranges that together are [0, n), at most `grain` long, on LibTorch's threads. Who
// is free takes the next one: where a thread waits for a core that another program has, its share
// is not waited for. Which thread does what must not matter to the result.
void spread(std::int64_t n, std::int64_t grain,
            const std::function<void(std::int64_t begin, std::int64_t end)>& body);

}  // namespace sinkscope
