// SPDX-License-Identifier: GPL-3.0-or-later
#include <QApplication>
#include <QIcon>
#include <iostream>
#include <memory>

#include "app/gui/main_window.h"
#include "app/gui/trial_reading.h"
#include "app/gui_module.h"
#include "views/figure/write_figure.h"
#include "views/theme.h"
#include "views/window_style.h"

// Resources of a static library are linked only when somebody asks for them; the macro does not
// work inside a namespace.
static void initialize_resources() { Q_INIT_RESOURCE(sinkscope); }

namespace sinkscope {
namespace {

// Fonts need an application; the window has one already.
class OffscreenApplication {
 public:
  OffscreenApplication() {
    if (QCoreApplication::instance() != nullptr) return;
    qputenv("QT_QPA_PLATFORM", "offscreen");
    // Without a session there is no XDG_RUNTIME_DIR, which is nothing to a figure.
    qInstallMessageHandler([](QtMsgType type, const QMessageLogContext&, const QString& text) {
      if (type == QtCriticalMsg || type == QtFatalMsg) std::cerr << text.toStdString() << '\n';
    });
    application_ = std::make_unique<QGuiApplication>(argc_, argv_);
  }

  ~OffscreenApplication() {
    if (application_ != nullptr) qInstallMessageHandler(nullptr);
  }
  OffscreenApplication(const OffscreenApplication&) = delete;
  OffscreenApplication& operator=(const OffscreenApplication&) = delete;

 private:
  int argc_ = 1;
  char name_[10] = "sinkscope";
  char* argv_[2] = {name_, nullptr};
  std::unique_ptr<QGuiApplication> application_;
};

FigureFormat parse_format(const std::string& format) {
  if (format == "svg") return FigureFormat::svg;
  return format == "png" ? FigureFormat::png : FigureFormat::pdf;
}

class QtGui final : public Gui {
 public:
  int run_window(int argc, char** argv, const WindowRequest& request) override {
    QApplication application(argc, argv);
    QApplication::setApplicationName(QStringLiteral("sinkscope"));
    QApplication::setOrganizationName(QStringLiteral("sinkscope"));
    QApplication::setApplicationDisplayName(QStringLiteral("Sinkscope"));
    QApplication::setDesktopFileName(QStringLiteral("sinkscope"));
    initialize_resources();
    QApplication::setWindowIcon(QIcon(QStringLiteral(":/sinkscope.svg")));
    // The system's own palette says whether the desktop is dark; ours replaces it.
    const Theme theme = theme_of(application.palette());
    QApplication::setStyle(window_style());
    QApplication::setPalette(theme_palette(theme));
    MainWindow window;
    window.session().setTrial(
        [program = QApplication::applicationFilePath()](const std::string& path) {
          read_in_another_process(program, path);
        });
    window.show();
    if (!request.path.empty())
      window.open(QString::fromStdString(request.path), QString::fromStdString(request.arch_file));
    return QApplication::exec();
  }

  std::string render_figure(const FigureRequest& request, const Figure& figure,
                            const std::string& format, std::int64_t creation_time) override {
    const OffscreenApplication application;
    WriteOptions options;
    options.svg_text = request.text;
    options.cells = request.cells;
    options.dpi = request.dpi;
    options.creation_time = creation_time;
    return figure_file(figure, parse_format(format), options);
  }
};

}  // namespace
}  // namespace sinkscope

// The module's one door; see load_gui().
extern "C" __attribute__((visibility("default"))) sinkscope::Gui* sinkscope_gui() {
  static sinkscope::QtGui gui;
  return &gui;
}
