// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sinkscope {

// A measured value for people: about four digits below 1,000, one decimal and grouped thousands
// above ("0.3124", "25,804.7", "1.05e-05", "NaN").
std::string readable(double value);

// A count, thousands grouped: "0", "20,981".
std::string count_text(std::int64_t n);

// "3", "3 and 7", "3, 7 and 9"; longer lists end in "and N more".
std::string readable_list(const std::vector<int>& values, int at_most = 5);

// The text in quotation marks, cut to `at_most` characters (not bytes); "" stays empty.
std::string quoted(const std::string& text, int at_most = 24);

// Left- or right-aligned to `width` characters, counting UTF-8 characters and not bytes.
std::string pad_right(const std::string& text, int width);
std::string pad_left(const std::string& text, int width);

// A CSV field: quoted when it holds a comma, a quotation mark or a line break.
std::string csv_field(const std::string& text);

// A CSV number: shortest text that reads back as the same double; empty for NaN, inf, -inf as such.
std::string csv_number(double value);

}  // namespace sinkscope
