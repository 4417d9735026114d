// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QApplication>
#include <QImage>
#include <QPointF>
#include <QSettings>
#include <QTemporaryDir>
#include <QWidget>
#include <ctime>

namespace sinkscope {

// The one application of a test process, without a display unless SINKSCOPE_TEST_DISPLAY is set. It
// is never destroyed: widgets of the last test may outlive main(). Its settings are its own, for
// tests run beside each other.
inline QApplication& test_application() {
  static QApplication* app = [] {
    if (!qEnvironmentVariableIsSet("SINKSCOPE_TEST_DISPLAY"))
      qputenv("QT_QPA_PLATFORM", "offscreen");
    static int argc = 1;
    static char name[] = "test";
    static char* argv[] = {name, nullptr};
    static const QTemporaryDir settings;
    QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, settings.path());
    return new QApplication(argc, argv);
  }();
  return *app;
}

// Lets layouts and queued repaints happen.
inline void settle() {
  for (int i = 0; i < 3; ++i) QApplication::processEvents();
}

// What a widget looks like at its present size.
inline QImage picture_of(QWidget& widget) {
  settle();
  return widget.grab().toImage().convertToFormat(QImage::Format_ARGB32);
}

// The color at a place in widget pixels, whatever the scale of the display.
inline QRgb color_at(const QImage& picture, const QPointF& place) {
  const QPointF pixel = place * picture.devicePixelRatio();
  return picture.pixel(static_cast<int>(pixel.x()), static_cast<int>(pixel.y()));
}

// Milliseconds of processor time that this thread needs for something; a sanitizer's share is taken
// out roughly, and work that other threads do meanwhile does not count.
template <class Work>
double thread_ms(Work&& work) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(NDEBUG)
  constexpr double kSlower = 12;
#else
  constexpr double kSlower = 1;
#endif
  timespec from{}, to{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
  work();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
  return (static_cast<double>(to.tv_sec - from.tv_sec) * 1e3 +
          static_cast<double>(to.tv_nsec - from.tv_nsec) / 1e6) /
         kSlower;
}

// Keeps a picture to be looked at when SINKSCOPE_TEST_PICTURES names a folder.
inline void keep_picture(const QImage& picture, const QString& name) {
  const QString folder = qEnvironmentVariable("SINKSCOPE_TEST_PICTURES");
  if (!folder.isEmpty()) picture.save(folder + "/" + name + ".png");
}

}  // namespace sinkscope
