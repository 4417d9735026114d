// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/capture_contents.h"

#include <algorithm>
#include <numeric>

namespace sinkscope {
namespace {

std::vector<int> counting(int n) {
  std::vector<int> out(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

// "norm/ln1/gain" → {"ln1", "gain"}; "stats/hook_resid_pre/dim_rest/mean" → {…, "dim_rest/mean"}.
struct Member {
  std::string name, rest;
};
Member member_of(const std::string& path) {
  const auto first = path.find('/');
  const auto second = path.find('/', first + 1);
  if (second == std::string::npos) return {};
  return {path.substr(first + 1, second - first - 1), path.substr(second + 1)};
}

class KnownValues {
 public:
  KnownValues(const CaptureLayout& layout, int run, h5::Dataset& dataset)
      : layout_(layout), input_(layout.runs[static_cast<std::size_t>(run)]), dataset_(dataset) {}

  void write(const std::string& path) {
    if (path.starts_with("input/")) return write_input(path);
    if (path == "whatif") return texts({input_.what_if});
    if (path == "model/config") return texts({layout_.model.config_text});
    if (path == "attention/layers") return integers(layout_.attention_layers);
    if (path.starts_with("attention/pattern_")) return write_pattern_axis(path);
    if (path == "residual/block_layers") return integers(layout_.block_layers);
    if (path == "residual/sites") {
      return texts(residual_sites(layout_.model.n_layers, layout_.parallel_blocks));
    }
    if (path.starts_with("provenance/")) return write_provenance(path.substr(11));
    if (path.starts_with("norm/")) return write_norm(member_of(path));
    const Member member = member_of(path);
    if (member.rest != "layers") return;
    if (path.starts_with("stats/")) return write_layers(layout_.sites, member.name);
    if (path.starts_with("taps/")) return write_layers(layout_.taps, member.name);
  }

 private:
  void all(ElementType type, const void* values) {
    dataset_.write(h5::Dims(dataset_.dims().size(), 0), dataset_.dims(), type, values);
  }
  void integers(const std::vector<int>& values) { all(ElementType::i32, values.data()); }
  void texts(const std::vector<std::string>& values) { dataset_.write_texts(values); }

  void write_input(const std::string& path) {
    if (path == "input/token_ids") return integers(input_.token_ids);
    if (path == "input/bos_positions") return integers(input_.bos_positions);
    if (path == "input/text") return texts({input_.text});
    std::vector<std::string> labels = input_.token_text;
    labels.resize(input_.token_ids.size());
    texts(labels);
  }

  void write_pattern_axis(const std::string& path) {
    const PatternRecord& pattern = layout_.pattern;
    if (path == "attention/pattern_layers")
      return integers(pattern.reduces(ReduceOver::layers) ? std::vector{-1} : pattern.layers);
    if (path == "attention/pattern_rows") {
      return integers(pattern.rows.empty() ? counting(input_.seq_len()) : pattern.rows);
    }
    if (path != "attention/pattern_heads") return;
    if (pattern.reduces(ReduceOver::heads)) return integers({-1});
    integers(pattern.heads.empty() ? counting(layout_.model.n_heads) : pattern.heads);
  }

  void write_norm(const Member& member) {
    const auto norm = std::find_if(layout_.norms.begin(), layout_.norms.end(),
                                   [&](const NormFacts& n) { return n.role == member.name; });
    if (norm == layout_.norms.end()) return;
    if (member.rest == "layers") return integers(norm->layers);
    if (member.rest == "gain") return all(ElementType::f32, norm->gain.data());
    if (member.rest == "gain_raw") return all(ElementType::f32, norm->gain_raw.data());
    if (member.rest == "pre_gain") return all(ElementType::f32, norm->pre_gain.data());
    if (member.rest == "bias") return all(ElementType::f32, norm->bias.data());
  }

  template <class Sites>
  void write_layers(const Sites& sites, const std::string& hook) {
    for (const auto& site : sites) {
      if (site.hook == hook) integers(site.layers);
    }
  }

  void write_provenance(const std::string& field) {
    const Provenance& from = layout_.provenance;
    if (field == "threads") return integers({from.threads});
    if (field == "seed") return all(ElementType::i64, &from.seed);
    if (field == "device") return texts({from.device});
    if (field == "dtype") return texts({from.dtype});
    if (field == "torch") return texts({from.torch});
    if (field == "tile") return texts({from.tile});
    if (field == "kernel") return texts({from.kernel});
    if (field == "command") return texts({from.command});
  }

  const CaptureLayout& layout_;
  const RunInput& input_;
  h5::Dataset& dataset_;
};

}  // namespace

void write_known_values(const CaptureLayout& layout, int run, const std::string& path,
                        h5::Dataset& dataset) {
  KnownValues(layout, run, dataset).write(path);
}

}  // namespace sinkscope
