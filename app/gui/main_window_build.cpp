// SPDX-License-Identifier: GPL-3.0-or-later
// What the window is made of.
#include <QAction>
#include <QActionGroup>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QProgressBar>
#include <QPushButton>
#include <QShortcut>
#include <QSplitter>
#include <QStackedWidget>
#include <QStatusBar>
#include <QToolBar>
#include <QToolButton>
#include <QVBoxLayout>

#include "app/gui/capture_form.h"
#include "app/gui/main_window.h"
#include "app/gui/navigation_column.h"
#include "app/gui/panel_table.h"
#include "app/gui/reading_column.h"

namespace sinkscope {
namespace {

QToolButton* menu_button(const QString& text, QMenu* menu, QWidget* parent) {
  auto* button = new QToolButton(parent);
  button->setText(text);
  button->setMenu(menu);
  button->setPopupMode(QToolButton::InstantPopup);
  button->setAutoRaise(true);
  return button;
}

QWidget* spacer(QWidget* parent) {
  auto* widget = new QWidget(parent);
  widget->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  return widget;
}

}  // namespace

void MainWindow::buildToolbar() {
  toolbar_ = addToolBar(tr("Tools"));
  toolbar_->setMovable(false);
  toolbar_->setToolButtonStyle(Qt::ToolButtonTextOnly);
  toolbar_->setContextMenuPolicy(Qt::PreventContextMenu);
  auto* open_menu = new QMenu(this);
  open_menu->addAction(tr("Capture or model file…"), QKeySequence::Open, this,
                       &MainWindow::openFile);
  open_menu->addAction(tr("Model folder…"), this, &MainWindow::openFolder);
  recent_ = open_menu->addMenu(tr("Recent"));
  connect(recent_, &QMenu::aboutToShow, this, &MainWindow::fillRecent);
  toolbar_->addWidget(menu_button(tr("Open"), open_menu, this));
  record_ = toolbar_->addAction(tr("Record…"), this, &MainWindow::showForm);
  toolbar_->addSeparator();

  tab_group_ = new QActionGroup(this);
  for (const PanelEntry& entry : panel_table()) {
    QAction* action = toolbar_->addAction(tr(entry.title));
    action->setCheckable(true);
    tab_group_->addAction(action);
    connect(action, &QAction::triggered, this,
            [this, id = std::string(entry.id)] { showPanel(id); });
    tabs_[entry.id].action = action;
  }
  more_ = new QMenu(this);
  connect(more_, &QMenu::aboutToShow, this, &MainWindow::fillMore);
  toolbar_->addWidget(menu_button(tr("More"), more_, this));
  toolbar_->addWidget(spacer(this));
  export_ = toolbar_->addAction(tr("Export figure"), this, &MainWindow::exportFigure);
  export_->setShortcut(QKeySequence(Qt::CTRL | Qt::Key_E));
  auto* copy_menu = new QMenu(this);
  copy_menu->addAction(tr("Values (TSV)"), QKeySequence::Copy, this, &MainWindow::copyValues);
  copy_menu->addAction(tr("Image"), this, &MainWindow::copyImage);
  copy_menu->addAction(tr("As command"), this, &MainWindow::copyCommand);
  copy_menu->addAction(tr("As Python"), this, &MainWindow::copyPython);
  copy_ = menu_button(tr("Copy"), copy_menu, this);
  toolbar_->addWidget(copy_);
  // Shortcuts of menus that are never shown count only when the window knows their actions.
  addActions(open_menu->actions());
  addActions(copy_menu->actions());
  dark_ = new QAction(tr("Dark palette"), this);
  dark_->setCheckable(true);
  connect(dark_, &QAction::toggled, this,
          [this](bool on) { setTheme(on ? Theme::dark : Theme::light); });
}

void MainWindow::buildCenter() {
  error_bar_ = new QWidget(this);
  error_bar_->setObjectName(QStringLiteral("errorBar"));
  error_ = new QLabel(error_bar_);
  error_->setWordWrap(true);
  error_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* dismiss = new QToolButton(error_bar_);
  dismiss->setText(QStringLiteral("✕"));
  dismiss->setAutoRaise(true);
  connect(dismiss, &QToolButton::clicked, error_bar_, &QWidget::hide);
  auto* error_layout = new QHBoxLayout(error_bar_);
  error_layout->setContentsMargins(12, 4, 8, 4);
  error_layout->addWidget(error_, 1);
  error_layout->addWidget(dismiss);
  error_bar_->hide();

  banner_ = new QWidget(this);
  banner_text_ = new QLabel(banner_);
  banner_text_->setWordWrap(true);
  example_ = new QPushButton(tr("Record with the example text"), banner_);
  auto* other = new QPushButton(tr("Other text…"), banner_);
  connect(example_, &QPushButton::clicked, this, [this] { form_->recordExample(); });
  connect(other, &QPushButton::clicked, this, &MainWindow::showForm);
  auto* banner_layout = new QHBoxLayout(banner_);
  banner_layout->setContentsMargins(12, 8, 12, 8);
  banner_layout->addWidget(banner_text_, 1);
  banner_layout->addWidget(example_);
  banner_layout->addWidget(other);
  banner_->hide();

  start_ = new QLabel(this);
  start_->setAlignment(Qt::AlignCenter);
  start_->setWordWrap(true);
  start_->setText(
      tr("Open a capture (RUN.h5), a model folder or a GGUF file,\n"
         "or drop it here."));
  form_ = new CaptureForm(this);
  connect(form_, &CaptureForm::recordAsked, this, &MainWindow::startRecording);
  connect(form_, &CaptureForm::planned, this, [this] {
    if (!form_->plan() && !form_is_shown_) showError(form_->summary());
  });
  connect(form_, &CaptureForm::closed, this, [this] {
    form_is_shown_ = false;
    showCenter();
  });
  center_ = new QStackedWidget(this);
  center_->addWidget(start_);
  center_->addWidget(form_);

  navigation_ = new NavigationColumn(session_, this);
  reading_ = new ReadingColumn(session_, this);
  connect(reading_, &ReadingColumn::picked, this, &MainWindow::goTo);
  auto* columns = new QSplitter(Qt::Horizontal, this);
  columns->addWidget(navigation_);
  columns->addWidget(center_);
  columns->addWidget(reading_);
  columns->setStretchFactor(0, 0);
  columns->setStretchFactor(1, 1);
  columns->setStretchFactor(2, 0);
  columns->setSizes({235, 765, 280});
  columns->setChildrenCollapsible(false);
  columns->setHandleWidth(1);

  auto* all = new QWidget(this);
  auto* layout = new QVBoxLayout(all);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(error_bar_);
  layout->addWidget(banner_);
  layout->addWidget(columns, 1);
  setCentralWidget(all);
}

void MainWindow::buildBottom() {
  status_ = new QLabel(this);
  status_->setForegroundRole(QPalette::PlaceholderText);
  progress_row_ = new QWidget(this);
  progress_text_ = new QLabel(progress_row_);
  progress_ = new QProgressBar(progress_row_);
  progress_->setTextVisible(false);
  progress_->setFixedWidth(220);
  auto* cancel = new QPushButton(tr("Cancel"), progress_row_);
  connect(cancel, &QPushButton::clicked, this, [this] { recording_.cancel(); });
  auto* row = new QHBoxLayout(progress_row_);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(progress_text_);
  row->addWidget(progress_);
  row->addWidget(cancel);
  progress_row_->hide();
  statusBar()->setSizeGripEnabled(false);
  statusBar()->addWidget(status_, 1);
  statusBar()->addPermanentWidget(progress_row_);
}

void MainWindow::buildKeys() {
  const auto key = [this](const QKeySequence& keys, auto act) {
    connect(new QShortcut(keys, this), &QShortcut::activated, this, act);
  };
  key(QKeySequence::Find, [this] { navigation_->focusFind(); });
  key(Qt::Key_BracketLeft, [this] { reading_->stepRange(-1); });
  key(Qt::Key_BracketRight, [this] { reading_->stepRange(1); });
  key(Qt::Key_P, [this] { reading_->pin(); });
  int number = 0;
  for (const PanelEntry& entry : panel_table()) {
    if (++number > 9) break;
    key(QKeySequence(Qt::ALT | static_cast<Qt::Key>(Qt::Key_0 + number)),
        [this, id = std::string(entry.id)] { showPanel(id); });
  }
}

}  // namespace sinkscope
