// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/attention_products.h"

#include <algorithm>

#include "capture/model/attention_products_isa.h"
#include "capture/model/isa.h"

namespace sinkscope {

std::int64_t panel_floats(int n_keys, int width) {
  return std::int64_t{(n_keys + kPanelKeys - 1) / kPanelKeys} * kPanelKeys * width;
}

void pack_keys(const float* keys, std::int64_t stride, int n_keys, int width, float* panels) {
  for (int first = 0; first < n_keys; first += kPanelKeys) {
    const int n = std::min(kPanelKeys, n_keys - first);
    for (int i = 0; i < width; ++i, panels += kPanelKeys)
      for (int key = 0; key < kPanelKeys; ++key)
        panels[key] = key < n ? keys[(first + key) * stride + i] : 0.0f;
  }
}

void score_rows(const float* q, std::int64_t q_stride, int n_rows, int width, float scale,
                const float* panels, int n_keys, float* scores, std::int64_t stride) {
  SINKSCOPE_BY_ISA(score_rows, q, q_stride, n_rows, width, scale, panels, n_keys, scores, stride);
}

void mix_values(const float* p, std::int64_t p_stride, int n_rows, int n_keys, const float* v,
                std::int64_t v_stride, int width, float* out, std::int64_t out_stride) {
  SINKSCOPE_BY_ISA(mix_values, p, p_stride, n_rows, n_keys, v, v_stride, width, out, out_stride);
}

}  // namespace sinkscope
