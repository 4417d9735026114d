// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractButton>
#include <QApplication>
#include <QFileDialog>
#include <QLineEdit>
#include <QMenu>
#include <QProcess>
#include <QTest>
#include <QTimer>
#include <QToolButton>
#include <functional>

namespace sinkscope {

// Uses a window like a person: clicks and keys. On a real display (QT_QPA_PLATFORM is not
// offscreen) the clicks come from xdotool, through the X server and the window's event queue.
class WindowHand {
 public:
  explicit WindowHand(QWidget& window) : window_(window) {}

  static void click(QWidget* widget, const QPoint& place) {
    if (QApplication::platformName() == QLatin1String("offscreen")) {
      QTest::mouseClick(widget, Qt::LeftButton, {}, place);
      return;
    }
    const QPoint at = widget->mapToGlobal(place);
    auto* hand = new QProcess(qApp);
    QObject::connect(hand, &QProcess::finished, hand, &QObject::deleteLater);
    hand->start(QStringLiteral("xdotool"),
                {QStringLiteral("mousemove"), QString::number(at.x()), QString::number(at.y()),
                 QStringLiteral("sleep"), QStringLiteral("0.05"), QStringLiteral("click"),
                 QStringLiteral("1")});
    QTest::qWait(300);
  }
  static void click(QWidget* widget) { click(widget, widget->rect().center()); }

  // The visible button with this text, anywhere in the window; null without one.
  QAbstractButton* button(const QString& text) const { return button_in(window_, text); }
  static QAbstractButton* button_in(const QWidget& parent, const QString& text) {
    for (QAbstractButton* one : parent.findChildren<QAbstractButton*>())
      if (one->text() == text && one->isVisible()) return one;
    return nullptr;
  }

  // Clicks a button once it is there and enabled; false when there is none.
  bool press(const QString& text) const {
    QAbstractButton* found = nullptr;
    const bool is_there = QTest::qWaitFor(
        [&] {
          found = button(text);
          return found != nullptr && found->isEnabled();
        },
        3000);
    if (!is_there) return false;
    click(found);
    return true;
  }

  // Opens the menu of a button and clicks an entry; false when there is none.
  bool choose(const QString& text, const QString& entry) const {
    auto* found = qobject_cast<QToolButton*>(button(text));
    if (found == nullptr) return false;
    bool done = false;
    // The menu has an event loop of its own, in which only a timer gets through.
    QTimer timer;
    int tries = 0;
    QObject::connect(&timer, &QTimer::timeout, [&] {
      auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
      if (menu == nullptr) return;
      for (QAction* action : menu->actions())
        if (action->text() == entry && action->isEnabled()) {
          timer.stop();
          done = true;
          return click(menu, menu->actionGeometry(action).center());
        }
      if (++tries > 20) menu->close();
    });
    timer.start(50);
    click(found);
    return QTest::qWaitFor([&] { return done && QApplication::activePopupWidget() == nullptr; },
                           5000);
  }

  // Answers the next file dialog with a path, while `act` runs; false when none came.
  static bool answer_file_dialog(const QString& path, const std::function<void()>& act) {
    bool done = false;
    QTimer timer;
    QObject::connect(&timer, &QTimer::timeout, [&] {
      auto* dialog = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
      if (dialog == nullptr) return;
      timer.stop();
      dialog->findChild<QLineEdit*>(QStringLiteral("fileNameEdit"))->setText(path);
      QAbstractButton* save = button_in(*dialog, QStringLiteral("&Save"));
      if (save == nullptr) save = button_in(*dialog, QStringLiteral("&Choose"));
      done = save != nullptr;
      if (done)
        click(save);
      else
        dialog->reject();
    });
    timer.start(50);
    act();
    return QTest::qWaitFor([&] { return done && QApplication::activeModalWidget() == nullptr; },
                           5000);
  }

 private:
  QWidget& window_;
};

}  // namespace sinkscope
