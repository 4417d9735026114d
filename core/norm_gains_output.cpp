// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/json_numbers.h"
#include "core/norm_gains.h"
#include "core/number_text.h"
#include "core/site_name.h"

namespace sinkscope {
namespace {

using Json = nlohmann::ordered_json;

Json gain_json(const GainAt& g, JsonNumbers& numbers) {
  return {{"layer", g.layer},
          {"dim", g.dim},
          {"value", numbers.number(g.value)},
          {"raw", numbers.number(g.raw)}};
}

Json gains_json(const std::vector<GainAt>& gains, JsonNumbers& numbers) {
  Json out = Json::array();
  for (const GainAt& g : gains) out.push_back(gain_json(g, numbers));
  return out;
}

Json role_json(const NormRoleGains& role, JsonNumbers& numbers) {
  Json layers = Json::array(), widths = Json::array(), median = Json::array(), min = Json::array(),
       max = Json::array();
  std::int64_t n_non_finite = 0, n_zero = 0;
  for (const NormExtremes& n : role.norms) {
    layers.push_back(n.layer);
    widths.push_back(n.width);
    median.push_back(numbers.number(n.median));
    min.push_back(gain_json(n.min, numbers));
    max.push_back(gain_json(n.max, numbers));
    n_non_finite += n.n_non_finite;
    n_zero += n.n_zero;
  }
  return {{"role", role.role},
          {"kind", role.kind},
          {"eps", numbers.number(role.eps)},
          {"offset", numbers.number(role.offset)},
          {"width", role.width},
          {"layers", std::move(layers)},
          {"widths", std::move(widths)},
          {"median", std::move(median)},
          {"min", std::move(min)},
          {"max", std::move(max)},
          {"starred", gains_json(role.starred, numbers)},
          {"starred_from_median", gains_json(role.starred_from_median, numbers)},
          {"zero_gains", n_zero},
          {"non_finite_gains", n_non_finite}};
}

// "16 gains", or "10 or 16 gains" where layers differ.
std::string widths_text(const NormRoleGains& role) {
  std::set<int> widths;
  for (const NormExtremes& n : role.norms) widths.insert(n.width);
  if (widths.size() < 2) return fmt::format("{} gains", role.width);
  return fmt::format("{} gains", fmt::join(widths, " or "));
}

std::string starred_line(const char* title, const std::vector<GainAt>& gains, int n_layers) {
  std::string out = fmt::format("  {}\n", title);
  for (const GainAt& g : gains) {
    out += fmt::format("    ★ dim {:<5} {}  {}{}", g.dim, pad_left(readable(g.value), 10),
                       g.layer < 0 ? "" : "in ", layer_label(g.layer, n_layers));
    if (g.raw != g.value) out += fmt::format("   (stored as {})", readable(g.raw));
    out += '\n';
  }
  if (gains.empty()) out += "    none\n";
  return out;
}

}  // namespace

Json norm_gains_json(const std::vector<NormRoleGains>& roles) {
  JsonNumbers numbers;
  Json norms = Json::array();
  for (const NormRoleGains& role : roles) norms.push_back(role_json(role, numbers));
  return {
      {"schema", "sinkscope.norms/1"},
      {"conventions",
       {{"gain", "effective: stored weight + offset; raw is the stored weight"},
        {"layers", "0-based block indices; -1 = after the last block"},
        {"width", "gains of the widest norm of a role; widths: of each layer's"},
        {"median", "element (n-1)//2 of the sorted gains of one norm"},
        {"starred",
         "dimensions with the largest |ln|gain|| over the layers: deviation from 1 on a "
         "log scale, each with its most deviating layer"},
        {"starred_from_median", "the same for gain / median of its layer"},
        {"non_finite_gains", "gains in the file that are NaN or infinite; no number here has them"},
        {"non_finite_values", "numbers of this report that are null: NaN or infinite"}}},
      {"norms", std::move(norms)},
      {"non_finite_values", numbers.n_non_finite()}};
}

std::string norm_gains_text(const std::vector<NormRoleGains>& roles, int n_layers) {
  std::string out;
  for (const NormRoleGains& role : roles) {
    if (!out.empty()) out += '\n';
    const std::string eps =
        std::isnan(role.eps) ? "eps not known" : fmt::format("eps {:g}", role.eps);
    const std::string offset = std::isnan(role.offset) ? ", offset not known"
                               : role.offset == 0
                                   ? ""
                                   : fmt::format(", stored gain + {:g}", role.offset);
    const std::string widths = widths_text(role);
    const bool is_ragged = widths.find(" or ") != std::string::npos;
    out += fmt::format("{}  {} norm, {}{}, {}\n", role.role, role.kind, eps, offset, widths);
    out += starred_line("starred: farthest from 1 on a log scale", role.starred, n_layers);
    if (role.norms.size() > 1) {
      out += starred_line("farthest from the median of their layer", role.starred_from_median,
                          n_layers);
    }
    out += fmt::format("  {}{}{}{}\n", pad_right("", 22), pad_left("median", 10),
                       pad_left("min (dim)", 20), pad_left("max (dim)", 20));
    for (const NormExtremes& n : role.norms) {
      const auto at = [](const GainAt& g) {
        return fmt::format("{} ({})", readable(g.value), g.dim);
      };
      out += fmt::format(
          "  {}{}{}{}{}{}\n", pad_right(layer_label(n.layer, n_layers), 22),
          pad_left(readable(n.median), 10), pad_left(at(n.min), 20), pad_left(at(n.max), 20),
          is_ragged ? fmt::format("   {} gains", n.width) : "",
          n.n_non_finite == 0 ? "" : fmt::format("   {} NaN or infinite", n.n_non_finite));
    }
  }
  return out;
}

std::string norm_gains_csv(const std::vector<NormRoleGains>& roles) {
  std::string out = "role,layer,median,min,min_dim,min_raw,max,max_dim,max_raw\n";
  for (const NormRoleGains& role : roles) {
    for (const NormExtremes& n : role.norms) {
      out += fmt::format("{},{},{},{},{},{},{},{},{}\n", csv_field(role.role), n.layer,
                         csv_number(n.median), csv_number(n.min.value), n.min.dim,
                         csv_number(n.min.raw), csv_number(n.max.value), n.max.dim,
                         csv_number(n.max.raw));
    }
  }
  return out;
}

}  // namespace sinkscope
