// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "app/cli/console.h"
#include "app/cli/size_table.h"
#include "capture/engine.h"

namespace sinkscope {

enum class PlanFormat { text, json, csv };

// What --dry-run says: runs and tokens, the size table, memory, and about how long it will take.
// JSON and CSV as `capture --help` documents them; CSV is the table alone.
void print_plan(const ModelFiles& model, const CaptureRequest& request,
                const std::vector<SizeRow>& table, PlanFormat format, Console& console);

// Seconds that the recording will take on this machine's CPU, about.
double expected_seconds(const ModelFiles& model, const CaptureRequest& request);

// A time that is an estimate: "0.8 s", "42 s", "12 min", "3.4 h".
std::string format_about(double seconds);

// One warning where the disk of `path` has not room for so many bytes.
void warn_of_little_space(const std::string& path, std::int64_t needed, const Console& console);

}  // namespace sinkscope
