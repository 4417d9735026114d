// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <stop_token>
#include <utility>

#include "capture/model/forward.h"

namespace sinkscope {

// Runs attention and keeps nothing.
class SilentListener final : public TapListener {
 public:
  SilentListener(std::stop_token stop, bool is_cpu) : stop_(std::move(stop)), is_cpu_(is_cpu) {}
  void on_tap(Site /*site*/, int /*layer*/, const at::Tensor& /*value*/) override {}
  bool wants(Site /*site*/, int /*layer*/) const override { return false; }
  std::stop_token stop() const override { return stop_; }
  at::Tensor on_attention(int layer, const AttentionCall& call) override;

 private:
  std::stop_token stop_;
  bool is_cpu_;
};

}  // namespace sinkscope
