// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/window_main.h"

#include <QApplication>
#include <QIcon>
#include <cstdlib>

#include "app/cli/verbs.h"
#include "app/gui/main_window.h"
#include "views/theme.h"

// Resources of a static library are linked only when somebody asks for them; the macro does not
// work inside a namespace.
static void initialize_resources() { Q_INIT_RESOURCE(sinkscope); }

namespace sinkscope {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::optional<WindowRequest> window_request(const std::vector<std::string>& args) {
  if (args.empty()) return WindowRequest{};
  const std::string& word = args.front();
  if (word == "view") {
    if (args.size() == 1) return WindowRequest{};
    if (args.size() == 2 && !args[1].starts_with('-')) return WindowRequest{args[1]};
    return std::nullopt;
  }
  if (args.size() > 1 || word.starts_with('-')) return std::nullopt;
  for (const Verb& verb : verbs())
    if (word == verb.name) return std::nullopt;
  return WindowRequest{word};
}

bool has_display() {
  const std::string platform = variable("QT_QPA_PLATFORM");
  if (!platform.empty()) return !platform.starts_with("offscreen") && platform != "minimal";
  return !variable("DISPLAY").empty() || !variable("WAYLAND_DISPLAY").empty();
}

int run_window(int argc, char** argv, const WindowRequest& request) {
  QApplication application(argc, argv);
  QApplication::setApplicationName(QStringLiteral("sinkscope"));
  QApplication::setOrganizationName(QStringLiteral("sinkscope"));
  QApplication::setApplicationDisplayName(QStringLiteral("Sinkscope"));
  QApplication::setDesktopFileName(QStringLiteral("sinkscope"));
  initialize_resources();
  QApplication::setWindowIcon(QIcon(QStringLiteral(":/sinkscope.svg")));
  // The system's own palette says whether the desktop is dark; ours replaces it.
  const Theme theme = theme_of(application.palette());
  QApplication::setStyle(QStringLiteral("fusion"));
  QApplication::setPalette(theme_palette(theme));
  MainWindow window;
  window.show();
  if (!request.path.empty()) window.open(QString::fromStdString(request.path));
  return QApplication::exec();
}

}  // namespace sinkscope
