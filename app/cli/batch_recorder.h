// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "app/cli/batch_table.h"
#include "app/cli/capture_job.h"
#include "app/cli/console.h"
#include "app/cli/progress.h"

namespace sinkscope {

// What a model is opened by: its path, whether its index is ignored, its architecture's file.
using ModelKey = std::tuple<std::string, bool, std::string>;

// Records the entries of a manifest one after the other and says in `report` what became of each.
// An entry that fails does not stop the others. `report` and `console` must outlive it.
class BatchRecorder {
 public:
  BatchRecorder(std::vector<BatchEntry> entries, BatchReport& report, Console& console);

  // Every name is free, or --force or --resume says what to do. Before anything is recorded. Throws
  // what require_free_name throws, naming the entry.
  void require_free_names() const;

  // Models that cannot be opened and files that are not there are told at once, not after hours.
  void foresee();

  // False: canceled.
  bool run();

 private:
  void fail(const BatchEntry& entry, const Failure& failure);
  bool record(const BatchEntry& entry);  // false: canceled
  void require_same_entry(const BatchEntry& entry);
  CaptureJob plan(const BatchEntry& entry, CaptureFlags& flags);
  std::shared_ptr<const ModelFiles> open(const CaptureFlags& flags, Console& console);
  void take_rows(const BatchEntry& entry);

  std::vector<BatchEntry> entries_;
  BatchReport& report_;
  Console& console_;
  std::shared_ptr<const ModelFiles> model_;  // once for entries that follow each other
  ModelKey model_key_;
  JobPlace place_;
  std::map<int, Failure> foreseen_;  // by entry; these are not tried
};

}  // namespace sinkscope
