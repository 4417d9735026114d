// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace sinkscope {

enum class Isa { base, avx2, avx512 };

// The widest instruction set that this build has and this processor runs.
inline Isa best_isa() {
#if defined(SINKSCOPE_X86_KERNELS)
  static const Isa best = [] {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
      return Isa::avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
    return Isa::base;
  }();
  return best;
#else
  return Isa::base;
#endif
}

}  // namespace sinkscope

#if defined(SINKSCOPE_X86_KERNELS)
#define SINKSCOPE_BY_ISA(function, ...)         \
  switch (best_isa()) {                         \
    case Isa::avx512:                           \
      return isa_avx512::function(__VA_ARGS__); \
    case Isa::avx2:                             \
      return isa_avx2::function(__VA_ARGS__);   \
    case Isa::base:                             \
      break;                                    \
  }                                             \
  return isa_base::function(__VA_ARGS__)
#else
#define SINKSCOPE_BY_ISA(function, ...) return isa_base::function(__VA_ARGS__)
#endif
