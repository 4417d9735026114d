// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/temporary_folder.h"
#include "app/gui/background_job.h"
#include "app/gui/session.h"
#include "core/snapshot/what_if_snapshot.h"

namespace sinkscope {

// The what-if that the user works on: its edits with their history, the rerun of the model in the
// background, and what it showed. Results are captures in a folder that goes with the desk; they
// may be saved elsewhere. Maps and previews are read only while the panel is seen.
class WhatIfDesk : public QObject {
  Q_OBJECT

 public:
  // `panel`: whose being shown counts.
  WhatIfDesk(Session& session, QWidget* panel);
  ~WhatIfDesk() override;

  const WhatIfState& state() const { return state_; }
  const BackgroundJob& job() const { return job_; }

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
  std::string command(const std::string& output) const;

  void fail(const std::string& message);  // says it as state().failure

 signals:
  void changed();  // state() has
  void progressed(const sinkscope::ProgressView& view);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void edited();
  void follow();    // what is open and selected
  void look();      // reads what the panel shows, unless that was done
  void readMaps();  // of the result, for the selected place
  void publish();
  void startPreview();      // of what is selected now; waits for one that is on its way
  bool hasPreview() const;  // an edit is selected
  void endPreview();        // starts the one that waits
  void showPreview(std::shared_ptr<const PreviewSnapshot> shown, const std::string& failure);
  void tidy();                           // captures of results that nobody sees any more
  void reopen(const std::string& path);  // where it is open
  void forget();                         // a result that is about something else
  std::string obstacle() const;

  Session& session_;
  QWidget& panel_;
  bool is_looked_at_ = true;  // maps and preview are of what is selected, or being read
  EditHistory history_;
  WhatIfState state_;
  bool runs_always_ = false;
  std::shared_ptr<const RunFacts> baseline_;  // the selected run
  std::string recorded_;                      // its command, checked; "" until it is read
  std::string recorded_failure_;              // why it cannot be used
  WhatIf result_edits_;                       // what the result is of
  int n_runs_ = 0;
  std::shared_ptr<TemporaryFolder> folder_;  // null until the first rerun
  std::shared_ptr<const RunFacts> job_run_;  // what job_ is about
  BackgroundJob job_, absorb_job_;
  EditList preview_edits_;
  int preview_selected_ = -1;
  bool preview_runs_ = false, preview_waits_ = false;
  std::shared_ptr<const PreviewInput> preview_input_;  // read for the last place
  std::vector<std::string> results_;                   // captures in folder_, oldest first
  std::shared_ptr<OpenFiles> files_;                   // the worker's
  std::unique_ptr<Worker> worker_;                     // last: joined first
};

}  // namespace sinkscope
