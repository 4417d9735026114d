// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMainWindow>
#include <map>
#include <optional>
#include <string>

#include "app/gui/recording.h"
#include "app/gui/session.h"
#include "core/figure/figure_request.h"
#include "views/panels/panel.h"
#include "views/theme.h"

class QAction;
class QActionGroup;
class QLabel;
class QMenu;
class QProgressBar;
class QPushButton;
class QStackedWidget;
class QToolBar;
class QToolButton;

namespace sinkscope {

class CaptureForm;
class NavigationColumn;
class ReadingColumn;

// The window: toolbar, columns, panels, the bar of a running recording, and an inline bar for what
// went wrong.
class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  explicit MainWindow(QWidget* parent = nullptr);
  ~MainWindow() override;

  // A capture or a model, perhaps with the file that describes it (--arch); remembered among the
  // recent ones.
  void open(const QString& path, const QString& archFile = {});
  void showPanel(const std::string& id);
  void setTheme(Theme theme);

  Session& session() { return session_; }
  Recording& recording() { return recording_; }
  CaptureForm& captureForm() { return *form_; }
  ReadingColumn& reading() { return *reading_; }
  NavigationColumn& navigation() { return *navigation_; }
  Panel* panel() const;  // the one that is seen; null = the start page or the form
  std::string panelId() const { return panel_id_; }
  QString errorText() const;  // "" = no bar is shown
  QString statusText() const;

 protected:
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void closeEvent(QCloseEvent* event) override;

 private:
  struct Tab {
    QAction* action = nullptr;
    Panel* panel = nullptr;  // made when it is first seen
  };

  void buildToolbar();
  void buildCenter();
  void buildBottom();
  void buildKeys();
  void connectSession();
  void connectRecording();
  void connectPanel(Panel& panel);

  void openFile();
  void openFolder();
  void fillRecent();
  void fillMore();
  void showForm();
  void prepareForm();  // for the open model, with a path that is free
  void showCenter();   // panel, form, or start page, as there is something to show
  void updateTabs();
  void updateBanner();
  void showError(const QString& message);
  void showStatus();
  void startRecording(const CapturePlan& plan, const QString& path);

  void goTo(const CellRef& cell);
  std::optional<FigureRequest> figureRequest() const;  // what the seen panel shows
  void copyValues();
  void copyImage();
  std::optional<FigureRequest> figureToCopy();  // nullopt: the error bar says why
  void copyCommand();
  void copyPython();
  void exportFigure();

  Session session_;
  Recording recording_;
  std::map<std::string, Tab> tabs_;
  std::string panel_id_;
  std::string recorded_;  // a capture that is about to open because it was just recorded
  std::optional<Picture> failed_picture_;  // whose failure the bar shows
  bool form_is_shown_ = false;
  QToolBar* toolbar_ = nullptr;
  QActionGroup* tab_group_ = nullptr;
  QMenu *recent_ = nullptr, *more_ = nullptr;
  QAction *record_ = nullptr, *export_ = nullptr, *dark_ = nullptr;
  QToolButton* copy_ = nullptr;
  QWidget *error_bar_ = nullptr, *banner_ = nullptr, *progress_row_ = nullptr;
  QLabel *error_ = nullptr, *banner_text_ = nullptr, *status_ = nullptr, *progress_text_ = nullptr,
         *start_ = nullptr;
  QProgressBar* progress_ = nullptr;
  QPushButton* example_ = nullptr;
  QStackedWidget* center_ = nullptr;
  NavigationColumn* navigation_ = nullptr;
  ReadingColumn* reading_ = nullptr;
  CaptureForm* form_ = nullptr;
};

}  // namespace sinkscope
