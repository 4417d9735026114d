// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/sink_report.h"

namespace sinkscope {

// What each number of the report means, by the name it has in the JSON: formula, positions,
// thresholds, source. In reading order.
std::vector<std::pair<std::string, std::string>> sink_conventions(const SinkReport& report);

// One line each, as the findings and the text report quote them.
std::string sink_token_criterion(const SinkOptions& options);
std::string massive_criterion(const SinkOptions& options, MassiveMode mode);
std::string residual_sink_criterion(const SinkOptions& options);

// "all positions", "the first token", "all positions but the first", "tokens with ids 5 to 127".
std::string describe_positions(const PositionFilter& at);

}  // namespace sinkscope
