// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figure/figure_kinds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace sinkscope {
namespace {

template <class Named>
std::string names_of(const std::vector<Named>& all) {
  std::vector<std::string> names;
  for (const Named& one : all) names.emplace_back(one.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// Figures of the paper that show training or other models' series.
std::string missing_data(const std::string& name) {
  if (name == "2601.22966/fig3" || name == "2601.22966/fig4")
    return "loss and largest activation against the training step, a series of checkpoints";
  return {};
}

}  // namespace

const std::vector<FigureKind>& figure_kinds() {
  static const std::vector<FigureKind> kinds = {
      {"attention-mean", "attention map averaged over layers and heads", "capture"},
      {"attention-head", "attention map of one head (--layer, --head)",
       "capture; beyond 64 tokens with --record maps"},
      {"attention-grid", "all heads of all layers as small maps", "capture"},
      {"residual-sorted", "tokens x dimensions by mean |x|, largest activation and first-1‰ ratio",
       "capture"},
      {"norm-gains", "norm gains, layer x dimension, with starred dimensions", "model or capture"},
      {"sink-heads", "sink score of every head, layer x head", "capture"},
      {"key-mass", "attention that each key receives: mean and strongest head", "capture"},
      {"logit-gap",
       "largest minus median attention logit of each head, with the bound for its sink", "capture"},
      {"value-norms", "value norm of the first token beside the others, over depth", "capture"},
      {"length-lines", "attention to the first token against the query's position, with 1/(t+1)",
       "capture; beyond 64 tokens with --record maps"},
      {"depth-lines", "largest |x|, sink score and kurtosis over depth", "capture"},
      {"kurtosis", "kurtosis over depth in the flavors in use", "capture"},
      {"channel-token", "|x| of one block state, token x dimension (--layer)", "capture"},
      {"compare",
       "maps beside each other and their differences to the first (--of: average attention, sorted "
       "residual, sink scores, gains; --layers, --heads)",
       "two captures or more; --of norm-gains also models"},
      {"bound", "norm outputs below the rescaling bound, a dot a token",
       "capture, or F.json of sinkscope rescale"},
      {"shares", "share of an outlier before and after each norm and head, factors over depth",
       "capture, or F.json of sinkscope rescale"},
      {"probes", "loss that each causal probe costs, a panel a reader",
       "F.json of sinkscope probe"},
  };
  return kinds;
}

const FigureKind& figure_kind(const std::string& name) {
  for (const FigureKind& kind : figure_kinds())
    if (name == kind.name) return kind;
  throw Error(ErrorKind::invalid_argument, fmt::format("figure: expected one of {}, found '{}'",
                                                       names_of(figure_kinds()), name));
}

const std::vector<FigurePreset>& figure_presets() {
  static const std::vector<FigurePreset> presets = {
      {"2601.22966/fig1",
       "average attention map over average hidden states, 32 x 32, a column per model", "captures"},
      {"2601.22966/fig2", "average hidden states of several models, one shared range", "captures"},
      {"2601.22966/fig5", "attention and FFN pre-norm weights, layer x dimension",
       "models or captures"},
      {"2601.22966/fig6", "as fig5, with the weights before a PreAffine where there are any",
       "models or captures"},
      {"2601.22966/fig7", "as fig5", "models or captures"},
      {"2601.22966/fig8", "average attention map beside average hidden states, 32 x 32",
       "captures"},
  };
  return presets;
}

const FigurePreset& figure_preset(const std::string& name) {
  for (const FigurePreset& preset : figure_presets())
    if (name == preset.name) return preset;
  const std::string missing = missing_data(name);
  if (!missing.empty())
    throw Error(ErrorKind::unsupported,
                fmt::format("--preset {}: shows {}, which no capture holds", name, missing));
  throw Error(ErrorKind::invalid_argument, fmt::format("--preset: expected one of {}, found '{}'",
                                                       names_of(figure_presets()), name));
}

}  // namespace sinkscope
