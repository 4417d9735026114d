// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <memory>
#include <string>

#include "app/cli/temporary_folder.h"
#include "app/gui/background_job.h"
#include "app/gui/session.h"

namespace sinkscope {

// What the desks of two panels share: work on the selected run with the model that it was recorded
// of. Reads only while its panel is seen; what takes long runs in the background.
class RunDesk : public QObject {
  Q_OBJECT

 public:
  // `panel`: whose being shown counts.
  RunDesk(Session& session, QWidget* panel);
  ~RunDesk() override;

  const BackgroundJob& job() const { return job_; }

 signals:
  void changed();  // the state of the desk has
  void progressed(const sinkscope::ProgressView& view);

 protected:
  virtual void follow() = 0;   // what is open and selected
  virtual void look() = 0;     // reads what the panel shows, unless that was done; it is seen
  virtual void publish() = 0;  // ends with changed()
  virtual void jobFailed(const std::string& message) = 0;  // about the run that is selected

  bool eventFilter(QObject* watched, QEvent* event) override;

  // Progress and the end of a job are told; its failure only where it is about the selected run.
  void listenTo(BackgroundJob& job);
  bool isSeen() const;  // the panel is
  // The open model of the selected run; null = it is not open, or no run is selected.
  std::shared_ptr<const OpenModel> model() const;
  // Why that model cannot be run again; empty = it can.
  std::string obstacle() const;
  // For what is made here; goes with the desk and the jobs that hold it. Throws Error{io}.
  std::shared_ptr<TemporaryFolder> folder();

  static const char* const kTwin;  // the obstacle of an edited run

  Session& session_;
  std::shared_ptr<const RunFacts> run_;      // the selected one; null = none
  std::shared_ptr<const RunFacts> job_run_;  // what job_ is about
  BackgroundJob job_;
  std::shared_ptr<OpenFiles> files_;  // the worker's
  std::unique_ptr<Worker> worker_;

 private:
  QWidget& panel_;
  std::shared_ptr<TemporaryFolder> folder_;
};

}  // namespace sinkscope
