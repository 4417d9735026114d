// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/arch_spec.h"

namespace sinkscope {

const char* to_string(Role role) {
  switch (role) {
    case Role::embed:
      return "embed";
    case Role::unembed:
      return "unembed";
    case Role::ln_final:
      return "ln_final";
    case Role::rope_divisors:
      return "rope_divisors";
    case Role::ln1:
      return "ln1";
    case Role::q:
      return "q";
    case Role::k:
      return "k";
    case Role::v:
      return "v";
    case Role::o:
      return "o";
    case Role::q_bias:
      return "q_bias";
    case Role::k_bias:
      return "k_bias";
    case Role::v_bias:
      return "v_bias";
    case Role::o_bias:
      return "o_bias";
    case Role::q_norm:
      return "q_norm";
    case Role::k_norm:
      return "k_norm";
    case Role::ln1_post:
      return "ln1_post";
    case Role::ln2:
      return "ln2";
    case Role::gate:
      return "gate";
    case Role::up:
      return "up";
    case Role::down:
      return "down";
    case Role::gate_bias:
      return "gate_bias";
    case Role::up_bias:
      return "up_bias";
    case Role::down_bias:
      return "down_bias";
    case Role::ln2_post:
      return "ln2_post";
    case Role::ln1_pre:
      return "ln1_pre";
    case Role::ln2_pre:
      return "ln2_pre";
    case Role::ln_final_pre:
      return "ln_final_pre";
  }
  return "?";
}

std::string to_string(RopeScaling s) {
  switch (s) {
    case RopeScaling::none:
      return "none";
    case RopeScaling::linear:
      return "linear";
    case RopeScaling::dynamic:
      return "dynamic";
    case RopeScaling::llama3:
      return "llama3";
    case RopeScaling::yarn:
      return "yarn";
  }
  return "?";
}

}  // namespace sinkscope
