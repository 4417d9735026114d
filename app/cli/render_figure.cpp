// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/render_figure.h"

#include <fmt/format.h>

#include "core/error.h"

#ifdef SINKSCOPE_WITH_GUI
#include <QGuiApplication>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "app/cli/parse_text.h"
#include "views/figure/write_figure.h"
#endif

namespace sinkscope {

#ifdef SINKSCOPE_WITH_GUI

namespace {

// Fonts need an application; the window has one already.
class GuiApplication {
 public:
  GuiApplication() {
    if (QCoreApplication::instance() != nullptr) return;
    qputenv("QT_QPA_PLATFORM", "offscreen");
    // Without a session there is no XDG_RUNTIME_DIR, which is nothing to a figure.
    qInstallMessageHandler([](QtMsgType type, const QMessageLogContext&, const QString& text) {
      if (type == QtCriticalMsg || type == QtFatalMsg) std::cerr << text.toStdString() << '\n';
    });
    application_ = std::make_unique<QGuiApplication>(argc_, argv_);
  }

  ~GuiApplication() {
    if (application_ != nullptr) qInstallMessageHandler(nullptr);
  }
  GuiApplication(const GuiApplication&) = delete;
  GuiApplication& operator=(const GuiApplication&) = delete;

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

}  // namespace

void require_format(const std::string&) {}

std::string render_figure(const FigureRequest& request, const Figure& figure,
                          const std::string& format) {
  const GuiApplication application;
  WriteOptions options;
  options.svg_text = request.text;
  options.cells = request.cells;
  options.dpi = request.dpi;
  constexpr double kYear9999 = 253402300799;
  if (const char* epoch = std::getenv("SOURCE_DATE_EPOCH"); epoch != nullptr && *epoch != '\0')
    options.creation_time =
        static_cast<std::int64_t>(parse_number("SOURCE_DATE_EPOCH", epoch, 0, kYear9999));
  return figure_file(figure, parse_format(format), options);
}

#else

void require_format(const std::string& format) {
  if (format != "csv")
    throw Error(ErrorKind::unsupported,
                fmt::format("figure: {} is not there, built without Qt; csv is", format));
}

std::string render_figure(const FigureRequest&, const Figure&, const std::string& format) {
  require_format(format);
  return {};
}

#endif

}  // namespace sinkscope
