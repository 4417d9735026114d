// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace sinkscope {

// A tap's place: the hook without its block, and the block index (0-based; −1 = after the last).
//   "blocks.11.hook_resid_mid" = {"hook_resid_mid", 11} · "ln_final.hook_out" = {…, −1}
struct SiteName {
  std::string hook;
  int layer = -1;

  static SiteName parse(const std::string& site);
  std::string text() const;
  bool operator==(const SiteName&) const = default;
};

// "blocks.2 (3rd of 28)": the one way in which a block is shown to people.
std::string layer_label(int layer, int n_layers);

}  // namespace sinkscope
