// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "capture/engine.h"

namespace sinkscope {

// The engine itself, for the module's entry point and for tests that link its parts directly.
std::unique_ptr<Engine> make_engine();

}  // namespace sinkscope
