// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <cstring>

// Sixteen float lanes as a GCC/Clang vector: the compiler maps them to whatever the instruction set
// has, and the order of every sum is the same everywhere. Included only by files that are compiled
// once per instruction set, inside namespace SINKSCOPE_ISA.

namespace sinkscope::SINKSCOPE_ISA {

inline constexpr int kLanes = 16;
// Lanes are summed in float within a run of so many elements and in double beyond, so that long
// rows lose nothing.
inline constexpr int kRun = 256;
using F16 = float __attribute__((vector_size(64)));
using I16 = std::int32_t __attribute__((vector_size(64)));
using D8 = double __attribute__((vector_size(64)));
using F8 = float __attribute__((vector_size(32)));

inline F16 load(const float* p) {
  F16 v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store(float* p, F16 v) { std::memcpy(p, &v, sizeof v); }
inline F16 splat(float x) { return F16{} + x; }
inline F16 lane_index() { return F16{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}; }
inline F16 max(F16 a, F16 b) { return a > b ? a : b; }
inline F16 min(F16 a, F16 b) { return a < b ? a : b; }
inline F16 abs(F16 v) {
  I16 bits;
  std::memcpy(&bits, &v, sizeof bits);
  bits &= 0x7fffffff;
  std::memcpy(&v, &bits, sizeof v);
  return v;
}
// The first n lanes of v, `rest` in the others.
inline F16 keep(F16 v, int n, float rest) {
  const F16 r = splat(rest);
  return lane_index() < splat(static_cast<float>(n)) ? v : r;
}
inline F16 load_part(const float* p, int n, float rest) {
  float part[kLanes];
  for (int i = 0; i < kLanes; ++i) part[i] = i < n ? p[i] : rest;
  return load(part);
}
inline float sum(F16 v) {
  float a[kLanes];
  store(a, v);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) a[i] += a[i + half];
  return a[0];
}
inline float max_lane(F16 v) {
  float a[kLanes];
  store(a, v);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) a[i] = a[i] > a[i + half] ? a[i] : a[i + half];
  return a[0];
}

inline D8 load_double(const float* p) {
  F8 v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_convertvector(v, D8);
}
inline D8 load_double(const double* p) {
  D8 v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store(double* p, D8 v) { std::memcpy(p, &v, sizeof v); }

// e^x for x ≤ 0 (largest error 1 ulp of float against libm on [-87, 0]); 0 below -87.3.
// Range reduction by ln 2 in two parts, then a degree-6 polynomial (Cephes' expf coefficients).
inline F16 exp_nonpositive(F16 x) {
  const F16 floor_at = splat(-87.3f);
  const F16 clamped = x < floor_at ? floor_at : x;
  const F16 magic = splat(12582912.0f);  // 1.5 * 2^23: adding it rounds to the nearest integer
  const F16 shifted = clamped * 1.44269504088896341f + magic;
  const F16 n = shifted - magic;
  F16 r = clamped - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  F16 p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  I16 bits;
  std::memcpy(&bits, &p, sizeof bits);
  bits += __builtin_convertvector(n, I16) << 23;
  std::memcpy(&p, &bits, sizeof p);
  return x < floor_at ? F16{} : p;
}

}  // namespace sinkscope::SINKSCOPE_ISA
