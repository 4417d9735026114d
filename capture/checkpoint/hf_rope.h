// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "capture/checkpoint/hf_config.h"

namespace sinkscope {

// Rotary positions out of config.json (`config`): rope_parameters (transformers 5), else rope_theta
// and rope_scaling (4), where "type" is the old spelling of "rope_type". Fills config's spec.rope
// and partial_rotary; a kind that is not known, or one without its factor, is an obstacle.
// rotary_dim stays 0: it follows from head_dim.
void parse_hf_rope(const nlohmann::json& config, const std::string& where, HfConfig& out);

}  // namespace sinkscope
