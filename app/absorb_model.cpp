// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/absorb_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "app/cli/temporary_folder.h"
#include "app/record_capture.h"
#include "core/capture_reader.h"
#include "core/error.h"
#include "core/output_path.h"
#include "core/sink_report.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

// A recording of one model on the prompts, with its logits.
struct Checked {
  std::unique_ptr<CaptureReader> reader;
  SinkReport report;
};

std::optional<Checked> record(const ModelFiles& model, CaptureRequest request,
                              const std::string& path, JobContext job) {
  request.record = {};
  request.record.stream = false;
  request.record.logits = true;
  request.dtype = RunDtype::float32;  // what the self-check is stated for
  if (!record_capture(model, request, plan_capture(model, request), path,
                      CaptureWriter::Existing::refuse, job))
    return std::nullopt;
  Checked made{CaptureReader::open(path), {}};
  made.report = sink_report(*made.reader, made.reader->runs(), SinkOptions{});
  return made;
}

// Largest |h_d| over all sites and runs, and the median over dimensions of the same.
struct Sizes {
  std::vector<double> of;
  double typical = 0;
};

Sizes sizes_of(const CaptureReader& reader) {
  Sizes sizes;
  const int D = reader.model(reader.runs().front()).d_model;
  sizes.of.assign(static_cast<std::size_t>(D), 0.0);
  for (const std::string& run : reader.runs())
    for (const char* hook : {"hook_resid_pre", "hook_resid_mid", "hook_resid_post"})
      for (const char* part : {"dim_first", "dim_rest"}) {
        const std::string path = fmt::format("stats/{}/{}/max_abs", hook, part);
        if (!reader.has(run, path)) continue;  // parallel blocks have no state in the middle
        const auto values = reader.read_f64(run, path);
        for (std::size_t i = 0; i < values.size(); ++i) {
          double& size = sizes.of[i % sizes.of.size()];
          if (values[i] > size) size = values[i];
        }
      }
  std::vector<double> sorted = sizes.of;
  std::nth_element(sorted.begin(), sorted.begin() + (D - 1) / 2, sorted.end());
  sizes.typical = sorted[static_cast<std::size_t>((D - 1) / 2)];
  return sizes;
}

std::vector<int> chosen_dims(const AbsorbRequest& request, const SinkReport& report) {
  if (!request.dims.empty()) return request.dims;
  std::set<int> dims;
  for (const auto& [dim, runs] : report.all.runs_with_massive_dim) dims.insert(dim);
  for (const auto& sink : report.all.residual.sinks) dims.insert(sink.dim);
  if (dims.empty())
    throw Error(
        ErrorKind::invalid_argument,
        "--dims auto: no massive dimension and no residual sink on these prompts; name one");
  return {dims.begin(), dims.end()};
}

Absorption absorption_of(const AbsorbRequest& request, const Checked& before) {
  Absorption absorption;
  absorption.dims = chosen_dims(request, before.report);
  absorption.describes_itself = request.describes_itself;
  const Sizes sizes = sizes_of(*before.reader);
  for (int d : absorption.dims)
    absorption.factors.push_back(
        request.factor ? *request.factor
        : d < static_cast<int>(sizes.of.size())
            ? absorbing_factor(sizes.of[static_cast<std::size_t>(d)], sizes.typical)
            : 1);
  return absorption;
}

void compare_logits(const CaptureReader& a, const CaptureReader& b, AbsorbOutcome& outcome) {
  for (const std::string& run : a.runs()) {
    const auto dims = a.dims(run, "logits/full");
    for (std::int64_t t = 0; t < dims[0]; ++t) {
      const auto x = a.read_f64(run, "logits/full", {t, 0}, {1, dims[1]}),
                 y = b.read_f64(run, "logits/full", {t, 0}, {1, dims[1]});
      for (std::size_t i = 0; i < x.size(); ++i) {
        outcome.largest_logit = std::max(outcome.largest_logit, std::abs(x[i]));
        outcome.logit_difference = std::max(outcome.logit_difference, std::abs(x[i] - y[i]));
        if (!std::isfinite(x[i]) || !std::isfinite(y[i])) outcome.logit_difference = HUGE_VAL;
      }
    }
  }
}

double max_abs(const SinkReport& report) {
  double most = 0;
  for (const Peak& peak : report.runs.front().residual.max_abs) most = std::max(most, peak.value);
  return most;
}

double kurtosis(const SinkReport& report) {
  for (const auto& [flavor, values] : report.runs.front().residual.kurtosis) {
    if (flavor != "pearson_tensor") continue;
    double most = 0;
    for (double value : values) most = value > most ? value : most;
    return most;
  }
  return std::nan("");
}

// The unfinished folder, which goes unless it was given its name.
struct Part {
  std::string path;
  ~Part() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

}  // namespace

void require_new_folder(const std::string& output) {
  if (output.empty())
    throw Error(ErrorKind::invalid_argument, "-o: expected a folder's name, found an empty one");
  for (const std::string& path : {output, output + ".part"})
    if (is_taken(path))
      throw Error(ErrorKind::invalid_argument, fmt::format("{}: exists already", path));
}

std::optional<AbsorbOutcome> absorb_model(const ModelFiles& model, const AbsorbRequest& request,
                                          JobContext job) {
  require_new_folder(request.output);
  const TemporaryFolder folder;
  const auto before = record(model, request.run, folder.file("before.h5"), job);
  if (!before) return std::nullopt;
  AbsorbOutcome outcome;
  outcome.absorption = absorption_of(request, *before);
  const Part part{request.output + ".part"};
  if (!write_absorbed(model, outcome.absorption, part.path, job.stop)) return std::nullopt;
  const auto absorbed = open_model(part.path);
  const auto after = record(*absorbed, request.run, folder.file("after.h5"), job);
  if (!after) return std::nullopt;
  compare_logits(*before->reader, *after->reader, outcome);
  outcome.max_abs_before = max_abs(before->report);
  outcome.max_abs_after = max_abs(after->report);
  outcome.kurtosis_before = kurtosis(before->report);
  outcome.kurtosis_after = kurtosis(after->report);
  if (!(outcome.relative() <= request.tolerance)) return outcome;
  std::error_code failure;
  fs::rename(part.path, request.output, failure);
  if (failure)
    throw Error(ErrorKind::io,
                fmt::format("{}: cannot be made: {}", request.output, failure.message()));
  outcome.is_kept = true;
  return outcome;
}

std::string absorb_text(const AbsorbOutcome& outcome) {
  const std::string check =
      fmt::format("largest logit difference {:.3g} ({:.2g} of the largest logit)",
                  outcome.logit_difference, outcome.relative());
  return fmt::format(
      "dimensions {} by {}\n{}: {}\n"
      "residual stream  max |x| {:.6g} -> {:.6g}   kurtosis (Pearson, largest site) {:.6g} -> "
      "{:.6g}",
      fmt::join(outcome.absorption.dims, ", "), fmt::join(outcome.absorption.factors, ", "), check,
      outcome.is_kept ? "the same function" : "not the same function, nothing is kept",
      outcome.max_abs_before, outcome.max_abs_after, outcome.kurtosis_before,
      outcome.kurtosis_after);
}

}  // namespace sinkscope
