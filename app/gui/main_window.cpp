// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/main_window.h"

#include <QAction>
#include <QActionGroup>
#include <QApplication>
#include <QCloseEvent>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QKeyEvent>
#include <QLabel>
#include <QMenu>
#include <QMimeData>
#include <QProgressBar>
#include <QPushButton>
#include <QSettings>
#include <QStackedWidget>
#include <algorithm>

#include "app/cli/format_text.h"
#include "app/gui/capture_form.h"
#include "app/gui/navigation_column.h"
#include "app/gui/panel_table.h"
#include "app/gui/reading_column.h"
#include "core/site_name.h"

namespace sinkscope {
namespace {

const PanelEntry* entry_of(const std::string& id) {
  const auto& table = panel_table();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const PanelEntry& entry) { return id == entry.id; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace

MainWindow::MainWindow(QWidget* parent) : QMainWindow(parent) {
  setWindowTitle(QStringLiteral("Sinkscope"));
  setAcceptDrops(true);
  resize(1280, 800);
  buildToolbar();
  buildCenter();
  buildBottom();
  buildKeys();
  connectSession();
  connectRecording();
  setTheme(theme_of(palette()));
  updateTabs();
  showCenter();
}

MainWindow::~MainWindow() = default;

void MainWindow::connectSession() {
  connect(&session_, &Session::failed, this, &MainWindow::showError);
  connect(&session_, &Session::opened, this, [this] {
    form_is_shown_ = false;
    prepareForm();
    updateBanner();
    updateTabs();
    showCenter();
  });
  connect(&session_, &Session::selectionChanged, this, [this] {
    updateTabs();
    updateBanner();
    showStatus();
    // What was recorded shows itself from its overview, whatever was looked at meanwhile.
    const auto run = session_.run();
    if (run == nullptr || run->path != recorded_) return;
    recorded_.clear();
    showPanel("overview");
  });
  connect(&session_, &Session::snapshotChanged, this, [this](Picture picture) {
    const QString failure = session_.failureOf(picture);
    if (!failure.isEmpty()) {
      showError(failure);
      failed_picture_ = picture;
    } else if (failed_picture_ == picture) {
      showError({});
    }
  });
}

void MainWindow::connectRecording() {
  connect(&recording_, &Recording::progressed, this, [this](const ProgressView& view) {
    progress_row_->show();
    const auto left = view.seconds_left();
    const QString where =
        view.stage == Stage::running || view.stage == Stage::reading
            ? tr("recording %1").arg(QString::fromStdString(layer_label(view.layer, view.n_layers)))
            : tr("recording");
    progress_text_->setText(
        left ? tr("%1  %2 left").arg(where, QString::fromStdString(format_duration(*left)))
             : where);
    progress_->setRange(0, view.total > 0 ? 1000 : 0);
    progress_->setValue(view.total > 0 ? static_cast<int>(view.done * 1000 / view.total) : 0);
  });
  connect(&recording_, &Recording::finished, this, [this](const QString& path) {
    progress_row_->hide();
    updateBanner();
    updateTabs();
    recorded_ = QFileInfo(path).absoluteFilePath().toStdString();
    open(path);
  });
  connect(&recording_, &Recording::canceled, this, [this](const QString& part) {
    progress_row_->hide();
    updateBanner();
    updateTabs();
    showError(part.isEmpty() ? tr("Canceled before anything was recorded.")
                             : tr("Canceled; whole layers are in %1").arg(part));
  });
  connect(&recording_, &Recording::failed, this, [this](const QString& message) {
    progress_row_->hide();
    updateBanner();
    updateTabs();
    showError(message);
  });
}

void MainWindow::connectPanel(Panel& panel) {
  connect(&panel, &Panel::picked, this, &MainWindow::goTo);
  connect(&panel, &Panel::exportAsked, this, &MainWindow::exportFigure);
}

Panel* MainWindow::panel() const {
  const auto found = tabs_.find(panel_id_);
  const bool is_seen = found != tabs_.end() && found->second.panel != nullptr &&
                       center_->currentWidget() == found->second.panel;
  return is_seen ? found->second.panel : nullptr;
}

void MainWindow::showPanel(const std::string& id) {
  const PanelEntry* entry = entry_of(id);
  if (entry == nullptr || !entry->obstacle(session_).isEmpty()) return;
  for (const PanelEntry& other : panel_table())
    for (const Picture picture : other.pictures) session_.setWanted(picture, false);
  panel_id_ = id;
  form_is_shown_ = false;
  Tab& tab = tabs_[id];
  if (tab.panel == nullptr) {
    tab.panel = entry->make(session_, center_);
    center_->addWidget(tab.panel);
    connectPanel(*tab.panel);
  }
  tab.action->setChecked(true);
  for (const Picture picture : entry->pictures) session_.setWanted(picture, true);
  showCenter();
}

void MainWindow::showCenter() {
  QWidget* shown = start_;
  const auto tab = tabs_.find(panel_id_);
  if (form_is_shown_)
    shown = form_;
  else if (tab != tabs_.end() && tab->second.panel != nullptr)
    shown = tab->second.panel;
  center_->setCurrentWidget(shown);
  export_->setEnabled(panel() != nullptr);
  reading_->setPanel(panel());
  reading_->setVisible(!form_is_shown_ && shown != start_);
  showStatus();
}

// Tabs that the data cannot fill wait behind More. What is shown must be one that it can.
void MainWindow::updateTabs() {
  std::string first;
  for (const PanelEntry& entry : panel_table()) {
    const bool can_show = entry.obstacle(session_).isEmpty();
    tabs_[entry.id].action->setVisible(can_show);
    if (can_show && first.empty()) first = entry.id;
  }
  record_->setEnabled(session_.model() != nullptr && !recording_.isRunning());
  const PanelEntry* current = entry_of(panel_id_);
  if (current != nullptr && current->obstacle(session_).isEmpty()) return;
  panel_id_.clear();
  if (!first.empty())
    showPanel(first);
  else
    showCenter();
}

void MainWindow::updateBanner() {
  const auto model = session_.model();
  const bool is_shown = model != nullptr && session_.run() == nullptr;
  banner_->setVisible(is_shown);
  if (!is_shown) return;
  QString text = QString::fromStdString(model_sentence(model->card));
  for (const std::string& obstacle : model->card.obstacles)
    text += QStringLiteral("\n") + tr("It cannot be run: %1").arg(QString::fromStdString(obstacle));
  banner_text_->setText(text);
  example_->setEnabled(model->card.obstacles.empty() && !recording_.isRunning());
}

void MainWindow::showForm() {
  const auto model = session_.model();
  if (model == nullptr) return;
  form_is_shown_ = true;
  showCenter();
}

void MainWindow::startRecording(const CapturePlan& plan, const QString& path) {
  if (recording_.isRunning() || session_.model() == nullptr) return;
  form_is_shown_ = false;
  showCenter();
  recording_.start(session_.model()->files, plan, path.toStdString(),
                   CaptureWriter::Existing::refuse);
  progress_text_->setText(tr("recording"));
  progress_->setRange(0, 0);
  progress_row_->show();
  updateTabs();
  updateBanner();
}

void MainWindow::showError(const QString& message) {
  failed_picture_.reset();
  error_->setText(message);
  error_bar_->setVisible(!message.isEmpty());
}

QString MainWindow::errorText() const {
  return error_bar_->isVisibleTo(this) ? error_->text() : QString();
}

QString MainWindow::statusText() const { return status_->text(); }

void MainWindow::showStatus() {
  const auto facts = session_.run();
  if (facts == nullptr) {
    status_->setText(session_.model() == nullptr
                         ? QString()
                         : QString::fromStdString(session_.model()->card.path));
    return;
  }
  QString text = QStringLiteral("%1 · %2 · %3")
                     .arg(QFileInfo(QString::fromStdString(facts->path)).fileName(),
                          QString::fromStdString(run_title(*facts)),
                          QString::fromStdString(recorded_text(*facts)));
  if (!facts->complete)
    text +=
        tr(" · unfinished: %1 of %2 layers").arg(facts->whole_layers).arg(facts->model.n_layers);
  status_->setText(text);
}

void MainWindow::setTheme(Theme theme) {
  const QPalette colors = theme_palette(theme);
  QApplication::setPalette(colors);
  setPalette(colors);
  dark_->setChecked(theme == Theme::dark);
  const QString bar = theme == Theme::dark ? QStringLiteral("#4a2623") : QStringLiteral("#fbe3e0");
  error_bar_->setStyleSheet(QStringLiteral("#errorBar { background: %1; }").arg(bar));
}

void MainWindow::goTo(const CellRef& cell) {
  const bool to_head = panel_id_ == "overview" && cell.layer >= 0 && cell.head >= 0;
  session_.select(cell);
  if (to_head) showPanel("attention");
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  for (const QUrl& url : event->mimeData()->urls())
    if (url.isLocalFile()) open(url.toLocalFile());
}

void MainWindow::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Left:
      return session_.stepLayer(-1);
    case Qt::Key_Right:
      return session_.stepLayer(1);
    case Qt::Key_Up:
      return session_.stepHead(-1);
    case Qt::Key_Down:
      return session_.stepHead(1);
    default:
      QMainWindow::keyPressEvent(event);
  }
}

// A recording that is cut off keeps its whole layers; nothing unsaved can be lost.
void MainWindow::closeEvent(QCloseEvent* event) {
  recording_.cancel();
  event->accept();
}

}  // namespace sinkscope
