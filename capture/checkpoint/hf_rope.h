// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "capture/checkpoint/hf_config.h"
#include "capture/checkpoint/json_keys.h"

namespace sinkscope {

// Reads rope_theta and rope_scaling (transformers 4) or rope_parameters (5, also one kind for each
// layer type) into out.spec; kinds that are not known and impossible values become obstacles.
// Needs out.family and out.layer_types. `where` names the file in messages.
void parse_hf_rope(const nlohmann::json& config, const std::string& where, HfConfig& out);

// One kind of positions, from rope_scaling, rope_parameters or one part of it; `top` is the config.
// What `rope` holds already is for keys that are absent.
void read_rope(const JsonKeys& keys, const JsonKeys& top, RopeSpec& rope, HfConfig& out);

}  // namespace sinkscope
