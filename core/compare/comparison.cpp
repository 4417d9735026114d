// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/compare/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/capture_check.h"
#include "core/error.h"
#include "core/number_text.h"
#include "core/snapshot/input_notes.h"

namespace sinkscope {
namespace {

// A tile of each side: 2 × 8 MiB as doubles.
constexpr std::int64_t kTileElements = std::int64_t{1} << 20;

// Lists that say what the indices of others mean; they are used, not compared.
bool is_list(const std::string& path) {
  return path.starts_with("input/") || path.starts_with("provenance/") ||
         path.ends_with("/layers") || path.starts_with("attention/pattern_");
}
bool is_integer(const CaptureReader& reader, const std::string& run, const std::string& path) {
  const ElementType type = reader.type(run, path);
  return type == ElementType::i32 || type == ElementType::i64;
}

std::vector<std::string> compared_datasets(const ComparedRun& side) {
  std::vector<std::string> paths = dataset_paths(*side.reader, side.run);
  std::erase_if(paths, [&](const std::string& path) {
    return is_list(path) || side.reader->type(side.run, path) == ElementType::text;
  });
  return paths;
}

std::vector<std::string> missing_in(const std::vector<std::string>& have,
                                    const std::vector<std::string>& other) {
  std::vector<std::string> missing;
  for (const std::string& path : have)
    if (std::find(other.begin(), other.end(), path) == other.end()) missing.push_back(path);
  return missing;
}

void note_provenance(const ComparedRun& a, const ComparedRun& b, std::vector<std::string>& notes) {
  const std::pair<const char*, const char*> texts[] = {
      {"provenance/command", "Recorded differently"},
      {"provenance/dtype", "Different arithmetic"},
      {"provenance/device", "Different devices"},
      {"provenance/kernel", "Different kernels"},
      {"provenance/torch", "Different LibTorch"}};
  for (const auto& [path, title] : texts) {
    if (!a.reader->has(a.run, path) || !b.reader->has(b.run, path)) continue;
    const std::string left = a.reader->read_text(a.run, path),
                      right = b.reader->read_text(b.run, path);
    if (left != right)
      notes.push_back(fmt::format("{}: '{}' in A, '{}' in B.", title, left, right));
  }
}

void note_edits(const RunInput& a, const RunInput& b, std::vector<std::string>& notes) {
  if (a.what_if == b.what_if) return;
  const auto text = [](const RunInput& input) {
    return input.what_if.empty() ? std::string("the model as it is") : input.what_if;
  };
  notes.push_back(fmt::format("Different what-ifs: {} in A, {} in B.", text(a), text(b)));
}

MemberShift member_shift(std::vector<int> a, std::vector<int> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  MemberShift shift;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(shift.only_a));
  std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(shift.only_b));
  return shift;
}

std::vector<int> tokens_of(const AttentionSinks& attention) {
  std::vector<int> tokens;
  for (const SinkToken& token : attention.sink_tokens) tokens.push_back(token.token);
  return tokens;
}

std::vector<int> dims_of(const ResidualReport& residual) {
  std::vector<int> dims;
  for (const ResidualSink& sink : residual.sinks) dims.push_back(sink.dim);
  return dims;
}

// The head whose score moved most, among blocks that both have.
std::optional<SiteDifference> head_shift(const AttentionSinks& a, const AttentionSinks& b) {
  std::optional<SiteDifference> most;
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    const auto found = std::find(b.layers.begin(), b.layers.end(), a.layers[i]);
    if (found == b.layers.end()) continue;
    const auto row_a = static_cast<Eigen::Index>(i);
    const auto row_b = static_cast<Eigen::Index>(found - b.layers.begin());
    for (Eigen::Index h = 0; h < std::min(a.gu.score.cols(), b.gu.score.cols()); ++h) {
      const double left = a.gu.score(row_a, h), right = b.gu.score(row_b, h);
      const double moved = std::abs(right - left);
      if (std::isnan(moved) || (most && moved <= most->largest)) continue;
      SiteDifference here;
      here.layer = a.layers[i];
      here.largest = moved;
      here.value_a = left;
      here.value_b = right;
      here.place = {{"head", static_cast<int>(h)}};
      most = here;
    }
  }
  return most;
}

std::pair<Peak, std::string> largest_of(const ResidualReport& residual) {
  std::pair<Peak, std::string> largest;
  largest.first.token = -1;
  for (std::size_t s = 0; s < residual.max_abs.size(); ++s) {
    const Peak& peak = residual.max_abs[s];
    if (peak.token < 0 || (largest.first.token >= 0 && peak.value <= largest.first.value)) continue;
    largest = {peak, residual.sites[s]};
  }
  return largest;
}

void compare_sinks(const ComparedRun& a, const ComparedRun& b, RunComparison& out) {
  const RunReport left = sink_report(*a.reader, {a.run}, SinkOptions{}).runs.front();
  const RunReport right = sink_report(*b.reader, {b.run}, SinkOptions{}).runs.front();
  const std::vector<Quantity> after = quantities(right);
  for (const Quantity& before : quantities(left)) {
    if (before.axis != Quantity::Axis::none || before.name == "tokens") continue;
    for (const Quantity& q : after)
      if (q.name == before.name && q.axis == Quantity::Axis::none)
        out.shifts.push_back({q.name, before.values.front(), q.values.front()});
  }
  out.head = head_shift(left.attention, right.attention);
  out.sink_tokens = member_shift(tokens_of(left.attention), tokens_of(right.attention));
  out.sink_dims = member_shift(dims_of(left.residual), dims_of(right.residual));
  const auto [peak_a, site_a] = largest_of(left.residual);
  const auto [peak_b, site_b] = largest_of(right.residual);
  if (peak_a.token >= 0 && peak_b.token >= 0) out.largest = {peak_a, peak_b};
  out.largest_site_a = site_a;
  out.largest_site_b = site_b;
}

// Whether both hold the same blocks, sites, heads, rows, positions … of an array.
bool have_same_axes(const ComparedRun& a, const ComparedRun& b, const std::string& path,
                    const std::vector<CommonAxis>& axes) {
  if (axes.empty()) return a.reader->dims(a.run, path) == b.reader->dims(b.run, path);
  return std::all_of(axes.begin(), axes.end(),
                     [](const CommonAxis& axis) { return axis.is_whole; });
}

void compare_arrays(const ComparedRun& a, const ComparedRun& b, int layers_end,
                    RunComparison& out) {
  const std::vector<std::string> in_a = compared_datasets(a), in_b = compared_datasets(b);
  out.only_a = missing_in(in_a, in_b);
  out.only_b = missing_in(in_b, in_a);
  for (const std::string& path : in_a) {
    if (std::find(in_b.begin(), in_b.end(), path) == in_b.end()) continue;
    // What comes after the blocks is there when they all are.
    const bool is_early = path.starts_with("logits/") || path == "residual/final_norm" ||
                          path.starts_with("compare/");
    if (is_early && layers_end != kAllLayers) continue;
    const std::vector<CommonAxis> axes = common_axes(a, b, path, layers_end);
    const auto found = array_differences(a, b, path, axes, kTileElements);
    if (!have_same_axes(a, b, path, axes)) out.in_part.push_back(path);
    if (!is_integer(*a.reader, a.run, path)) {
      out.sites.insert(out.sites.end(), found.begin(), found.end());
      continue;
    }
    IndexDifference indices{path, 0, 0};
    for (const SiteDifference& site : found) {
      indices.n_compared += site.n_compared;
      indices.n_unequal += site.n_unequal;
    }
    out.indices.push_back(indices);
  }
}

RunComparison compare_runs(const ComparedRun& a, const ComparedRun& b) {
  RunComparison out;
  out.run_a = a.run;
  out.run_b = b.run;
  out.input_a = a.reader->input(a.run);
  out.input_b = b.reader->input(b.run);
  out.same_tokens = out.input_a.token_ids == out.input_b.token_ids;
  note_models(a.reader->model(a.run), "A", b.reader->model(b.run), "B", out.notes);
  note_inputs(out.input_a, "A", out.input_b, "B", out.notes);
  note_edits(out.input_a, out.input_b, out.notes);
  note_provenance(a, b, out.notes);
  int layers_end = kAllLayers;
  for (const ComparedRun& side : {a, b})
    if (!side.reader->complete())
      layers_end = std::min(layers_end, side.reader->whole_layers(side.run));
  if (layers_end != kAllLayers)
    out.notes.push_back(
        fmt::format("Not complete: only the first {} blocks are compared.", layers_end));
  compare_arrays(a, b, layers_end, out);
  if (layers_end > 0) compare_sinks(a, b, out);
  return out;
}

void require_run(const CaptureReader& reader, const std::string& run) {
  if (!run.empty() && !reader.has(run, "input/token_ids"))
    throw Error(ErrorKind::not_found, fmt::format("{}: no run {}", reader.path(), run));
}

}  // namespace

Comparison compare_captures(const CaptureReader& a, const std::string& run_a,
                            const CaptureReader& b, const std::string& run_b) {
  require_run(a, run_a);
  require_run(b, run_b);
  Comparison out;
  out.path_a = a.path();
  out.path_b = b.path();
  out.model_a = a.model(run_a.empty() ? a.default_run() : run_a);
  out.model_b = b.model(run_b.empty() ? b.default_run() : run_b);
  out.complete = a.complete() && b.complete();
  if (!run_a.empty() || !run_b.empty()) {
    // One name for both, unless each has its own.
    out.runs.push_back(
        compare_runs({&a, run_a.empty() ? run_b : run_a}, {&b, run_b.empty() ? run_a : run_b}));
    return out;
  }
  out.runs_only_a = missing_in(a.runs(), b.runs());
  out.runs_only_b = missing_in(b.runs(), a.runs());
  for (const std::string& run : a.runs())
    if (std::find(b.runs().begin(), b.runs().end(), run) != b.runs().end())
      out.runs.push_back(compare_runs({&a, run}, {&b, run}));
  return out;
}

bool is_judged(const IndexDifference& index) {
  return index.dataset == "attention/visible" || index.dataset.ends_with("/n_nan") ||
         index.dataset.ends_with("/n_inf");
}

bool is_judged(const SiteDifference& site) {
  for (const char* sum : {"/m2", "/m3", "/m4"})
    if (site.dataset.ends_with(sum)) return false;
  return true;
}

namespace {

// "attention/pattern, logits/full and 3 more"
std::string names_text(const std::vector<std::string>& paths) {
  constexpr std::size_t kNamed = 4;
  const auto shown = static_cast<std::ptrdiff_t>(std::min(kNamed, paths.size()));
  std::string text = fmt::format("{}", fmt::join(paths.begin(), paths.begin() + shown, ", "));
  if (paths.size() > kNamed) text += fmt::format(" and {} more", paths.size() - kNamed);
  return text;
}

// What makes two runs no replicas of each other, whatever their numbers are.
void judge_shape(const RunComparison& run, const std::string& where,
                 std::vector<std::string>& reasons) {
  if (!run.same_tokens) reasons.push_back(where + ": other tokens");
  if (!run.only_a.empty())
    reasons.push_back(fmt::format("{}: only A has {}", where, names_text(run.only_a)));
  if (!run.only_b.empty())
    reasons.push_back(fmt::format("{}: only B has {}", where, names_text(run.only_b)));
  if (!run.in_part.empty())
    reasons.push_back(
        fmt::format("{}: of other shape or other blocks: {}", where, names_text(run.in_part)));
  for (const IndexDifference& counts : run.indices)
    if (is_judged(counts) && counts.n_unequal > 0)
      reasons.push_back(fmt::format("{}: {}: {} of {} counts are others", where, counts.dataset,
                                    counts.n_unequal, counts.n_compared));
}

}  // namespace

Verdict judge(const std::vector<Comparison>& comparisons, double tolerance) {
  Verdict verdict;
  verdict.tolerance = tolerance;
  std::vector<std::pair<double, std::string>> beyond;
  std::int64_t n_judged = 0;
  for (const Comparison& c : comparisons) {
    if (!c.complete)
      verdict.reasons.push_back(fmt::format("{} and {} are not both complete", c.path_a, c.path_b));
    if (!c.runs_only_a.empty() || !c.runs_only_b.empty())
      verdict.reasons.push_back(
          fmt::format("{} and {} do not have the same runs", c.path_a, c.path_b));
    for (const RunComparison& run : c.runs) {
      const std::string where = fmt::format("{}::{}", c.path_b, run.run_b);
      judge_shape(run, where, verdict.reasons);
      for (const SiteDifference& site : run.sites) {
        if (!is_judged(site)) continue;
        n_judged += site.n_compared;
        if (site.scaled > tolerance)
          beyond.emplace_back(site.scaled,
                              fmt::format("{}: {}: {}", where, site.site, readable(site.scaled)));
        if (site.n_non_finite > 0)
          verdict.reasons.push_back(fmt::format("{}: {}: {} values are finite in one only", where,
                                                site.site, site.n_non_finite));
      }
    }
  }
  if (n_judged == 0) verdict.reasons.emplace_back("nothing could be compared");
  std::stable_sort(beyond.begin(), beyond.end(),
                   [](const auto& left, const auto& right) { return left.first > right.first; });
  for (auto& [scaled, text] : beyond) verdict.reasons.push_back(std::move(text));
  verdict.is_within = verdict.reasons.empty();
  return verdict;
}

}  // namespace sinkscope
