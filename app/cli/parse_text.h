// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sinkscope {

// Flag values as people write them. Every function throws Error{invalid_argument} naming the flag,
// what it expects and what it found. `flag` is only for that message ("--layers").

// "12" within [low, high].
std::int64_t parse_integer(const std::string& flag, const std::string& text, std::int64_t low,
                           std::int64_t high);

// "0.3", "1e-6"; finite, within [low, high].
double parse_number(const std::string& flag, const std::string& text, double low, double high);

// "4GiB", "512MiB", "1.5G", "1000", "100MB": binary units KiB MiB GiB TiB and K M G T, decimal
// kB MB GB TB, none = bytes. At least 1 byte.
std::int64_t parse_bytes(const std::string& flag, const std::string& text);

// "0-3,7" -> {0,1,2,3,7}: ascending, each once. "all" -> {}. At most 2^24 entries.
std::vector<int> parse_ranges(const std::string& flag, const std::string& text);

// The shortest text that parse_ranges turns into the same list; "all" for an empty one.
std::string format_ranges(const std::vector<int>& values);

// Token ids separated by commas or white space, each >= 0.
std::vector<int> parse_ids(const std::string& flag, const std::string& text);

// Cut at `separator`; empty parts are kept. "" -> {""}.
std::vector<std::string> split_at(const std::string& text, char separator);

// A path with an optional run behind it: "RUN.h5::run3". Without "::" the run is empty; where a
// file of the whole name exists, it is the path.
struct RunPath {
  std::string path, run;
};
RunPath parse_run_path(const std::string& text);

}  // namespace sinkscope
