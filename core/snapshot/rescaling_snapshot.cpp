// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/snapshot/rescaling_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/number_text.h"
#include "core/residual_metrics.h"

namespace sinkscope {
namespace {

constexpr int kBins = 20;
// Points closer than this look like one; of a cloud of millions only those that do not are kept.
constexpr double kCell = 1.0 / 512;
constexpr std::size_t kManyPoints = 4096;

struct KindName {
  const char *role, *name;
};
constexpr KindName kKinds[] = {{"ln1", "attention norms"},
                               {"ln1_post", "norms behind attention"},
                               {"ln2", "FFN norms"},
                               {"ln2_post", "norms behind the FFN"},
                               {"ln_final", "final norm"}};

std::vector<RescalingPoint> thinned(std::vector<RescalingPoint> points) {
  if (points.size() <= kManyPoints) return points;
  std::set<std::pair<long, long>> taken;
  std::vector<RescalingPoint> kept;
  for (const RescalingPoint& point : points)
    if (taken.emplace(std::lround(point.x / kCell), std::lround(point.y / kCell)).second)
      kept.push_back(point);
  return kept;
}

// Shares of the tokens of each norm by α, a bin of 1/20 each; 1 belongs to the last.
Grid alpha_counts(const std::vector<const NormEvidence*>& norms) {
  std::vector<float> counts(norms.size() * kBins, 0.0F);
  for (std::size_t n = 0; n < norms.size(); ++n)
    for (double alpha : norms[n]->alpha) {
      if (!std::isfinite(alpha)) continue;
      const int bin = std::clamp(static_cast<int>(alpha * kBins), 0, kBins - 1);
      counts[n * kBins + static_cast<std::size_t>(bin)] +=
          1.0F / static_cast<float>(norms[n]->alpha.size());
    }
  return Grid(static_cast<int>(norms.size()), kBins, std::move(counts));
}

NormCloud cloud_of(const RescaleReport& report, const KindName& kind) {
  NormCloud cloud;
  cloud.role = kind.role;
  cloud.name = kind.name;
  std::vector<const NormEvidence*> norms;
  std::vector<double> before, after, next;
  for (const NormEvidence& e : report.norms) {
    if (e.role != kind.role || e.r2.empty()) continue;
    norms.push_back(&e);
    cloud.layers.push_back(e.layer);
    cloud.alpha_first.push_back(e.alpha.front());
    cloud.alpha_rest.push_back(finite_median(std::span(e.alpha).subspan(1)));
    before.push_back(e.r2.front());
    after.push_back(e.share_after.front());
    if (!e.next_linear.empty()) next.push_back(e.next_linear.front());
    cloud.n_above += e.n_above;
    cloud.n_points += static_cast<std::int64_t>(e.r2.size()) - e.n_not_finite;
    for (std::size_t t = 0; t < e.r2.size(); ++t) {
      if (!std::isfinite(e.r2[t])) continue;
      RescalingPoint point{e.layer, static_cast<int>(t), e.dim[t],
                           -1,      std::sqrt(e.r2[t]),  e.output_rms[t] / e.gain_max};
      if (std::isfinite(point.y)) (t == 0 ? cloud.bound_first : cloud.bound_rest).push_back(point);
      point.x = e.r2[t];
      point.y = e.share_after[t];
      if (std::isfinite(point.y)) cloud.shares.push_back(point);
      cloud.gain_ratio = std::max(cloud.gain_ratio, e.gain_dim[t] / e.gain_max);
    }
  }
  cloud.bound_rest = thinned(std::move(cloud.bound_rest));
  cloud.shares = thinned(std::move(cloud.shares));
  cloud.alpha_counts = alpha_counts(norms);
  cloud.share_before = finite_median(before);
  cloud.share_after = finite_median(after);
  cloud.next_linear = finite_median(next);
  return cloud;
}

void add_heads(const RescaleReport& report, RescalingSnapshot& out) {
  std::map<int, double> smallest;
  for (const HeadEvidence& e : report.heads) {
    const double p = finite_median(e.p);
    if (!std::isfinite(p)) continue;
    const auto [known, is_new] = smallest.emplace(e.layer, 1 - p);
    if (!is_new) known->second = std::min(known->second, 1 - p);
    out.head_shares.push_back({e.layer, -1, -1, e.head, p, finite_median(e.share_after)});
  }
  for (const auto& [layer, factor] : smallest) {
    out.attention_layers.push_back(layer);
    out.factor.push_back(factor);
  }
  out.queries = report.queries;
}

std::string bound_text(const std::vector<NormCloud>& norms) {
  std::int64_t points = 0, above = 0;
  for (const NormCloud& cloud : norms) points += cloud.n_points, above += cloud.n_above;
  if (points == 0) return "No norm's statistics are recorded.";
  if (above == 0)
    return fmt::format("All {} points lie below their bounds (1) and (5).", count_text(points));
  return fmt::format(
      "{} of {} points lie above their bound (1) or (5): the recorded norm output is not that of "
      "its input and gain.",
      count_text(above), count_text(points));
}

// What shares before and after allow; the causal role is left to the probes.
std::string suggestion(const std::vector<NormCloud>& norms) {
  std::string text;
  for (const NormCloud& cloud : norms) {
    if (!std::isfinite(cloud.share_before)) continue;
    if (!text.empty()) text += "\n";
    std::string name = cloud.name;
    name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
    text += fmt::format(
        "{}: the first token's largest dimension has {:.0f} % of its square norm "
        "before, ",
        name, 100 * cloud.share_before);
    if (!std::isfinite(cloud.share_after)) {
      text += "an unknown share after.";
      continue;
    }
    text += fmt::format("{:.1f} % after: ", 100 * cloud.share_after);
    text += cloud.share_before < 0.3 ? "too little to rescale."
            : cloud.share_after < 0.1 * cloud.share_before
                ? "the norm silences it, as it would a rescaler."
                : "the norm lets it through, which excludes none of the three roles.";
  }
  return text;
}

}  // namespace

RescalingSnapshot rescaling_snapshot(const CaptureReader& reader, const RescalingRequest& request,
                                     const WeightRows& weights) {
  RescalingSnapshot out;
  out.request = request;
  out.facts = read_run_facts(reader, request.run);
  const RescaleReport report =
      rescale_report(reader, request.run, {request.dims, request.key}, weights);
  for (const KindName& kind : kKinds) {
    NormCloud cloud = cloud_of(report, kind);
    if (!cloud.layers.empty()) out.norms.push_back(std::move(cloud));
  }
  add_heads(report, out);
  out.bound_text = bound_text(out.norms);
  out.suggestion = suggestion(out.norms);
  for (const NormCloud& cloud : out.norms)
    if (std::isfinite(cloud.next_linear))
      out.contribution +=
          fmt::format("{}{} {:.1f} %",
                      out.contribution.empty() ? "Part of the next linear layer's output that "
                                                 "comes from it, first token: "
                                               : ", ",
                      cloud.name, 100 * cloud.next_linear);
  std::map<std::string, std::string> missing;  // what it needs → quantities
  for (const auto& [quantity, what] : report.not_computed) {
    std::string& quantities = missing[what.substr(0, what.find(": --"))];
    quantities += (quantities.empty() ? "" : ", ") + quantity;
  }
  for (const auto& [what, quantities] : missing)
    out.not_computed.push_back(fmt::format("Not computed: {}: {}", what, quantities));
  return out;
}

ProbesSnapshot probes_snapshot(ProbeTable table) {
  ProbesSnapshot out;
  const std::vector<ProbeVerdict> verdicts = probe_verdicts(table);
  for (const ProbeRow& row : table.rows) {
    if (row.is_control) continue;
    const std::string at = row.at.text();
    auto group = std::find_if(out.groups.begin(), out.groups.end(), [&](const ProbeBars& bars) {
      return bars.reader == row.reader.name && bars.at == at;
    });
    if (group == out.groups.end()) {
      out.groups.push_back({row.reader.name, at, {}, {}, {}, {}});
      group = out.groups.end() - 1;
    }
    group->modes.emplace_back(name_of(row.mode));
    group->delta_loss.push_back(row.delta_loss);
  }
  for (ProbeBars& bars : out.groups)
    for (const ProbeVerdict& verdict : verdicts)
      if (verdict.reader.name == bars.reader && verdict.at.text() == bars.at) {
        bars.role = verdict.role;
        bars.sentence = verdict.sentence;
      }
  out.table = std::move(table);
  return out;
}

}  // namespace sinkscope
