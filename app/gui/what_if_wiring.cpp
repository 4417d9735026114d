// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/what_if_wiring.h"

#include <QApplication>
#include <QClipboard>
#include <QFileDialog>

#include "app/gui/what_if_desk.h"
#include "core/error.h"
#include "views/panels/what_if_panel.h"

namespace sinkscope {
namespace {

void follow_selection(WhatIfPanel& panel, const Session& session) {
  const CellRef& cell = session.selection().cell;
  panel.setPlace({std::max(0, cell.layer), std::max(0, cell.head), std::max(0, cell.dim)});
  panel.setSelection(cell);
}

void copy(const std::string& text) {
  QApplication::clipboard()->setText(QString::fromStdString(text));
}

void copy_command(WhatIfDesk& desk) {
  try {
    const std::string command = desk.command();
    if (!command.empty()) copy(command);
  } catch (const Error& error) {
    desk.fail(error.what());
  }
}

void save(WhatIfPanel& panel, WhatIfDesk& desk) {
  const QString path = QFileDialog::getSaveFileName(&panel, WhatIfPanel::tr("Save the result"),
                                                    QString::fromUtf8(kWhatIfFile),
                                                    WhatIfPanel::tr("Captures (*.h5)"));
  if (!path.isEmpty()) desk.save(path.toStdString());
}

}  // namespace

Panel* make_what_if(Session& session, QWidget* parent) {
  auto* panel = new WhatIfPanel(parent);
  auto* desk = new WhatIfDesk(session, panel);
  QObject::connect(desk, &WhatIfDesk::changed, panel,
                   [panel, desk] { panel->setState(desk->state()); });
  QObject::connect(desk, &WhatIfDesk::progressed, panel, [panel](const ProgressView& view) {
    panel->setProgress(job_share(view), job_text(view));
  });
  QObject::connect(&session, &Session::selectionChanged, panel,
                   [panel, &session] { follow_selection(*panel, session); });
  QObject::connect(panel, &WhatIfPanel::editsChanged, desk, &WhatIfDesk::apply);
  QObject::connect(panel, &WhatIfPanel::previewAsked, desk, &WhatIfDesk::preview);
  QObject::connect(panel, &WhatIfPanel::absorbAsked, desk,
                   [desk](const QString& dims, const QString& factor, const QString& folder) {
                     desk->absorb(dims.toStdString(), factor.toStdString(), folder.toStdString());
                   });
  QObject::connect(panel, &WhatIfPanel::undoAsked, desk, &WhatIfDesk::undo);
  QObject::connect(panel, &WhatIfPanel::redoAsked, desk, &WhatIfDesk::redo);
  QObject::connect(panel, &WhatIfPanel::runAsked, desk, &WhatIfDesk::run);
  QObject::connect(panel, &WhatIfPanel::cancelAsked, desk, &WhatIfDesk::cancel);
  QObject::connect(panel, &WhatIfPanel::runsAlwaysChanged, desk, &WhatIfDesk::setRunsAlways);
  QObject::connect(panel, &WhatIfPanel::mapsAsked, desk, &WhatIfDesk::setMaps);
  QObject::connect(panel, &WhatIfPanel::commandAsked, desk, [desk] { copy_command(*desk); });
  QObject::connect(panel, &WhatIfPanel::jsonAsked, desk,
                   [desk] { copy(what_if_text(switched_on(desk->state().edits))); });
  QObject::connect(panel, &WhatIfPanel::pasteAsked, desk,
                   [desk] { desk->append(QApplication::clipboard()->text().toStdString()); });
  QObject::connect(panel, &WhatIfPanel::saveAsked, desk, [panel, desk] { save(*panel, *desk); });
  panel->setState(desk->state());
  follow_selection(*panel, session);
  return panel;
}

}  // namespace sinkscope
