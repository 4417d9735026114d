// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/capture_norms.h"

#include <utility>

namespace sinkscope {

std::vector<NormFacts> read_norms(const CaptureReader& reader, const std::string& run) {
  std::vector<NormFacts> norms;
  if (!reader.has(run, "norm")) return norms;
  for (const std::string& role : reader.children(run, "norm")) {
    const std::string group = "norm/" + role;
    NormFacts facts;
    facts.role = role;
    facts.kind = reader.text_attribute(run, group, "kind");
    facts.eps = reader.number_attribute(run, group, "eps");
    facts.offset = reader.number_attribute(run, group, "offset");
    facts.layers = reader.read_i32(run, group + "/layers");
    facts.width = static_cast<int>(reader.dims(run, group + "/gain").back());
    facts.gain = reader.read_f32(run, group + "/gain");
    facts.gain_raw = reader.read_f32(run, group + "/gain_raw");
    if (reader.has(run, group + "/pre_gain"))
      facts.pre_gain = reader.read_f32(run, group + "/pre_gain");
    norms.push_back(std::move(facts));
  }
  return norms;
}

bool norms_read_stream(const CaptureReader& reader, const std::string& run) {
  return !reader.has(run, "residual/block_layers");
}

}  // namespace sinkscope
