// SPDX-License-Identifier: GPL-3.0-or-later
// Opening, and what leaves the window.
#include <QApplication>
#include <QClipboard>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QMenu>
#include <QSettings>
#include <QStandardPaths>
#include <algorithm>

#include "app/gui/capture_form.h"
#include "app/gui/figure_export.h"
#include "app/gui/figure_of_panel.h"
#include "app/gui/main_window.h"
#include "app/gui/panel_table.h"

namespace sinkscope {
namespace {

constexpr int kMostRecent = 10;
const QString kRecentKey = QStringLiteral("recent");

// Where captures of the window go: the folder of the user's documents.
QString captures_folder() {
  QString folder = QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation);
  if (folder.isEmpty() || !QFileInfo(folder).isWritable()) folder = QDir::homePath();
  return folder;
}

// By which file a recent model was described.
const QString kArchKey = QStringLiteral("recentArchs");

void remember_arch(QSettings& settings, const QString& path, const QString& arch,
                   const QStringList& recent) {
  QVariantMap archs = settings.value(kArchKey).toMap();
  for (const QString& known : archs.keys())
    if (known == path || !recent.contains(known)) archs.remove(known);
  if (!arch.isEmpty()) archs.insert(path, arch);
  settings.setValue(kArchKey, archs);
}

}  // namespace

void MainWindow::open(const QString& path, const QString& archFile) {
  if (path.isEmpty()) return;
  showError({});
  QSettings settings;
  QStringList recent = settings.value(kRecentKey).toStringList();
  const bool is_local = QFileInfo::exists(path);
  const QString whole = is_local ? QFileInfo(path).absoluteFilePath() : path;
  recent.removeAll(whole);
  recent.prepend(whole);
  settings.setValue(kRecentKey, recent.mid(0, kMostRecent));
  const QString arch = archFile.isEmpty() ? QString() : QFileInfo(archFile).absoluteFilePath();
  remember_arch(settings, whole, arch, recent);
  session_.open(whole, arch);
}

void MainWindow::prepareForm() {
  if (session_.model() != nullptr) form_->setModel(session_.model()->files, captures_folder());
}

void MainWindow::openFile() {
  open(QFileDialog::getOpenFileName(
      this, tr("Open a capture or a model"), QString(),
      tr("Captures and models (*.h5 *.part *.gguf *.safetensors);;All files (*)")));
}

void MainWindow::openFolder() {
  open(QFileDialog::getExistingDirectory(this, tr("Open a model folder")));
}

void MainWindow::fillRecent() {
  recent_->clear();
  const QStringList paths = QSettings().value(kRecentKey).toStringList();
  const QVariantMap archs = QSettings().value(kArchKey).toMap();
  for (const QString& path : paths)
    recent_->addAction(path, this,
                       [this, path, arch = archs.value(path).toString()] { open(path, arch); });
  recent_->setEnabled(!paths.isEmpty());
}

void MainWindow::fillMore() {
  more_->clear();
  for (const PanelEntry& entry : panel_table()) {
    const QString obstacle = entry.obstacle(session_);
    if (obstacle.isEmpty()) continue;
    more_->addAction(QStringLiteral("%1: %2").arg(tr(entry.title), obstacle))->setEnabled(false);
  }
  if (!more_->isEmpty()) more_->addSeparator();
  more_->addAction(dark_);
}

void MainWindow::copyValues() {
  if (panel() != nullptr) QApplication::clipboard()->setText(panel()->valuesAsText());
}

void MainWindow::copyImage() {
  if (panel() != nullptr) QApplication::clipboard()->setImage(panel()->grab().toImage());
}

std::optional<FigureRequest> MainWindow::figureRequest() const {
  if (panel() == nullptr) return std::nullopt;
  if (auto request = panel()->figureRequest()) {
    request->archs = archs_for(request->inputs, figure_models(session_));
    return request;
  }
  const ColorScale scale = panel()->colorScale();
  PanelView view;
  if (!scale.grids.empty()) view.range = scale.request;
  view.zoom = panel()->zoomedTo();
  view.range_each = scale.is_one_of_several;
  return figure_of_panel(panel_id_, session_, view);
}

std::optional<FigureRequest> MainWindow::figureToCopy() {
  auto request = figureRequest();
  if (!request) showError(tr("This picture has no command that draws it."));
  return request;
}

void MainWindow::copyCommand() {
  const auto request = figureToCopy();
  if (!request) return;
  QApplication::clipboard()->setText(
      QString::fromStdString(lasting_command(*request, "figure.pdf", panel()->madeFiles())));
}

void MainWindow::copyPython() {
  const auto request = figureToCopy();
  if (!request) return;
  QApplication::clipboard()->setText(
      QString::fromStdString(lasting_python(*request, panel()->madeFiles())));
}

void MainWindow::exportFigure() {
  const auto request = figureRequest();
  if (!request) return showError(tr("This picture cannot be exported as a figure."));
  std::vector<std::string> inputs = figure_inputs(session_);
  for (const std::string& input : request->inputs)
    if (std::find(inputs.begin(), inputs.end(), input) == inputs.end()) inputs.push_back(input);
  auto* exporting =
      new FigureExport(*request, inputs, panel()->madeFiles(), figure_models(session_), this);
  exporting->dialog().show();
}

}  // namespace sinkscope
