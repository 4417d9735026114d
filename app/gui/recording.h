// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QTimer>
#include <chrono>
#include <memory>
#include <string>

#include "app/cli/progress.h"
#include "app/gui/capture_plan.h"
#include "app/gui/worker.h"
#include "core/job.h"

namespace sinkscope {

// One recording at a time, on a thread of its own.
class Recording : public QObject {
  Q_OBJECT

 public:
  explicit Recording(QObject* parent = nullptr);
  ~Recording() override;  // stops a running one; its whole layers stay in PATH.part

  bool isRunning() const { return is_running_; }
  const std::string& path() const { return path_; }
  // Only while none is running. Answers with finished(), canceled() or failed().
  void start(std::shared_ptr<const ModelFiles> model, const CapturePlan& plan,
             const std::string& path, CaptureWriter::Existing existing);
  void cancel();

 signals:
  void progressed(const sinkscope::ProgressView& view);  // ten times a second
  void finished(const QString& path);
  void canceled(const QString& partPath);  // "" when nothing was recorded yet
  void failed(const QString& message);

 private:
  void poll();
  void end();

  std::string path_;
  bool is_running_ = false;
  int n_layers_ = 0;
  std::shared_ptr<Progress> progress_;
  std::chrono::steady_clock::time_point begin_;
  QTimer timer_;
  std::unique_ptr<Worker> worker_;
};

}  // namespace sinkscope
