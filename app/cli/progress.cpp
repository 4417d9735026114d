// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "app/cli/format_text.h"
#include "core/error.h"
#include "core/site_name.h"

namespace sinkscope {
namespace {

constexpr int kBarCells = 24;
// JSON lines come when the layer changes and at least this often.
constexpr std::chrono::seconds kLongestSilence{2};

const char* stage_name(Stage stage) {
  switch (stage) {
    case Stage::idle:
      return "starting";
    case Stage::reading:
      return "reading";
    case Stage::running:
      return "running";
    case Stage::head:
      return "head";
    case Stage::closing:
      return "closing";
  }
  return "";
}

}  // namespace

ProgressMode parse_progress_mode(const std::optional<std::string>& flag, const Console& console) {
  const std::string mode = flag.value_or("auto");
  if (mode == "none") return ProgressMode::none;
  if (mode == "json") return ProgressMode::json;
  if (mode != "auto")
    throw Error(ErrorKind::invalid_argument,
                fmt::format("--progress: expected auto, json or none, found '{}'", mode));
  const bool is_watched = console.err_is_terminal && console.verbosity != Verbosity::quiet;
  return is_watched ? ProgressMode::bar : ProgressMode::none;
}

std::optional<double> ProgressView::seconds_left() const {
  if (done <= 0 || total <= 0 || done > total) return std::nullopt;
  return seconds * static_cast<double>(total - done) / static_cast<double>(done);
}

std::string progress_bar(const ProgressView& view) {
  const bool in_layers = view.stage == Stage::running || view.stage == Stage::reading;
  const std::string where =
      in_layers ? layer_label(view.layer, view.n_layers) : std::string(stage_name(view.stage));
  const std::int64_t filled =
      view.total > 0 ? std::clamp<std::int64_t>(view.done * kBarCells / view.total, 0, kBarCells)
                     : 0;
  std::string bar;
  for (int cell = 0; cell < kBarCells; ++cell) bar += cell < filled ? "▓" : "░";
  const auto left = view.seconds_left();
  const std::string which = view.place.count > 0 ? fmt::format("{} of {} {}  ", view.place.number,
                                                               view.place.count, view.place.name)
                                                 : std::string();
  return fmt::format("{}{} {} {}", which, where, bar,
                     left ? fmt::format("{} left", format_duration(*left)) : std::string());
}

std::string progress_json(const ProgressView& view) {
  nlohmann::ordered_json line = {{"schema", "sinkscope.progress/1"},
                                 {"stage", stage_name(view.stage)},
                                 {"layer", view.layer},
                                 {"layers", view.n_layers},
                                 {"done", view.done},
                                 {"total", view.total},
                                 {"seconds", view.seconds},
                                 {"seconds_left", nullptr}};
  if (const auto left = view.seconds_left()) line["seconds_left"] = *left;
  if (view.place.count > 0) {
    line["entry"] = view.place.number;
    line["entries"] = view.place.count;
    line["name"] = view.place.name;
  }
  return line.dump();
}

ProgressPrinter::ProgressPrinter(ProgressMode mode, Console& console, int n_layers,
                                 const JobPlace& place)
    : mode_(mode),
      console_(console),
      n_layers_(n_layers),
      place_(place),
      begin_(std::chrono::steady_clock::now()) {}

ProgressPrinter::~ProgressPrinter() {
  if (mode_ == ProgressMode::bar && last_) console_.err << "\r\033[K" << std::flush;
}

void ProgressPrinter::update(const Progress& progress) {
  if (mode_ == ProgressMode::none) return;
  const auto now = std::chrono::steady_clock::now();
  ProgressView view{progress.stage, progress.layer,
                    n_layers_,      progress.done,
                    progress.total, std::chrono::duration<double>(now - begin_).count(),
                    place_};
  if (mode_ == ProgressMode::bar) {
    console_.err << "\r\033[K" << progress_bar(view) << std::flush;
  } else if (!last_ || last_->stage != view.stage || last_->layer != view.layer ||
             now - last_line_ >= kLongestSilence) {
    console_.err << progress_json(view) << std::endl;
    last_line_ = now;
  }
  last_ = view;
}

}  // namespace sinkscope
