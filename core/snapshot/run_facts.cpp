// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/snapshot/run_facts.h"

#include <fmt/format.h>

#include <algorithm>

namespace sinkscope {
namespace {

std::vector<int> whole_ones(std::vector<int> layers, int whole_layers) {
  std::erase_if(layers, [&](int layer) { return layer >= whole_layers; });
  return layers;
}

}  // namespace

RunFacts read_run_facts(const CaptureReader& reader, const std::string& run) {
  RunFacts facts;
  facts.path = reader.path();
  facts.run = run;
  facts.model = reader.model(run);
  facts.input = reader.input(run);
  facts.complete = reader.complete();
  facts.whole_layers = reader.complete() ? facts.model.n_layers : reader.whole_layers(run);
  if (reader.has(run, "attention/layers")) {
    facts.attention_layers =
        whole_ones(reader.read_i32(run, "attention/layers"), facts.whole_layers);
    facts.has_attention = !facts.attention_layers.empty();
  }
  facts.has_window = facts.has_attention && reader.has(run, "attention/window");
  facts.has_thumbnail = facts.has_attention && reader.has(run, "attention/thumbnail");
  if (facts.has_attention && reader.has(run, "attention/pattern")) {
    facts.pattern_layers =
        whole_ones(reader.read_i32(run, "attention/pattern_layers"), facts.whole_layers);
    facts.pattern_heads = reader.read_i32(run, "attention/pattern_heads");
    std::erase(facts.pattern_layers, -1);  // one map over the layers is no layer's
    facts.has_pattern = !facts.pattern_layers.empty();
  }
  facts.has_residual = reader.has(run, "residual/sites") && facts.whole_layers > 0;
  facts.has_stream = facts.has_residual && reader.has(run, "residual/stream");
  if (reader.has(run, "norm"))
    for (const std::string& role : reader.children(run, "norm")) {
      facts.norm_roles.push_back(role);
      if (reader.has(run, "norm/" + role + "/pre_gain"))
        facts.norm_roles.push_back(role + "/pre_gain");
    }
  facts.has_norms = !facts.norm_roles.empty();
  facts.has_loss = reader.complete() && reader.has(run, "logits/loss");
  return facts;
}

std::string run_title(const RunFacts& facts) {
  return fmt::format("{} · {} · {} token{}", facts.model.name, facts.name(), facts.seq_len(),
                     facts.seq_len() == 1 ? "" : "s");
}

std::string recorded_text(const RunFacts& facts) {
  std::string text = "statistics";
  if (facts.has_stream) text += ", residual stream";
  if (facts.has_pattern) text += ", attention maps";
  return text;
}

std::string bare_token(const std::string& label) {
  static const std::string kSpaceMark = "·";
  return label.size() > kSpaceMark.size() && label.starts_with(kSpaceMark)
             ? label.substr(kSpaceMark.size())
             : label;
}

}  // namespace sinkscope
