// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/run/device.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "core/error.h"

namespace sinkscope {
namespace {

bool driver_is_there() { return std::filesystem::exists("/dev/nvidiactl"); }

// Number of CUDA devices; loads LibTorch's CUDA half on first use. `reason` says why there is none.
int cuda_devices(std::string& reason) {
  static const std::string load_error = [] {
    if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) != nullptr) return std::string();
    return std::string(dlerror());
  }();
  if (!load_error.empty()) {
    reason = "LibTorch's CUDA library cannot be loaded (" + load_error + ")";
    return 0;
  }
  if (!at::hasCUDA()) {
    reason = "no usable NVIDIA GPU or driver was found";
    return 0;
  }
  const int n = at::detail::getCUDAHooks().deviceCount();
  if (n == 0) reason = "no NVIDIA GPU was found";
  return n;
}

at::Device cuda_device(const std::string& request) {
  int index = 0;
  if (request.size() > 4) {
    char* end = nullptr;
    index = static_cast<int>(std::strtol(request.c_str() + 5, &end, 10));
    if (request[4] != ':' || end == request.c_str() + 5 || *end != '\0' || index < 0)
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("device '{}': expected auto, cpu, cuda or cuda:N", request));
  }
  std::string reason;
  if (!driver_is_there()) {
    reason = "no NVIDIA driver on this machine (/dev/nvidiactl is missing)";
  } else if (const int n = cuda_devices(reason); n > 0) {
    if (index < n) return {at::kCUDA, static_cast<at::DeviceIndex>(index)};
    reason = fmt::format("this machine has {} CUDA device{}", n, n == 1 ? "" : "s");
  }
  throw Error(ErrorKind::device, fmt::format("device {}: {}", request, reason));
}

}  // namespace

at::Device resolve_device(const std::string& request) {
  if (request == "cpu") return at::kCPU;
  if (request == "auto") {
    std::string reason;
    if (driver_is_there() && cuda_devices(reason) > 0) return {at::kCUDA, 0};
    return at::kCPU;
  }
  if (request.rfind("cuda", 0) == 0) return cuda_device(request);
  throw Error(ErrorKind::invalid_argument,
              fmt::format("device '{}': expected auto, cpu, cuda or cuda:N", request));
}

}  // namespace sinkscope
