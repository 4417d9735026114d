// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/gui/run_desk.h"
#include "app/record_what_if.h"
#include "core/snapshot/what_if_snapshot.h"

namespace sinkscope {

// The what-if that the user works on: its edits with their history, the rerun of the model in the
// background, and what it showed. Results are captures in a folder that goes with the desk; they
// may be saved elsewhere.
class WhatIfDesk : public RunDesk {
  Q_OBJECT

 public:
  WhatIfDesk(Session& session, QWidget* panel);

  const WhatIfState& state() const { return state_; }

  void apply(EditList edits);
  // Edits as --edit takes them, behind those that are there; state().failure says what is wrong.
  void append(const std::string& json);
  void undo();
  void redo();
  void setRunsAlways(bool always);  // reruns after every change
  void setMaps(MapKind kind);       // what stands before and after
  void run();                       // replaces a rerun that is going on
  void cancel();
  // Recomputes one norm or head from the recording, for edits that are not applied yet; `selected`
  // of them decides which. The newest request wins.
  void preview(const EditList& edits, int selected);

  // Writes the model with its outlier dimensions absorbed, as `sinkscope absorb` does, checked on
  // the selected run's tokens. dims, factor: "auto", or as that verb takes them.
  void absorb(const std::string& dims, const std::string& factor, const std::string& folder);

  // Copies the result's capture, replacing what is there; state().note or .failure tell.
  void save(const std::string& path);

  // The command line that does the same; empty without a model and a run. Throws what
  // what_if_command throws.
  std::string command() const;

  void fail(const std::string& message);  // says it as state().failure

 private:
  void follow() override;
  void look() override;
  void publish() override;
  void jobFailed(const std::string& message) override { state_.failure = message; }
  void edited();
  std::string commandOf(const WhatIf& edits) const;
  void readCommand();  // of the selected run
  void takeResult(std::shared_ptr<const WhatIfResult> result, const WhatIf& edits,
                  const KnownBaseline& baseline);
  void readMaps();          // of the result, for the selected place
  void startPreview();      // of what is selected now; waits for one that is on its way
  bool hasPreview() const;  // an edit is selected
  void endPreview();        // starts the one that waits
  void showPreview(std::shared_ptr<const PreviewSnapshot> shown, const std::string& failure);
  void tidy();                           // captures of results that nobody sees any more
  void reopen(const std::string& path);  // where it is open
  void forget();                         // a result that is about something else
  std::string obstacle() const;          // also while it is not known how the run was recorded

  bool is_looked_at_ = true;  // maps and preview are of what is selected, or being read
  EditHistory history_;
  WhatIfState state_;
  bool runs_always_ = false;
  std::string recorded_;          // its command, checked; "" until it is read
  std::string recorded_failure_;  // why it cannot be used
  WhatIf result_edits_;           // what the result is of
  KnownBaseline baseline_;        // of the selected run: its recording, then the newest result
  int n_runs_ = 0;
  BackgroundJob absorb_job_;
  EditList preview_edits_;
  int preview_selected_ = -1;
  bool preview_runs_ = false, preview_waits_ = false;
  std::shared_ptr<const PreviewInput> preview_input_;  // read for the last place
  std::vector<std::string> results_;                   // captures in folder(), oldest first
};

}  // namespace sinkscope
