// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "capture/checkpoint/hf_config.h"

namespace sinkscope {

// Reads rope_theta and rope_scaling (transformers 4) or rope_parameters (5, also one kind for each
// layer type) into out.spec; kinds that are not known and impossible values become obstacles.
// Needs out.family and out.layer_types. `where` names the file in messages.
void parse_hf_rope(const nlohmann::json& config, const std::string& where, HfConfig& out);

}  // namespace sinkscope
