// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <string>

namespace sinkscope {

// "auto", "cpu", "cuda", "cuda:1" -> a device that is there. libtorch_cuda is loaded here and only
// when a CUDA device is asked for, or when "auto" sees an NVIDIA driver.
// Error{device} in one sentence when it is not there, Error{invalid_argument} for another spelling.
at::Device resolve_device(const std::string& request);

}  // namespace sinkscope
