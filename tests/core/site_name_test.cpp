// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/site_name.h"

#include <gtest/gtest.h>

namespace sinkscope {
namespace {

TEST(SiteName, SplitsTheBlockFromTheHook) {
  EXPECT_EQ(SiteName::parse("blocks.11.hook_resid_mid"), (SiteName{"hook_resid_mid", 11}));
  EXPECT_EQ(SiteName::parse("blocks.0.attn.hook_q_norm"), (SiteName{"attn.hook_q_norm", 0}));
  EXPECT_EQ(SiteName::parse("ln_final.hook_out"), (SiteName{"ln_final.hook_out", -1}));
  EXPECT_EQ(SiteName::parse("blocks.x.hook_z"), (SiteName{"blocks.x.hook_z", -1}));
  for (const char* text : {"blocks.11.hook_resid_mid", "ln_final.hook_out"}) {
    EXPECT_EQ(SiteName::parse(text).text(), text);
  }
}

TEST(FieldCases, FC48_LayersAreBlockIndicesAndSaySo) {
  EXPECT_EQ(layer_label(2, 28), "blocks.2 (3rd of 28)");
  EXPECT_EQ(layer_label(0, 28), "blocks.0 (1st of 28)");
  EXPECT_EQ(layer_label(1, 28), "blocks.1 (2nd of 28)");
  EXPECT_EQ(layer_label(10, 28), "blocks.10 (11th of 28)");
  EXPECT_EQ(layer_label(21, 28), "blocks.21 (22nd of 28)");
  EXPECT_EQ(layer_label(111, 126), "blocks.111 (112th of 126)");
  EXPECT_EQ(layer_label(-1, 28), "after the last block");
}

}  // namespace
}  // namespace sinkscope
