// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <memory>
#include <string>

#include "app/cli/temporary_folder.h"
#include "app/gui/background_job.h"
#include "app/gui/session.h"
#include "core/snapshot/rescaling_snapshot.h"

namespace sinkscope {

// The evidence about the selected run and its causal probes. Reads only while its panel is seen;
// probes and what needs the model's weights run in the background when they are asked for.
class RescalingDesk : public QObject {
  Q_OBJECT

 public:
  // `panel`: whose being shown counts.
  RescalingDesk(Session& session, QWidget* panel);
  ~RescalingDesk() override;

  const RescalingState& state() const { return state_; }
  const BackgroundJob& job() const { return job_; }

  // What the evidence is about: "auto" (each token's largest) or dimensions, and the sink's key.
  void setEvidence(const std::string& dims, int key);
  void runProbes(const std::string& dims);  // "auto", or ranges; as `sinkscope probe` does
  void computeWithWeights();
  void cancel() { job_.cancel(); }

 signals:
  void changed();  // state() has
  void progressed(const sinkscope::ProgressView& view);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void follow();
  void refresh();
  void publish();
  std::string obstacle() const;

  Session& session_;
  QWidget& panel_;
  RescalingState state_;
  std::shared_ptr<const RunFacts> run_;  // what state_ is about
  std::string dims_ = "auto";
  int key_ = 0;
  bool is_read_ = false;  // or being read
  int n_tables_ = 0;
  std::shared_ptr<TemporaryFolder> folder_;  // of the probes' tables; null until the first
  std::shared_ptr<const RunFacts> job_run_;  // what job_ is about
  BackgroundJob job_;
  std::shared_ptr<OpenFiles> files_;  // the worker's
  std::unique_ptr<Worker> worker_;    // last: joined first
};

}  // namespace sinkscope
