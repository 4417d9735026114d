// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/rescaling_wiring.h"

#include "app/gui/rescaling_desk.h"
#include "views/panels/rescaling_panel.h"

namespace sinkscope {

Panel* make_rescaling(Session& session, QWidget* parent) {
  auto* panel = new RescalingPanel(parent);
  auto* desk = new RescalingDesk(session, panel);
  QObject::connect(desk, &RescalingDesk::changed, panel,
                   [panel, desk] { panel->setState(desk->state()); });
  QObject::connect(desk, &RescalingDesk::progressed, panel, [panel](const ProgressView& view) {
    panel->setProgress(job_share(view), job_text(view));
  });
  QObject::connect(
      panel, &RescalingPanel::probesAsked, desk,
      [desk](const QString& dims, bool each) { desk->runProbes(dims.toStdString(), each); });
  QObject::connect(
      panel, &RescalingPanel::evidenceAsked, desk,
      [desk](const QString& dims, int key) { desk->setEvidence(dims.toStdString(), key); });
  QObject::connect(panel, &RescalingPanel::weightsAsked, desk, &RescalingDesk::computeWithWeights);
  QObject::connect(panel, &RescalingPanel::cancelAsked, desk, &RescalingDesk::cancel);
  panel->setState(desk->state());
  return panel;
}

}  // namespace sinkscope
