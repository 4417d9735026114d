// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/capture_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "core/capture_schema.h"
#include "core/capture_shapes.h"
#include "core/error.h"
#include "core/h5/dataset.h"
#include "core/h5/file.h"
#include "core/h5/object.h"
#include "core/run_done.h"

namespace sinkscope {
namespace {

using Dims = std::vector<std::int64_t>;

constexpr double kFormatVersion = 1;

[[noreturn]] void corrupt(const std::string& message) { throw Error(ErrorKind::corrupt, message); }

// "run12" → 12.
std::optional<int> run_number(const std::string& name) {
  if (!name.starts_with("run") || name.size() > 12) return std::nullopt;
  int number = 0;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + 3, end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || number < 0) return std::nullopt;
  return number;
}

// "run3_edit12" of "run3" → 12.
std::optional<int> edit_number(const std::string& name, const std::string& run) {
  const std::string prefix = run + "_edit";
  if (!name.starts_with(prefix)) return std::nullopt;
  return run_number("run" + name.substr(prefix.size()));
}

class FileReader final : public CaptureReader {
 public:
  explicit FileReader(const std::string& path) : file_(h5::File::open_for_reading(path)) {
    check_format();
    layers_done_ = whole_number(file_.root(), "layers_done", path);
    runs_done_ = whole_number(file_.root(), "runs_done", path);
    runs_begun_ = whole_number(file_.root(), "runs_begun", path);
    is_complete_ = whole_number(file_.root(), "complete", path) != 0;
    find_runs();
  }

  const std::string& path() const override { return file_.path(); }
  const std::vector<std::string>& runs() const override { return runs_; }
  const std::string& default_run() const override { return default_run_; }
  std::vector<std::string> edits(const std::string& run) const override {
    std::vector<std::string> found;
    for (const std::string& name : edits_)
      if (edit_number(name, run)) found.push_back(name);
    return found;
  }
  bool complete() const override { return is_complete_; }
  int layers_done() const override { return whole_layers(runs_.front()); }
  int whole_layers(const std::string& run) const override {
    const int n_layers = model(run).n_layers;
    if (layers_done_ > n_layers)
      corrupt(fmt::format("{}: attribute layers_done: expected at most {}, found {}", file_.path(),
                          n_layers, layers_done_));
    if (is_done(run)) return n_layers;
    return run_number(run).value_or(0) < runs_begun_ ? layers_done_ : 0;
  }
  bool is_done(const std::string& run) const {
    return is_complete_ || run_number(run).value_or(0) < runs_done_;
  }

  bool has(const std::string& run, const std::string& path) const override {
    return find(run, path).has_value();
  }
  Dims dims(const std::string& run, const std::string& path) const override {
    return dataset(run, path).dims();
  }
  std::vector<std::string> children(const std::string& run,
                                    const std::string& group) const override {
    const h5::Handle object = open(run, group);
    if (h5::object_kind(object) != h5::ObjectKind::group) {
      corrupt(where(run, group) + ": expected a group, found a dataset");
    }
    return h5::child_names(object, where(run, group));
  }

  bool is_dataset(const std::string& run, const std::string& path) const override {
    return h5::object_kind(open(run, path)) == h5::ObjectKind::dataset;
  }
  ElementType type(const std::string& run, const std::string& path) const override {
    return dataset(run, path).type();
  }

  std::vector<double> read_f64(const std::string& run, const std::string& path) const override {
    return checked(run, path, read_all<double>(run, path, ElementType::f64));
  }
  std::vector<double> read_f64(const std::string& run, const std::string& path, const Dims& start,
                               const Dims& count) const override {
    return checked(run, path, read_box<double>(dataset(run, path), ElementType::f64, start, count));
  }
  std::vector<float> read_f32(const std::string& run, const std::string& path) const override {
    return read_all<float>(run, path, ElementType::f32);
  }
  std::vector<float> read_f32(const std::string& run, const std::string& path, const Dims& start,
                              const Dims& count) const override {
    return read_box<float>(dataset(run, path), ElementType::f32, start, count);
  }
  void read_f32_into(const std::string& run, const std::string& path, const Dims& start,
                     const Dims& count, std::vector<float>& into) const override {
    read_box_into(dataset(run, path), ElementType::f32, start, count, into);
  }
  std::vector<int> read_i32(const std::string& run, const std::string& path) const override {
    const h5::Dataset data = dataset(run, path);
    if (data.type() != ElementType::i32) {
      corrupt(where(run, path) + ": expected 32-bit integers, found another type");
    }
    std::vector<int> values =
        read_box<int>(data, ElementType::i32, Dims(data.dims().size(), 0), data.dims());
    check_list(path, values, shapes(run).sizes(), where(run, path));
    return values;
  }
  std::vector<std::string> read_texts(const std::string& run,
                                      const std::string& path) const override {
    std::vector<std::string> texts = dataset(run, path).read_texts();
    if (path == "residual/sites") check_names(texts, where(run, path));
    return texts;
  }
  std::string read_text(const std::string& run, const std::string& path) const override {
    const h5::Dataset data = dataset(run, path);
    if (!data.dims().empty()) corrupt(where(run, path) + ": expected one text, found a list");
    return data.read_texts().at(0);
  }

  bool has_attribute(const std::string& run, const std::string& path,
                     const std::string& name) const override {
    return h5::has_attribute(open(run, path), name);
  }
  std::string text_attribute(const std::string& run, const std::string& path,
                             const std::string& name) const override {
    const std::string place = where(run, path);
    return required(h5::text_attribute(open(run, path), name, place), name, place);
  }
  double number_attribute(const std::string& run, const std::string& path,
                          const std::string& name) const override {
    const std::string place = where(run, path);
    return required(h5::number_attribute(open(run, path), name, place), name, place);
  }

  ModelFacts model(const std::string& run) const override;
  RunInput input(const std::string& run) const override;

 private:
  std::string where(const std::string& run, const std::string& path) const {
    return path.empty() ? fmt::format("{}: {}", file_.path(), run)
                        : fmt::format("{}: {}/{}", file_.path(), run, path);
  }

  std::vector<double> checked(const std::string& run, const std::string& path,
                              std::vector<double> values) const {
    check_counts(path, values, where(run, path));
    return values;
  }

  template <class T>
  static T required(std::optional<T> value, const std::string& name, const std::string& place) {
    if (!value) {
      throw Error(ErrorKind::not_found, fmt::format("{}: no attribute {}", place, name));
    }
    return *std::move(value);
  }

  static int whole_number(const h5::Handle& object, const std::string& name,
                          const std::string& place) {
    const auto value = h5::number_attribute(object, name, place);
    if (!value) corrupt(fmt::format("{}: no attribute {}", place, name));
    if (!(*value >= 0) || *value > std::numeric_limits<int>::max() ||
        *value != std::floor(*value)) {
      corrupt(fmt::format("{}: attribute {}: expected a count, found {}", place, name, *value));
    }
    return static_cast<int>(*value);
  }

  void check_format() const;
  void find_runs();
  std::optional<h5::Handle> find(const std::string& run, const std::string& path) const;
  std::optional<h5::Handle> step(const h5::Handle& parent, const std::string& name,
                                 const std::string& run, const std::string& path) const;
  h5::Handle open(const std::string& run, const std::string& path) const;
  h5::Dataset dataset(const std::string& run, const std::string& path) const;
  Dims dims_if_there(const std::string& run, const std::string& path) const;
  RunShapes& shapes(const std::string& run) const;

  template <class T>
  static std::vector<T> read_box(const h5::Dataset& data, ElementType type, const Dims& start,
                                 const Dims& count) {
    std::vector<T> values;
    read_box_into(data, type, start, count, values);
    return values;
  }
  template <class T>
  static void read_box_into(const h5::Dataset& data, ElementType type, const Dims& start,
                            const Dims& count, std::vector<T>& into) {
    into.resize(static_cast<std::size_t>(data.readable(start, count)));
    data.read(start, count, type, into.data());
  }
  template <class T>
  std::vector<T> read_all(const std::string& run, const std::string& path, ElementType type) const {
    const h5::Dataset data = dataset(run, path);
    return read_box<T>(data, type, Dims(data.dims().size(), 0), data.dims());
  }

  h5::File file_;
  std::vector<std::string> runs_, edits_;
  std::string default_run_;
  int layers_done_ = 0, runs_done_ = 0, runs_begun_ = 0;
  bool is_complete_ = false;
  mutable std::string last_path_, last_leaf_;
  mutable h5::Handle last_group_, last_object_;
  mutable std::map<std::string, RunShapes> shapes_;  // of the runs that were asked for
};

void FileReader::check_format() const {
  const std::string& path = file_.path();
  const auto format = h5::text_attribute(file_.root(), "format", path);
  if (format != "sinkscope") {
    throw Error(ErrorKind::unsupported,
                fmt::format("{}: expected a capture (attribute format = \"sinkscope\"), found {}",
                            path, format ? '"' + *format + '"' : "an HDF5 file without it"));
  }
  const auto version = h5::number_attribute(file_.root(), "format_version", path);
  if (!version) corrupt(path + ": no attribute format_version");
  if (*version != kFormatVersion) {
    throw Error(ErrorKind::unsupported,
                fmt::format("{}: expected format version {}, found {}; a newer sinkscope reads it",
                            path, kFormatVersion, *version));
  }
}

void FileReader::find_runs() {
  for (const auto& name : h5::child_names(file_.root(), file_.path())) {
    if (run_number(name))
      runs_.push_back(name);
    else if (const auto cut = name.find("_edit"); cut != std::string::npos &&
                                                  run_number(name.substr(0, cut)) &&
                                                  edit_number(name, name.substr(0, cut)))
      edits_.push_back(name);
  }
  std::sort(edits_.begin(), edits_.end(), [](const auto& a, const auto& b) {
    const std::string run_a = a.substr(0, a.find("_edit")), run_b = b.substr(0, b.find("_edit"));
    return std::pair(run_number(run_a), edit_number(a, run_a)) <
           std::pair(run_number(run_b), edit_number(b, run_b));
  });
  std::sort(runs_.begin(), runs_.end(),
            [](const auto& a, const auto& b) { return run_number(a) < run_number(b); });
  const auto n_runs = static_cast<int>(runs_.size() + edits_.size());
  if (runs_begun_ > n_runs || runs_done_ > runs_begun_)
    corrupt(
        fmt::format("{}: attributes runs_done and runs_begun: expected at most the {} runs "
                    "there are, in this order, found {} and {}",
                    file_.path(), n_runs, runs_done_, runs_begun_));
  if (runs_.empty()) runs_ = edits_;  // their baselines are in another file
  if (runs_.empty()) corrupt(file_.path() + ": no run (run0, run1, …) in it");
  default_run_ = h5::text_attribute(file_.root(), "default", file_.path()).value_or(runs_.front());
  if (std::find(runs_.begin(), runs_.end(), default_run_) == runs_.end()) {
    default_run_ = runs_.front();
  }
}

// Walks down component by component, because HDF5 itself would follow a link anywhere. The group it
// came through last is kept open, and what it found there: arrays are read group by group, and each
// is asked for more than once (is it there, how large, its values).
std::optional<h5::Handle> FileReader::find(const std::string& run, const std::string& path) const {
  std::vector<std::string_view> parts = split(path, '/');
  parts.insert(parts.begin(), run);
  const std::string leaf(parts.back());
  parts.pop_back();
  const std::string group = fmt::format("{}", fmt::join(parts, "/"));
  if (!last_group_ || last_path_ != group) {
    h5::Handle at;
    for (const auto part : parts) {
      auto next = step(at ? at : file_.root(), std::string(part), run, path);
      if (!next) return std::nullopt;
      at = *std::move(next);
    }
    last_group_ = std::move(at);
    last_path_ = group;
    last_object_.reset();
  }
  if (!last_object_ || last_leaf_ != leaf) {
    auto found = step(last_group_ ? last_group_ : file_.root(), leaf, run, path);
    if (!found) return std::nullopt;
    last_object_ = *std::move(found);
    last_leaf_ = leaf;
  }
  return last_object_.share();
}

std::optional<h5::Handle> FileReader::step(const h5::Handle& parent, const std::string& name,
                                           const std::string& run, const std::string& path) const {
  if (name.empty() || name == "." || name.find('/') != std::string::npos) return std::nullopt;
  if (h5::object_kind(parent) != h5::ObjectKind::group) return std::nullopt;
  const h5::LinkKind kind = h5::link_kind(parent, name);
  if (kind == h5::LinkKind::absent) return std::nullopt;
  if (kind == h5::LinkKind::other) {
    corrupt(fmt::format("{}: {} is a link to somewhere else; only what lies in the file is read",
                        where(run, path), name));
  }
  return h5::open_object(parent, name, where(run, path));
}

h5::Handle FileReader::open(const std::string& run, const std::string& path) const {
  if (auto found = find(run, path)) return *std::move(found);
  if (!find(run, "")) {
    throw Error(ErrorKind::not_found, fmt::format("{}: no run named {}; it has {}", file_.path(),
                                                  run, fmt::join(runs_, ", ")));
  }
  throw Error(ErrorKind::not_found, where(run, path) + " is not in this capture");
}

h5::Dataset FileReader::dataset(const std::string& run, const std::string& path) const {
  h5::Handle object = open(run, path);
  if (h5::object_kind(object) != h5::ObjectKind::dataset) {
    corrupt(where(run, path) + ": expected a dataset, found a group");
  }
  h5::Dataset data = h5::Dataset::open_for_reading(std::move(object), where(run, path));
  if (const DatasetRule* rule = find_rule(path)) {
    if ((rule->type == ElementType::text) != (data.type() == ElementType::text)) {
      const bool is_text = rule->type == ElementType::text;
      corrupt(fmt::format("{}: expected {}, found {}", where(run, path),
                          is_text ? "text" : "numbers", is_text ? "numbers" : "text"));
    }
    shapes(run).check(path, data.dims(), where(run, path));
  }
  return data;
}

// Unchecked: the sizes that others are checked against.
Dims FileReader::dims_if_there(const std::string& run, const std::string& path) const {
  auto object = find(run, path);
  if (!object || h5::object_kind(*object) != h5::ObjectKind::dataset) return {};
  return h5::Dataset::open_for_reading(*std::move(object), where(run, path)).dims();
}

RunShapes& FileReader::shapes(const std::string& run) const {
  if (const auto known = shapes_.find(run); known != shapes_.end()) return known->second;
  RunShapes made(
      model(run), [this, run](const std::string& path) { return dims_if_there(run, path); },
      where(run, ""));
  return shapes_.emplace(run, std::move(made)).first->second;
}

ModelFacts FileReader::model(const std::string& run) const {
  const h5::Handle group = open(run, "model");
  const std::string place = where(run, "model");
  const auto text = [&](const char* name) {
    return required(h5::text_attribute(group, name, place), name, place);
  };
  const auto number = [&](const char* name) { return whole_number(group, name, place); };
  const auto within = [&](const char* name, int least, int most) {
    const int n = number(name);
    if (n < least || n > most)
      corrupt(fmt::format("{}: {}: expected {} to {}, found {}", place, name, least, most, n));
    return n;
  };
  ModelFacts facts;
  facts.name = text("name");
  facts.source = text("source");
  facts.fingerprint = text("fingerprint");
  facts.architecture = text("architecture");
  facts.n_layers = within("n_layers", 1, kMostLayers);
  facts.n_heads = within("n_heads", 0, kMostHeads);
  facts.n_kv_heads = within("n_kv_heads", 0, kMostHeads);
  facts.head_dim = number("head_dim");
  facts.d_model = number("d_model");
  facts.vocab_size = number("vocab_size");
  if (h5::has_attribute(group, "n_streams")) facts.n_streams = number("n_streams");
  const std::int64_t width = std::int64_t{facts.n_streams} * facts.d_model;
  if (facts.n_streams < 1 || width > std::numeric_limits<int>::max())
    corrupt(fmt::format("{}: {} streams of {} dimensions", place, facts.n_streams, facts.d_model));
  // Not read_text(): the shapes that it checks need these very facts.
  const auto texts =
      h5::Dataset::open_for_reading(open(run, "model/config"), where(run, "model/config"))
          .read_texts();
  if (texts.size() != 1) corrupt(where(run, "model/config") + ": expected one text");
  facts.config_text = texts[0];
  return facts;
}

RunInput FileReader::input(const std::string& run) const {
  RunInput out;
  out.name = h5::text_attribute(open(run, ""), "name", where(run, "")).value_or("");
  if (has(run, "whatif")) {
    out.what_if = read_text(run, "whatif");
    const std::string base = run.substr(0, run.find("_edit"));
    out.edit_of = run_number(base).value_or(-1);
    const auto text = [&](const char* name) {
      return h5::text_attribute(open(run, ""), name, where(run, "")).value_or("");
    };
    out.baseline_file = text("baseline_file");
    out.calibration_sha256 = text("calibration_sha256");
  }
  out.text = read_text(run, "input/text");
  out.token_ids = read_i32(run, "input/token_ids");
  out.token_text = read_texts(run, "input/token_text");
  out.bos_positions = read_i32(run, "input/bos_positions");
  out.tokenizer = text_attribute(run, "input", "tokenizer");
  for (const int position : out.bos_positions) {
    if (position < 0 || position >= out.seq_len()) {
      corrupt(fmt::format("{}: expected positions below {}, found {}",
                          where(run, "input/bos_positions"), out.seq_len(), position));
    }
  }
  return out;
}

}  // namespace

// A capture in memory is as far as it says as a whole.
bool is_run_done(const CaptureReader& reader, const std::string& run) {
  const auto* file = dynamic_cast<const FileReader*>(&reader);
  return file != nullptr ? file->is_done(run) : reader.complete();
}

std::unique_ptr<CaptureReader> CaptureReader::open(const std::string& path) {
  return std::make_unique<FileReader>(path);
}

}  // namespace sinkscope
