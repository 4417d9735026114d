// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "app/gui/run_desk.h"
#include "core/snapshot/rescaling_snapshot.h"

namespace sinkscope {

// The evidence about the selected run and its causal probes; these and what needs the model's
// weights run in the background when they are asked for.
class RescalingDesk : public RunDesk {
  Q_OBJECT

 public:
  RescalingDesk(Session& session, QWidget* panel);

  const RescalingState& state() const { return state_; }

  // What the evidence is about: "auto" (each token's largest) or dimensions, and the sink's key.
  void setEvidence(const std::string& dims, int key);
  // "auto", or ranges; `each`: every norm alone as well. As `sinkscope probe` does.
  void runProbes(const std::string& dims, bool each = false);
  void computeWithWeights();
  void cancel() { job_.cancel(); }

 private:
  void follow() override;
  void look() override;
  void publish() override;
  void jobFailed(const std::string& message) override { state_.probes_failure = message; }

  RescalingState state_;
  std::string dims_ = "auto";
  int key_ = 0;
  bool is_read_ = false;  // or being read
  int n_tables_ = 0;
};

}  // namespace sinkscope
