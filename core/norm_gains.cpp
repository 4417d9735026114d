// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/norm_gains.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "core/error.h"
#include "core/residual_metrics.h"

namespace sinkscope {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void require_shape(const NormFacts& n) {
  const std::size_t expected = n.layers.size() * static_cast<std::size_t>(n.width);
  for (const auto* values : {&n.gain, &n.gain_raw}) {
    if (values->size() == expected) continue;
    throw Error(ErrorKind::invalid_argument,
                fmt::format("norm {}: expected {} x {} gains, found {}", n.role, n.layers.size(),
                            n.width, values->size()));
  }
}

// Gains of one norm [width].
std::span<const float> row_of(const std::vector<float>& gains, std::size_t row, int width) {
  const auto w = static_cast<std::size_t>(width);
  return {gains.data() + row * w, w};
}

// Without the padding of a norm of narrower heads than the widest block's: NaN behind its last
// number. Other roles are equally wide in all blocks.
std::span<const float> own_row(const NormFacts& facts, std::size_t row) {
  const auto whole = row_of(facts.gain, row, facts.width);
  std::size_t n = whole.size();
  const bool is_of_heads = facts.role == "q_norm" || facts.role == "k_norm";
  while (is_of_heads && n > 0 && std::isnan(whole[n - 1])) --n;
  return n > 0 ? whole.first(n) : whole;
}

NormExtremes extremes(const NormFacts& facts, std::size_t row) {
  const auto gain = own_row(facts, row);
  const auto raw = row_of(facts.gain_raw, row, facts.width);
  NormExtremes out;
  out.layer = facts.layers[row];
  out.width = static_cast<int>(gain.size());
  std::vector<double> finite;
  for (std::size_t d = 0; d < gain.size(); ++d) {
    if (!std::isfinite(gain[d])) {
      ++out.n_non_finite;
      continue;
    }
    const GainAt here{out.layer, static_cast<int>(d), gain[d], raw[d]};
    if (gain[d] == 0) ++out.n_zero;
    if (finite.empty() || here.value < out.min.value) out.min = here;
    if (finite.empty() || here.value > out.max.value) out.max = here;
    finite.push_back(gain[d]);
  }
  out.median = lower_median(finite);
  return out;
}

// Distance from `center` on a log scale. The sign of a gain is a choice of basis, its size is not.
double deviation(double gain, double center) {
  if (!std::isfinite(gain) || center == 0) return -1;
  return gain == 0 ? kInfinity : std::abs(std::log(std::abs(gain / center)));
}

enum class Center { one, median };

std::vector<GainAt> starred(const NormFacts& facts, const std::vector<NormExtremes>& norms,
                            Center center, int n_starred) {
  const auto width = static_cast<std::size_t>(facts.width);
  std::vector<GainAt> worst(width);
  std::vector<double> score(width, -1.0);
  for (std::size_t row = 0; row < norms.size(); ++row) {
    const auto gain = row_of(facts.gain, row, facts.width);
    for (std::size_t d = 0; d < width; ++d) {
      const double from = deviation(gain[d], center == Center::one ? 1.0 : norms[row].median);
      if (!(from > score[d])) continue;
      score[d] = from;
      worst[d] = {facts.layers[row], static_cast<int>(d), gain[d],
                  row_of(facts.gain_raw, row, facts.width)[d]};
    }
  }
  std::vector<GainAt> out;
  for (const int d : sorted_dims(score)) {
    if (static_cast<int>(out.size()) == n_starred || score[static_cast<std::size_t>(d)] <= 0) break;
    out.push_back(worst[static_cast<std::size_t>(d)]);
  }
  return out;
}

}  // namespace

std::vector<NormRoleGains> norm_gains(const std::vector<NormFacts>& norms,
                                      const NormGainOptions& options) {
  std::vector<NormRoleGains> roles;
  for (const NormFacts& facts : norms) {
    require_shape(facts);
    NormRoleGains role{facts.role, facts.kind, facts.eps, facts.offset, facts.width, {}, {}, {}};
    for (std::size_t row = 0; row < facts.layers.size(); ++row) {
      role.norms.push_back(extremes(facts, row));
    }
    role.starred = starred(facts, role.norms, Center::one, options.n_starred);
    role.starred_from_median = starred(facts, role.norms, Center::median, options.n_starred);
    roles.push_back(std::move(role));
  }
  return roles;
}

}  // namespace sinkscope
