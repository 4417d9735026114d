// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "app/cli/console.h"
#include "core/job.h"

namespace sinkscope {

enum class ProgressMode { none, bar, json };

// `flag`: --progress auto|json|none; auto is a bar where a person watches, else nothing.
// Throws Error{invalid_argument}.
ProgressMode parse_progress_mode(const std::optional<std::string>& flag, const Console& console);

// Which of several jobs one is, from 1; `count` 0: it is the only one.
struct JobPlace {
  int number = 0, count = 0;
  std::string name;
};

// One look at a running job.
struct ProgressView {
  Stage stage = Stage::idle;
  int layer = 0, n_layers = 0;
  std::int64_t done = 0, total = 0;
  double seconds = 0;  // since the job began
  JobPlace place{};

  // Remaining seconds at the pace so far; nullopt before there is one.
  std::optional<double> seconds_left() const;
};

// "blocks.17 (18th of 30) ▓▓▓▓▓▓░░░░ 0:12 left"; of several jobs "3 of 100 run.h5  blocks.17 …"
std::string progress_bar(const ProgressView& view);
// {"schema":"sinkscope.progress/1","stage":"running","layer":17,"layers":30,"done":…,"total":…,
//  "seconds":…,"seconds_left":…}; of several jobs also "entry", "entries", "name"
std::string progress_json(const ProgressView& view);

// Prints a job's progress on the console's err.
class ProgressPrinter {
 public:
  ProgressPrinter(ProgressMode mode, Console& console, int n_layers, const JobPlace& place = {});
  ~ProgressPrinter();  // wipes the bar
  ProgressPrinter(const ProgressPrinter&) = delete;
  ProgressPrinter& operator=(const ProgressPrinter&) = delete;

  // To be called about ten times a second.
  void update(const Progress& progress);

 private:
  ProgressMode mode_;
  Console& console_;
  int n_layers_;
  JobPlace place_;
  std::chrono::steady_clock::time_point begin_, last_line_;
  std::optional<ProgressView> last_;
};

}  // namespace sinkscope
