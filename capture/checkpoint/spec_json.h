// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "capture/checkpoint/arch_spec.h"

namespace sinkscope {

// Every field of a spec under its own name; spec_fields.h lists them once for both directions.
nlohmann::ordered_json spec_to_json(const ArchSpec& spec);

// What spec_to_json wrote, or a part of it: absent fields keep their defaults. `where` names the
// file. Throws Error{corrupt} for a field that no spec has, of another type, or out of range.
ArchSpec spec_from_json(const nlohmann::json& json, const std::string& where);

}  // namespace sinkscope
