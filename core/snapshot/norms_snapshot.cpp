// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/snapshot/norms_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/capture_norms.h"
#include "core/error.h"
#include "core/mechanisms.h"

namespace sinkscope {
namespace {

constexpr std::string_view kPreGain = "/pre_gain";

constexpr std::string_view kGate = "/gate";

bool is_pre_gain(const std::string& role) { return role.ends_with(kPreGain); }

// Signed values as they are shown: gains, or gains over the median of their layer. [N,C]
std::vector<float> shown_gains(const NormFacts& facts, const NormRoleGains& gains, GainView view) {
  std::vector<float> shown = facts.gain;
  if (view == GainView::gain) return shown;
  const auto width = static_cast<std::size_t>(facts.width);
  for (std::size_t i = 0; i < shown.size(); ++i)
    shown[i] = static_cast<float>(shown[i] / gains.norms[i / width].median);
  return shown;
}

// |ln|g||: how far a gain is from 1, a gain of 0 without bound. NaN deviates not at all.
double deviation(double gain) {
  const double d = std::abs(std::log(std::abs(gain)));
  return std::isnan(d) ? 0 : d;
}

// The most deviating cell below 1 and the one above.
std::vector<NormStrip::Box> boxes_of(const std::vector<float>& shown, int width) {
  std::vector<NormStrip::Box> boxes;
  for (const bool below : {true, false}) {
    double top = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const double d = deviation(shown[i]);
      if ((std::abs(shown[i]) < 1) == below && d > top) {
        top = d;
        at = i;
      }
    }
    if (top > 0)
      boxes.push_back({static_cast<int>(at) / width, static_cast<int>(at) % width, shown[at]});
  }
  return boxes;
}

NormStrip strip_of(const NormFacts& facts, NormRoleGains gains, GainView view) {
  NormStrip strip;
  strip.role = facts.role;
  strip.title =
      is_gate_role(facts.role)
          ? norm_role_title(facts.role.substr(0, facts.role.find('/'))) + ", mean gate behind it"
      : is_pre_gain(facts.role)
          ? norm_role_title(facts.role.substr(0, facts.role.find('/'))) + ", gain in front of it"
          : norm_role_title(facts.role) + " gain";
  strip.layers = facts.layers;
  const std::vector<float> shown = shown_gains(facts, gains, view);
  strip.boxes = boxes_of(shown, facts.width);
  for (const GainAt& star : view == GainView::gain ? gains.starred : gains.starred_from_median)
    if (star.dim >= 0) strip.starred.push_back(star.dim);
  std::sort(strip.starred.begin(), strip.starred.end());
  std::vector<float> magnitudes = shown;
  for (float& value : magnitudes) value = std::abs(value);
  strip.map = Grid(static_cast<int>(facts.layers.size()), facts.width, std::move(magnitudes));
  strip.gains = std::move(gains);
  return strip;
}

// Gains in front of a norm stand behind those of the norm, as a role of their own.
std::vector<NormFacts> with_pre_gains(const std::vector<NormFacts>& norms) {
  std::vector<NormFacts> all;
  for (const NormFacts& norm : norms) {
    all.push_back(norm);
    if (norm.pre_gain.empty()) continue;
    NormFacts pre = norm;
    pre.role += kPreGain;
    pre.gain = pre.gain_raw = norm.pre_gain;
    pre.offset = 0;
    pre.bias.clear();
    pre.pre_gain.clear();
    all.push_back(std::move(pre));
  }
  return all;
}

std::vector<NormFacts> chosen(const std::vector<NormFacts>& norms,
                              const std::vector<std::string>& roles, const std::string& title) {
  if (roles.empty()) return norms;
  std::vector<NormFacts> some;
  for (const std::string& role : roles) {
    const auto found = std::find_if(norms.begin(), norms.end(),
                                    [&](const NormFacts& facts) { return facts.role == role; });
    if (found == norms.end())
      throw Error(ErrorKind::not_found, fmt::format("{}: no norm '{}'", title, role));
    some.push_back(*found);
  }
  return some;
}

// The mean gates of gated norms, each behind the gains of its norm, as a role of their own.
std::vector<NormFacts> with_gates(const std::vector<NormFacts>& norms,
                                  const std::vector<NormGate>& gates) {
  std::vector<NormFacts> all;
  for (const NormFacts& norm : norms) {
    all.push_back(norm);
    NormFacts means = norm;
    means.role += kGate;
    means.layers.clear();
    means.gain.clear();
    means.bias.clear();
    means.pre_gain.clear();
    means.offset = 0;
    for (const NormGate& gate : gates) {
      if (gate.role != norm.role || static_cast<int>(gate.mean.size()) != norm.width) continue;
      means.layers.push_back(gate.layer);
      means.gain.insert(means.gain.end(), gate.mean.begin(), gate.mean.end());
    }
    means.gain_raw = means.gain;
    if (!means.layers.empty()) all.push_back(std::move(means));
  }
  return all;
}

}  // namespace

bool is_gate_role(const std::string& role) { return role.ends_with(kGate); }

std::string norm_role_title(const std::string& role) {
  static const std::vector<std::pair<std::string, std::string>> titles = {
      {"ln1", "Attention pre-norm"},
      {"ln2", "FFN pre-norm"},
      {"ln1_post", "Attention post-norm"},
      {"ln2_post", "FFN post-norm"},
      {"ln_final", "Final norm"},
      {"ln1_k", "Key pre-norm"},
      {"ln1_v", "Value pre-norm"},
      {"q_norm", "Query norm"},
      {"k_norm", "Key norm"}};
  for (const auto& [name, title] : titles)
    if (name == role) return title;
  return role;
}

std::vector<std::string> norm_role_names(const std::vector<NormFacts>& norms) {
  std::vector<std::string> names;
  for (const NormFacts& norm : norms) {
    names.push_back(norm.role);
    if (!norm.pre_gain.empty()) names.push_back(norm.role + std::string(kPreGain));
  }
  return names;
}

NormsSnapshot norms_snapshot(const std::vector<NormFacts>& norms, const std::string& title,
                             int n_layers, const NormsRequest& request) {
  NormsSnapshot out;
  out.request = request;
  out.title = title;
  out.model.name = title;
  out.model.n_layers = out.n_layers = n_layers;
  out.view_text =
      request.view == GainView::gain ? "effective gain" : "effective gain / median of its layer";
  const std::vector<NormFacts> some = chosen(with_pre_gains(norms), request.roles, title);
  std::vector<NormRoleGains> gains = norm_gains(some, NormGainOptions{request.n_starred});
  for (std::size_t i = 0; i < some.size(); ++i)
    out.strips.push_back(strip_of(some[i], std::move(gains[i]), request.view));
  return out;
}

NormsSnapshot read_norms_snapshot(const CaptureReader& reader, const NormsRequest& request) {
  const std::vector<NormFacts> norms = read_norms(reader, request.run);
  if (norms.empty())
    throw Error(ErrorKind::not_found,
                fmt::format("{}: {}: no norm gains are recorded", reader.path(), request.run));
  const ModelFacts model = reader.model(request.run);
  const int layers_end = reader.complete() ? model.n_layers : reader.whole_layers(request.run);
  NormsSnapshot out =
      norms_snapshot(with_gates(norms, read_mechanisms(reader, request.run, layers_end).norm_gates),
                     model.name, model.n_layers, request);
  out.model = model;
  return out;
}

}  // namespace sinkscope
