// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/capture_create.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/capture_contents.h"
#include "core/capture_schema.h"
#include "core/error.h"
#include "core/h5/chunks.h"
#include "core/h5/dataset.h"
#include "core/h5/object.h"

namespace sinkscope {
namespace {

constexpr int kFormatVersion = 1;

h5::Fill fill_of(const std::string& path) {
  if (path == "attention/pattern") return h5::Fill::zero;  // chunks outside the mask are absent
  if (path == "logits/full") return h5::Fill::none;        // large, and written whole
  return h5::Fill::absent;
}

std::string parent_of(const std::string& path) {
  const auto cut = path.rfind('/');
  return cut == std::string::npos ? std::string() : path.substr(0, cut);
}
std::string leaf_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// {"axes_scale_types":[…],"axes_scale_type":[…],"signal_scale_type":"log"}: silx reads the first
// key, H5Web the second, both the third.
std::string style_json(std::size_t rank, bool is_log) {
  const std::vector<std::string> linear(rank, "\"linear\"");
  const std::string axes = fmt::format("[{}]", fmt::join(linear, ","));
  return fmt::format(
      R"({{"axes_scale_types":{0},"axes_scale_type":{0},"signal_scale_type":"{1}"}})", axes,
      is_log ? "log" : "linear");
}

bool is_provenance(const std::string& path) { return path.starts_with("provenance/"); }

// Makes one run's group.
class RunBuilder {
 public:
  RunBuilder(const h5::File& file, const CaptureLayout& layout, int run)
      : file_(file), layout_(layout), run_(run), name_(run_group_name(layout.runs, run)) {
    groups_.emplace("", h5::create_group(file.root(), name_));
  }

  std::vector<std::int64_t> build(const RunSpecs& specs) {
    std::vector<std::int64_t> offsets;
    for (const DatasetSpec& spec : specs.list) offsets.push_back(create(spec));
    for (const auto& [path, group] : groups_) {
      if (!path.empty()) describe(path, group, specs);
    }
    describe_run();
    if (run_ == 0) describe_model();
    if (run_ > 0) share_with_first();
    h5::set_attribute(groups_.at("input"), "tokenizer", input().tokenizer);
    return offsets;
  }

 private:
  const RunInput& input() const { return layout_.runs[static_cast<std::size_t>(run_)]; }

  const h5::Handle& group(const std::string& path) {
    if (const auto found = groups_.find(path); found != groups_.end()) return found->second;
    const auto cut = path.rfind('/');
    const h5::Handle& parent = group(cut == std::string::npos ? "" : path.substr(0, cut));
    return groups_.emplace(path, h5::create_group(parent, leaf_of(path))).first->second;
  }

  std::int64_t create(const DatasetSpec& spec) {
    const DatasetRule& rule = *find_rule(spec.path);
    h5::Dataset dataset =
        h5::Dataset::create(group(parent_of(spec.path)), leaf_of(spec.path),
                            {spec.type, spec.dims, spec.chunk, fill_of(spec.path)},
                            fmt::format("{}: {}/{}", file_.path(), name_, spec.path));
    if (!rule.title.empty()) {
      h5::set_attribute(dataset.handle(), "long_name", std::string(rule.title));
    }
    if (!rule.units.empty()) h5::set_attribute(dataset.handle(), "units", std::string(rule.units));
    if (!is_provenance(spec.path)) write_known_values(layout_, run_, spec.path, dataset);
    return dataset.offset();
  }

  void describe(const std::string& path, const h5::Handle& group, const RunSpecs& specs) {
    for (const PlotRule& plot : plot_rules()) {
      if (!matches_pattern(plot.group, path)) continue;
      const auto found = specs.index.find(fmt::format("{}/{}", path, plot.signal));
      if (found == specs.index.end()) continue;
      const DatasetSpec& signal = specs.list[static_cast<std::size_t>(found->second)];
      if (signal.n_bytes() == 0) continue;
      std::vector<std::string> axes;
      for (const auto axis : split(plot.axes, ',')) axes.emplace_back(axis);
      axes.resize(signal.dims.size(), ".");
      h5::set_attribute(group, "NX_class", "NXdata");
      h5::set_attribute(group, "signal", std::string(plot.signal));
      h5::set_attribute(group, "axes", axes);
      if (!plot.auxiliary.empty()) {
        h5::set_attribute(group, "auxiliary_signals", std::vector{std::string(plot.auxiliary)});
      }
      h5::set_attribute(group, "SILX_style", style_json(axes.size(), plot.is_log));
      return;
    }
    h5::set_attribute(group, "NX_class", "NXcollection");
    const std::string child = default_child(path);
    if (!child.empty()) h5::set_attribute(group, "default", child);
  }

  // What a viewer should open in a group that is no plot itself.
  std::string default_child(const std::string& path) const {
    if (matches_pattern("stats/*", path)) return "dim_rest";
    if (path == "stats" && groups_.contains("stats/hook_resid_post")) return "hook_resid_post";
    if (path != "stats" && path != "norm" && path != "taps") return {};
    const auto first = groups_.upper_bound(path + "/");
    return first == groups_.end() ? std::string() : leaf_of(first->first);
  }

  void describe_run() {
    const h5::Handle& run = groups_.at("");
    h5::set_attribute(run, "NX_class", "NXentry");
    h5::set_attribute(run, "name", input().name);
    if (!input().baseline_file.empty()) {
      h5::set_attribute(run, "baseline_file", input().baseline_file);
      h5::set_attribute(run, "input_sha256", input_sha256(input().token_ids));
    } else if (input().edit_of >= 0) {
      h5::set_attribute(run, "baseline", fmt::format("/run{}", input().edit_of));
    }
    if (!input().calibration_sha256.empty())
      h5::set_attribute(run, "calibration_sha256", input().calibration_sha256);
    h5::set_attribute(run, "default", groups_.contains("attention") ? "attention" : "residual");
  }

  void describe_model() {
    const ModelFacts& model = layout_.model;
    const h5::Handle& at = groups_.at("model");
    h5::set_attribute(at, "name", model.name);
    h5::set_attribute(at, "source", model.source);
    h5::set_attribute(at, "fingerprint", model.fingerprint);
    h5::set_attribute(at, "architecture", model.architecture);
    h5::set_attribute(at, "n_layers", model.n_layers);
    h5::set_attribute(at, "n_heads", model.n_heads);
    h5::set_attribute(at, "n_kv_heads", model.n_kv_heads);
    h5::set_attribute(at, "head_dim", model.head_dim);
    h5::set_attribute(at, "d_model", model.d_model);
    h5::set_attribute(at, "vocab_size", model.vocab_size);
    if (model.n_streams > 1) h5::set_attribute(at, "n_streams", model.n_streams);
    for (const NormFacts& norm : layout_.norms) {
      const h5::Handle& group = groups_.at("norm/" + norm.role);
      h5::set_attribute(group, "kind", norm.kind);
      h5::set_attribute(group, "eps", norm.eps);
      h5::set_attribute(group, "offset", norm.offset);
    }
  }

  // The model is one; its facts are kept once and every run shows them.
  void share_with_first() {
    for (const char* shared : {"model", "norm", "provenance"}) {
      if (*shared == 'n' && layout_.norms.empty()) continue;
      h5::hard_link(file_.root(), fmt::format("{}/{}", run_group_name(layout_.runs, 0), shared),
                    groups_.at(""), shared);
    }
  }

  const h5::File& file_;
  const CaptureLayout& layout_;
  int run_;
  std::string name_;
  std::map<std::string, h5::Handle> groups_;
};

std::shared_ptr<const RunSpecs> specs_of(const CaptureLayout& layout, int run) {
  auto specs = std::make_shared<RunSpecs>();
  specs->list = datasets_of(layout, run);
  for (std::size_t i = 0; i < specs->list.size(); ++i) {
    if (specs->index.emplace(specs->list[i].path, static_cast<int>(i)).second) continue;
    throw Error(ErrorKind::invalid_argument,
                fmt::format("capture layout: {} is there twice", specs->list[i].path));
  }
  return specs;
}

// Runs of one length share their specs.
std::vector<RunTable> tables_of(const CaptureLayout& layout) {
  std::vector<RunTable> tables;
  std::map<std::tuple<int, std::size_t, bool>, std::shared_ptr<const RunSpecs>> known;
  for (int run = 0; run < static_cast<int>(layout.runs.size()); ++run) {
    const RunInput& input = layout.runs[static_cast<std::size_t>(run)];
    // Only run 0 holds the model, so it shares with nobody.
    auto& specs =
        known[{run == 0 ? -1 : input.seq_len(), input.bos_positions.size(), input.edit_of >= 0}];
    if (!specs) specs = specs_of(layout, run);
    tables.push_back({specs, {}});
  }
  return tables;
}

}  // namespace

std::vector<RunTable> create_structure(const h5::File& file, const CaptureLayout& layout) {
  const h5::Handle& root = file.root();
  h5::set_attribute(root, "format", "sinkscope");
  h5::set_attribute(root, "format_version", kFormatVersion);
  h5::set_attribute(root, "creator", layout.creator);
  h5::set_attribute(root, "NX_class", "NXroot");
  h5::set_attribute(root, "default", run_group_name(layout.runs, 0));
  h5::set_attribute(root, "layers_done", 0);
  h5::set_attribute(root, "runs_done", 0);
  h5::set_attribute(root, "runs_begun", 0);
  h5::set_attribute(root, "complete", 0);

  std::vector<RunTable> tables = tables_of(layout);
  for (int run = 0; run < static_cast<int>(tables.size()); ++run) {
    RunTable& table = tables[static_cast<std::size_t>(run)];
    table.offsets = RunBuilder(file, layout, run).build(*table.specs);
  }
  return tables;
}

std::vector<RunTable> find_structure(const h5::File& file, const CaptureLayout& layout) {
  std::vector<RunTable> tables = tables_of(layout);
  for (int run = 0; run < static_cast<int>(tables.size()); ++run) {
    RunTable& table = tables[static_cast<std::size_t>(run)];
    for (const DatasetSpec& spec : table.specs->list) {
      const std::string path = fmt::format("{}/{}", run_group_name(layout.runs, run), spec.path);
      const std::string where = fmt::format("{}: {}", file.path(), path);
      // As strict as a reader: the file may have been damaged, or be a stranger's.
      for (auto cut = path.find('/');; cut = path.find('/', cut + 1)) {
        if (h5::link_kind(file.root(), path.substr(0, cut)) != h5::LinkKind::hard)
          throw Error(ErrorKind::corrupt, where + " is absent, or a link to somewhere else");
        if (cut == std::string::npos) break;
      }
      const auto dataset =
          h5::Dataset::open_for_reading(h5::open_object(file.root(), path, where), where);
      if (dataset.dims() != spec.dims || dataset.type() != spec.type)
        throw Error(ErrorKind::corrupt,
                    fmt::format("{}: expected shape [{}] of this request's type, found [{}]", where,
                                fmt::join(spec.dims, ", "), fmt::join(dataset.dims(), ", ")));
      // The writer puts whole chunks: of another shape they would land elsewhere.
      const bool is_empty = std::count(spec.dims.begin(), spec.dims.end(), 0) > 0;
      if (const h5::Dims chunk = h5::chunk_of(dataset);
          chunk != (is_empty ? h5::Dims() : spec.chunk))
        throw Error(ErrorKind::corrupt,
                    fmt::format("{}: expected chunks [{}], found [{}]", where,
                                fmt::join(spec.chunk, ", "), fmt::join(chunk, ", ")));
      table.offsets.push_back(dataset.offset());
    }
  }
  return tables;
}

void write_provenance(const h5::File& file, const CaptureLayout& layout) {
  for (const DatasetSpec& spec : datasets_of(layout, 0)) {
    if (!is_provenance(spec.path)) continue;
    const std::string path = run_group_name(layout.runs, 0) + "/" + spec.path;
    auto dataset =
        h5::Dataset::open_for_writing(file.root(), path, fmt::format("{}: {}", file.path(), path));
    write_known_values(layout, 0, spec.path, dataset);
  }
}

}  // namespace sinkscope
