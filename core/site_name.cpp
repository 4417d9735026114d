// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/site_name.h"

#include <fmt/format.h>

#include <charconv>

namespace sinkscope {
namespace {

const char* ordinal_suffix(int n) {
  if (n % 100 >= 11 && n % 100 <= 13) return "th";
  switch (n % 10) {
    case 1:
      return "st";
    case 2:
      return "nd";
    case 3:
      return "rd";
    default:
      return "th";
  }
}

}  // namespace

SiteName SiteName::parse(const std::string& site) {
  static const std::string prefix = "blocks.";
  if (site.starts_with(prefix)) {
    int layer = -1;
    const char* begin = site.data() + prefix.size();
    const char* end = site.data() + site.size();
    const auto [stop, failure] = std::from_chars(begin, end, layer);
    if (failure == std::errc() && layer >= 0 && stop != end && *stop == '.') {
      return {std::string(stop + 1, end), layer};
    }
  }
  return {site, -1};
}

std::string SiteName::text() const {
  return layer < 0 ? hook : fmt::format("blocks.{}.{}", layer, hook);
}

std::string layer_label(int layer, int n_layers) {
  if (layer < 0) return "after the last block";
  return fmt::format("blocks.{} ({}{} of {})", layer, layer + 1, ordinal_suffix(layer + 1),
                     n_layers);
}

}  // namespace sinkscope
