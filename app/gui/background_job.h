// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QTimer>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "app/cli/progress.h"
#include "app/gui/worker.h"
#include "core/job.h"

namespace sinkscope {

// One long job of the engine at a time, on a thread of its own. Starting another stops the one that
// runs, whose result nobody gets.
class BackgroundJob : public QObject {
  Q_OBJECT

 public:
  // Runs off the window's thread and returns what to do with the result on it; nullopt when it was
  // stopped. What it throws is answered with failed().
  using Work = std::function<std::optional<Worker::Deliver>(JobContext)>;

  explicit BackgroundJob(QObject* parent = nullptr);
  ~BackgroundJob() override;

  void start(int n_layers, Work work);
  void cancel();
  bool isRunning() const { return is_running_; }

 signals:
  void progressed(const sinkscope::ProgressView& view);  // ten times a second
  void finished();                                       // after the result is there
  void canceled();
  void failed(const QString& message);

 private:
  void poll();
  void end();

  bool is_running_ = false;
  int n_layers_ = 0;
  std::shared_ptr<Progress> progress_;
  std::chrono::steady_clock::time_point begin_;
  QTimer timer_;
  std::unique_ptr<Worker> worker_;  // last: joined first
};

// Of a running job: 0 to 1, or −1 while it is not known; and where it is, "L17".
double job_share(const ProgressView& view);
QString job_text(const ProgressView& view);

}  // namespace sinkscope
